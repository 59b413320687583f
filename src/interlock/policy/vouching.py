"""The smallest change that would have vouched for an effect: candidates, each really tried by the decision.

A candidate is written as the user would write it, read by the policy's own reader, and decided on what was known then.
Nothing is suggested that the decision does not release.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from interlock.model.effects import Channel, Effect
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import WORKSPACE, Place
from interlock.model.records import changed, dataclass
from interlock.model.verdicts import Decision
from interlock.policy.declaration import Policy, full_path
from interlock.policy.provenance import Knowledge
from interlock.policy.sources import TASK, Source

MOST_TEXTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change under which an effect would have been released.

    Takes: `kind`, `policy` (then `text` is YAML to add), `task` (words for the task) or `labels` (a command); `why`,
    one line.
    """

    kind: str
    text: str
    why: str


def smallest_change(
    policy: Policy, knowledge: Knowledge, effect: Effect, texts: Sequence[tuple[Place, str]] = ()
) -> Change | None:
    """Return the first candidate, from the narrowest on, that makes the decision release an effect.

    Takes: `knowledge`, what was known when it was decided; `texts`, files that had been read, with their text, so that
    trusting one can be tried.
    """
    for change, candidate, known in _candidates(policy, knowledge, effect, texts):
        if _decision(candidate, known, effect) is Decision.RELEASE:
            return change
    return None


def _decision(policy: Policy, knowledge: Knowledge, effect: Effect) -> Decision:
    from interlock.policy.characterising import characterise
    from interlock.policy.decision import decide
    from interlock.policy.net_effects import characterise_request

    tried = effect
    if effect.change is not None:
        (tried,) = characterise(policy, knowledge, (effect.change,), 1)
    elif effect.request is not None and effect.message is None:
        tried = characterise_request(policy, knowledge, effect.request, effect.id)
    (verdict,) = decide(policy, knowledge, (tried,))
    return verdict.decision


Candidate = tuple[Change, Policy, Knowledge]


def _candidates(
    policy: Policy, knowledge: Knowledge, effect: Effect, texts: Sequence[tuple[Place, str]]
) -> Iterator[Candidate]:
    yield from _forgetting(policy, knowledge, texts)
    yield from _trusting(policy, knowledge, texts)
    if effect.request is not None and effect.channel is Channel.NET:
        for yaml, why in _hosts(effect):
            candidate = _with(policy, yaml)
            if candidate is not None:
                yield Change(kind="policy", text=yaml, why=why), candidate, knowledge
    if effect.channel is Channel.TOOL:
        yield from _of_call(policy, knowledge, effect)
    if effect.change is not None and effect.change.host_edit is None:
        words = _task_words(effect)
        source = Source(kind=TASK, node=knowledge.task_node, offset=0, text=words)
        yield (
            Change(kind="task", text=words, why="the task's own words name it"),
            policy,
            changed(knowledge, sources=knowledge.sources.with_source(source)),
        )
    yield from _permitting(policy, knowledge, effect)


def _of_call(policy: Policy, knowledge: Knowledge, effect: Effect) -> Iterator[Candidate]:
    from interlock.policy.tools.remedies import delegations, task_words

    words = task_words(policy, effect)
    if words:
        source = Source(kind=TASK, node=knowledge.task_node, offset=0, text=words)
        known = changed(knowledge, sources=knowledge.sources.with_source(source))
        yield Change(kind="task", text=words, why="the task's own words ask for it"), policy, known
    for yaml, why in delegations(policy, knowledge, effect):
        candidate = _with(policy, yaml)
        if candidate is not None:
            yield Change(kind="policy", text=yaml, why=why), candidate, knowledge


def _task_words(effect: Effect) -> str:
    assert effect.change is not None
    places = [effect.change.place, *((effect.change.source,) if effect.change.source else ())]
    cues = " ".join(sorted({facet.kind.replace("-", " ") for facet in effect.facets}))
    return " and ".join(full_path(place) for place in places) + (f" ({cues})" if cues else "")


def _forgetting(
    policy: Policy, knowledge: Knowledge, texts: Sequence[tuple[Place, str]]
) -> Iterator[Candidate]:
    """Try the user's word for a file that the policy trusts and an earlier run wrote."""
    for place, text in texts[:MOST_TEXTS]:
        if not policy.trusts(place) or place not in knowledge.places.known or knowledge.places.lost:
            continue
        left = {kept: label for kept, label in knowledge.places.known.items() if kept != place}
        known = changed(knowledge, places=changed(knowledge.places, known=left))
        yield (
            Change(
                kind="labels",
                text=f"interlock labels --forget {full_path(place)}",
                why=f"`{full_path(place)}` says so, and an earlier run wrote it: read it, then give your word for it",
            ),
            policy,
            _read(policy, known, place, text),
        )


def _trusting(
    policy: Policy, knowledge: Knowledge, texts: Sequence[tuple[Place, str]]
) -> Iterator[Candidate]:
    for place, text in texts[:MOST_TEXTS]:
        if (
            policy.trusts(place)
            or knowledge.places.is_agents(place)
            or '"' in place.path
            or "\\" in place.path
        ):
            continue
        root = "" if place.root == WORKSPACE else f', root: "{place.root}"'
        glob = "".join(f"[{char}]" if char in "*?[" else char for char in place.path)
        yaml = f'trusted:\n  - {{file: "{glob}"{root}}}\n'
        candidate = _with(policy, yaml)
        if candidate is not None:
            why = f"`{full_path(place)}`, which was read, says so"
            yield (
                Change(kind="policy", text=yaml, why=why),
                candidate,
                _read(candidate, knowledge, place, text),
            )


def _read(policy: Policy, knowledge: Knowledge, place: Place, text: str) -> Knowledge:
    read = FileRead(place=place, opened=1, closed=1, staged=False, text=text)
    return knowledge.with_reads(policy, (read,), knowledge.task_node)


def _hosts(effect: Effect) -> Iterable[tuple[str, str]]:
    from interlock.policy.network import method_of

    request = effect.request
    assert request is not None
    host = f'"{request.host}"'
    port = "" if request.port in (80, 443) else f", port: {request.port}"
    clear = ""
    if effect.carried > effect.clearance and effect.carried > Confidentiality.PUBLIC:
        clear = f", clearance: {effect.carried.name.lower()}"
    method = method_of(request)
    folder = request.path.rpartition("/")[0] + "/"
    exact = "" if '"' in request.path or "\\" in request.path else f', paths: ["{request.path}"]'
    below = "" if '"' in folder or "\\" in folder else f', paths: ["{folder}"]'
    for methods in ("", f", methods: [{method}]"):
        for paths in (exact, below, ""):
            what = f"a host entry for {method} requests" + (f" below {folder}" if paths else "")
            yield f"network:\n  hosts:\n    - {{host: {host}{port}{methods}{paths}{clear}}}\n", what
    if request.method == "CONNECT" or request.protocol == "opaque":
        yield (
            f"network:\n  opaque:\n    - {{host: {host}, port: {request.port}{clear}}}\n",
            "a route whose bytes nobody reads",
        )


def _permitting(policy: Policy, knowledge: Knowledge, effect: Effect) -> Iterator[Candidate]:
    rule = (
        f'@id("permit-{effect.operation.replace(".", "-")}")\n'
        f'permit(principal, action == Action::"{effect.operation}", resource)\n'
        "when { context.derived && context.carried <= context.clearance };\n"
    )
    yaml = "cedar: |\n" + "".join(f"  {line}\n" for line in rule.splitlines())
    candidate = replace(policy, cedar=policy.cedar + rule)
    yield Change(kind="policy", text=yaml, why="a rule that permits it"), candidate, knowledge


def _with(policy: Policy, yaml: str) -> Policy | None:
    from interlock.model.errors import PolicyError
    from interlock.policy.document import read_document
    from interlock.policy.loading import policy_of

    try:
        added = policy_of(read_document(f"version: 1\n{yaml}", filename="candidate"), policy)
    except PolicyError:
        return None
    return replace(added, text=policy.text, digest=policy.digest)
