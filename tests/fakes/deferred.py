"""A deferred file effect, as the monitor hands it to an oracle."""

from interlock.model.effects import (
    ChangeKind,
    Channel,
    Effect,
    Facet,
    FileChange,
    FileStamp,
    FileType,
    Hazard,
    Reach,
    Value,
)
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.verdicts import Check, CheckOutcome, Decision, Guard, Verdict


def deferred(
    number: int, path: str, *facets: str, operation: str = "file.create", hazards: tuple[Hazard, ...] = ()
) -> tuple[Effect, Verdict]:
    stamp = FileStamp(type=FileType.FILE, mode=0o644, uid=1000, gid=1000, size_bytes=12)
    place = Place(root="workspace", path=path)
    effect = Effect(
        id=f"e{number}",
        channel=Channel.FILE,
        operation=operation,
        object=str(place),
        reach=Reach.STAGEABLE,
        steering=(Value(role="path", text=path),),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.CRITICAL,
        facets=tuple(Facet(kind=kind, reason=f"why {kind}") for kind in facets),
        change=FileChange(kind=ChangeKind.CREATE, place=place, after=stamp, hazards=hazards),
    )
    check = Check(
        guard=Guard.PROVENANCE, outcome=CheckOutcome.UNDECIDED, rules=("r1",), reason="the task names it not"
    )
    return effect, Verdict(effect_id=effect.id, decision=Decision.DEFER, checks=(check,))
