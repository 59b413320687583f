"""Vectors of calls of models: an oracle asked one before it answered, and what a signer may not say of that."""

from collections.abc import Iterator
from dataclasses import replace

from tests.vectors.cases_replay import given_up
from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.folded import folded
from tests.vectors.forge import Item, tar

from interlock.model import events as ev
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.inferences import Inference
from interlock.model.places import Place
from interlock.model.verdicts import Decision
from interlock.monitor import event_from_payload

MAKEFILE = FileChange(
    kind=ChangeKind.CREATE,
    place=Place(root="workspace", path="Makefile"),
    after=FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1, digest="aa"),
)
CALL = Inference(
    oracle="seeing:local",
    provider="embedded",
    model="tiny-1",
    weights_hash="sha256:" + "ab" * 32,
    engine="engine 1 sha256:" + "cd" * 32,
    sampling="temperature 0, seed 7",
    request="12" * 32,
    answer="34" * 32,
    prompt_tokens=900,
    completion_tokens=40,
    calls=1,
    elapsed_ms=1500,
    trimmed=("notes.md",),
)
FAILED = replace(CALL, answer="", completion_tokens=0, calls=3, fault="timeout", trimmed=())


def asked() -> list[Item]:
    """A change that policy deferred; the oracle's model timed out, was asked again, and the oracle refused."""
    told: list[ev.Event] = [event_from_payload(item.payload) for item in given_up()[:3]]
    told.append(ev.ChangesListed(changes=(MAKEFILE,), last=True))
    told.append(
        ev.OracleAnswered(
            oracle="seeing:local",
            answers=(ev.Answer(effect_id="e1", decision=Decision.REFUSE, reason="nobody asked for it"),),
            inferences=(FAILED, CALL),
        )
    )
    told.append(ev.ScopeDiscarded())
    return folded(told)


def _calls(items: list[Item]) -> list[int]:
    return [seq for seq, item in enumerate(items) if item.kind == "inference"]


def _with_record(seq: int, **fields: object) -> list[Item]:
    items = asked()
    record = items[seq].payload["inference"]
    assert isinstance(record, dict)
    items[seq] = replace(items[seq], payload={**items[seq].payload, "inference": {**record, **fields}})
    return items


def modelled() -> Iterator[Vector]:
    """As it was; bound to no weights, to no answer, to another oracle; written into the answer; told too late."""
    options = {"replay": "yes"}
    items = asked()
    first, second = _calls(items)
    yield Vector(
        name="inference",
        why="an oracle asked a model, which failed, then answered",
        content=tar(honest(items=items, heads=(3,), outcome="nothing-committed").files()),
        verdict="complete",
        reason="ok",
        options=options,
    )
    for name, told, node, why in (
        (
            "inference-weights",
            _with_record(second, weights_hash="sha256:ab"),
            second,
            "a call names no weights that could be compared",
        ),
        ("inference-answer", _with_record(first, fault=""), first, "a call that failed is told as answered"),
        ("inference-actor", _with_record(second, oracle="human"), second, "a call is another oracle's"),
    ):
        yield tampered(name, "inference", honest(items=told, heads=(3,)).files(), node, f"signed, but {why}")
    hidden = asked()
    answer = hidden[second + 1]
    record = hidden[second].payload["inference"]
    hidden[second] = replace(answer, payload={**answer.payload, "inferences": [record]})
    del hidden[second + 1]
    late = asked()
    late[second], late[second + 1] = late[second + 1], late[second]
    for name, told, node, why in (
        ("inference-hidden", hidden, second, "a call stands in the answer and not in a node of its own"),
        ("inference-late", late, second + 1, "a call comes after the answer that it led to"),
    ):
        files = honest(items=told, heads=(3,)).files()
        yield tampered(name, "replay-mismatch", files, node, f"signed, but {why}", **options)
