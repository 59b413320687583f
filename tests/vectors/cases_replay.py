"""Vectors of replay: ledgers whose signer holds the key, and whose nodes do not follow from what happened."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.forge import Item, tar

_POLICY = "version: 1\npreset: coding@3\n"


def given_up() -> list[Item]:
    """A merge that could be neither ended nor taken back, and that the principal gave up."""
    change = {
        "kind": "create",
        "place": {"root": "workspace", "path": "src/a.py"},
        "after": {"type": "file", "mode": 420, "uid": 0, "gid": 0, "size_bytes": 1, "digest": "aa"},
    }
    vouched = {
        "outcome": "pass",
        "rules": ["coding/staged-files"],
        "reason": "vouched for (under-root) and permitted",
        "effects": ["e1"],
    }
    under_root = {
        "effect": "e1",
        "role": "path",
        "value": "src/a.py",
        "rule": "under-root",
        "node": 0,
        "start": 0,
        "end": 0,
    }
    return [
        Item(
            kind="prompt",
            parent=None,
            actor="principal",
            payload={
                "event": "task-given",
                "run_id": "run-1",
                "task": "fix the sum",
                "argv": ["agent"],
                "started_at_ns": "1",
            },
        ),
        Item(
            kind="apm",
            parent=0,
            payload={
                "event": "boundary-stood",
                "roots": [{"name": "workspace", "path": "/w"}],
                "standing": "root",
                "staging": "overlay",
                "oracle": "strict",
                "policy_name": "coding",
                "policy_digest": sha256(_POLICY.encode()).hexdigest(),
                "policy_text": _POLICY,
                "receipt": [["seccomp", "00"]],
                "degraded": [],
                "file_events": "fanotify",
            },
        ),
        Item(
            kind="tool_output",
            parent=1,
            actor="agent",
            payload={"event": "command-exited", "code": 0, "signal": 0, "ended_at_ns": "2"},
        ),
        Item(
            kind="tool_call",
            parent=1,
            actor="agent",
            payload={"event": "changes-listed", "changes": [change], "last": True},
        ),
        Item(
            kind="check",
            parent=3,
            payload={
                "guard": "rules",
                "findings": [
                    {"outcome": "pass", "rules": [], "reason": "no rule forbids it", "effects": ["e1"]}
                ],
            },
        ),
        Item(
            kind="check",
            parent=3,
            verdict="release",
            payload={"guard": "provenance", "findings": [vouched], "derivations": [under_root]},
        ),
        Item(kind="resolution", parent=1, verdict="release", payload={"intent": "commit", "effects": ["e1"]}),
        Item(kind="resolution", parent=1, payload={"event": "intent-recorded", "released": ["e1"]}),
        Item(
            kind="resolution",
            parent=1,
            actor="principal",
            payload={
                "event": "discard-requested",
                "given_up": "the log of the merge is damaged",
                "requested_at_ns": "3",
            },
        ),
        Item(kind="tool_output", parent=1, payload={"event": "scope-discarded"}),
        Item(
            kind="final_output",
            parent=0,
            payload={
                "outcome": "unknown",
                "exit_code": 0,
                "exit_signal": 0,
                "interruption": "",
                "committed": 0,
                "refused": 0,
            },
        ),
    ]


def _with_payload(items: list[Item], seq: int, **fields: object) -> list[Item]:
    payload = {**items[seq].payload, **fields}
    items[seq] = replace(
        items[seq], payload={key: value for key, value in payload.items() if value is not None}
    )
    return items


def replayed() -> Iterator[Vector]:
    """A merge given up: as it was, told as if it were done, said where there was none to give up, and sealed wrongly."""
    options = {"replay": "yes"}
    items = given_up()
    yield Vector(
        name="given-up",
        why="a merge given up: what it released is unknown",
        content=tar(honest(items=items, heads=(3,), outcome="unknown").files()),
        verdict="complete",
        reason="ok",
        options=options,
    )
    for name, told, node, why in (
        (
            "given-up-committed",
            _with_payload(given_up(), 10, outcome="committed", committed=1),
            10,
            "a merge that was given up is told as done",
        ),
        (
            "given-up-unsaid",
            _with_payload(given_up(), 8, given_up=None),
            8,
            "a merge under way is discarded, and not given up",
        ),
        (
            "given-up-early",
            [*given_up()[:3], replace(given_up()[8], parent=1)],
            3,
            "given up where no merge was under way",
        ),
    ):
        files = honest(items=told, heads=(3,)).files()
        yield tampered(name, "replay-mismatch", files, node, f"signed, but {why}", **options)
    for name, items, why in (
        ("sealed-otherwise", given_up(), "the seal says `committed` of a run whose nodes say `unknown`"),
        ("sealed-early", given_up()[:8], "a run is sealed in the middle of its merge"),
    ):
        yield tampered(
            name,
            "replay-mismatch",
            honest(items=items, heads=(3,)).files(),
            None,
            f"signed, but {why}",
            **options,
        )
