"""Vectors of derivations: the signer holds the key and says that something vouched which did not."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from typing import Any

from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.forge import Item, tar

_POLICY = """\
version: 1
preset: none
trusted:
  - task: true
  - {file: "team.md"}
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  contacts: {effect: read, output: {trust: directory, fields: {"[].name": name, "[].mail": email}}}
  mail: {effect: send, steers: {to: email}, carries: [text], asks: [mail]}
"""
_TASK = "mail ann@a.test and Bob Moor, not eve@a.test"
_PEOPLE = '[{"mail":"bob@a.test","name":"Bob Moor"},{"mail":"eve@a.test","name":"Eve Moor"}]'
_NOTES = "ann@a.test wrote this"


def story() -> list[Item]:
    """Two mails: to an address that the task names, and to the one of a contact whom it names."""
    read = {"place": {"root": "workspace", "path": "notes.md"}, "opened": 1, "closed": 2, "staged": False}
    started = {
        "event": "task-given",
        "run_id": "run-1",
        "task": _TASK,
        "argv": ["agent"],
        "started_at_ns": "1",
    }
    stood = {
        "event": "boundary-stood",
        "roots": [{"name": "workspace", "path": "/w"}],
        "standing": "root",
        "staging": "overlay",
        "oracle": "strict",
        "policy_name": "mail",
        "policy_digest": sha256(_POLICY.encode()).hexdigest(),
        "policy_text": _POLICY,
        "receipt": [["seccomp", "00"]],
        "degraded": [],
        "file_events": "fanotify",
    }
    return [
        Item(kind="prompt", parent=None, actor="principal", payload=started),
        Item(kind="apm", parent=0, payload=stood),
        Item(
            kind="tool_output",
            parent=1,
            actor="agent",
            payload={"event": "activity-observed", "reads": [{**read, "text": _NOTES}], "writes": []},
        ),
        *_call("c1", "contacts", "{}"),
        *_checks(3, "e1", "vouched for (nothing steers it) and permitted", None),
        Item(
            kind="tool_output",
            parent=3,
            actor="agent",
            payload={
                "event": "tool-returned",
                "effect_id": "e1",
                "result": {
                    "outcome": "done",
                    "text": _PEOPLE,
                    "structured": True,
                    "size_bytes": len(_PEOPLE),
                },
            },
        ),
        *_call("c2", "mail", '{"text":"hi","to":"ann@a.test"}'),
        *_checks(7, "e2", "vouched for (named-in-task) and permitted", named()),
        *_call("c3", "mail", '{"text":"hi","to":"bob@a.test"}'),
        *_checks(10, "e3", "vouched for (record-selected) and permitted", selected()),
        *ended(),
    ]


_OUTCOME = "nothing-committed"


def ended() -> tuple[Item, ...]:
    """The command's end, with nothing staged."""
    exited = {"event": "command-exited", "code": 0, "signal": 0, "ended_at_ns": "2"}
    final = {
        "outcome": _OUTCOME,
        "exit_code": 0,
        "exit_signal": 0,
        "interruption": "",
        "committed": 0,
        "refused": 0,
    }
    return (
        Item(kind="tool_output", parent=1, actor="agent", payload=exited),
        Item(
            kind="tool_call",
            parent=1,
            actor="agent",
            payload={"event": "changes-listed", "changes": [], "last": True},
        ),
        Item(kind="tool_output", parent=1, payload={"event": "scope-discarded"}),
        Item(kind="final_output", parent=0, payload=final),
    )


def _call(call: str, tool: str, arguments: str) -> tuple[Item, ...]:
    given = {"call": call, "tool": tool, "arguments": arguments}
    return (Item(kind="tool_call", parent=1, actor="agent", payload={"event": "tool-called", "call": given}),)


def _checks(call: int, effect: str, reason: str, derivation: dict[str, Any] | None) -> tuple[Item, ...]:
    def finding(rules: list[str], why: str) -> dict[str, object]:
        return {"outcome": "pass", "rules": rules, "reason": why, "effects": [effect]}

    payload: dict[str, object] = {"guard": "provenance", "findings": [finding(["all"], reason)]}
    if derivation is not None:
        payload["derivations"] = [{"effect": effect, **derivation}]
    return (
        Item(
            kind="check",
            parent=call,
            payload={"guard": "rules", "findings": [finding([], "no rule forbids it")]},
        ),
        Item(kind="check", parent=call, verdict="release", payload=payload),
    )


def named() -> dict[str, Any]:
    """The address that the task names."""
    return {
        "role": "to",
        "value": "ann@a.test",
        "rule": "named-in-task",
        "node": 0,
        "start": 5,
        "end": 15,
        "form": "email",
    }


def selected() -> dict[str, Any]:
    """The address of the contact whom the task names."""
    start = _TASK.index("Bob Moor")
    premise = {
        "role": "[].name",
        "value": "Bob Moor",
        "rule": "named-in-task",
        "node": 0,
        "start": start,
        "end": start + 8,
        "form": "phrase",
    }
    return {
        "role": "to",
        "value": "bob@a.test",
        "rule": "record-selected",
        "node": 6,
        "start": 0,
        "end": 10,
        "pointer": "/0/mail",
        "premises": [premise],
    }


def _told(seq: int, **changes: object) -> list[Item]:
    """The story with another derivation in a check node."""
    items = story()
    payload = deepcopy(dict(items[seq].payload))
    derivation = payload["derivations"][0]  # type: ignore[index]
    for key, value in changes.items():
        if value is None:
            derivation.pop(key)
        else:
            derivation[key] = value
    items[seq] = replace(items[seq], payload=payload)
    return items


_TO_ANN, _TO_BOB = 9, 12


def derived() -> Iterator[Vector]:
    """A derivation as it was, and with each of its parts changed."""
    options = {"replay": "yes"}
    yield Vector(
        name="derived",
        why="two derivations that hold: an address that the task names, and the one of a contact whom it names",
        content=tar(honest(items=story(), outcome=_OUTCOME).files()),
        verdict="complete",
        reason="ok",
        options=options,
    )
    yield Vector(
        name="derived-formless",
        why="an older ledger, which does not say the form",
        content=tar(honest(items=_told(_TO_ANN, form=None), outcome=_OUTCOME).files()),
        verdict="complete",
        reason="ok",
        options=options,
    )
    items = story()
    items[_TO_ANN] = replace(items[_TO_ANN], payload={**items[_TO_ANN].payload, "derivations": []})
    yield tampered(
        "derived-left-out",
        "derivation-missing",
        honest(items=items, outcome=_OUTCOME).files(),
        _TO_ANN,
        "signed, but the derivation is left out",
        **options,
    )
    other = {**selected()["premises"][0], "value": "Eve Moor"}
    for name, fault, seq, changes, why in (
        ("span-moved", "span", _TO_ANN, {"start": 6, "end": 16}, "the span is moved by one"),
        ("span-other", "span", _TO_ANN, {"start": 34, "end": 44}, "the span is that of another address"),
        ("span-beyond", "span", _TO_ANN, {"start": 5, "end": 400}, "the span ends behind the text"),
        (
            "value-changed",
            "value",
            _TO_ANN,
            {"value": "eve@a.test"},
            "the value is not what the call sends to",
        ),
        ("role-changed", "value", _TO_ANN, {"role": "text"}, "the role is one that does not steer"),
        ("rule-swapped", "rule", _TO_ANN, {"rule": "named-in-file"}, "the task is called a file"),
        ("rule-unknown", "rule", _TO_ANN, {"rule": "named-in-dream"}, "there is no such rule"),
        ("form-swapped", "rule", _TO_ANN, {"form": "phrase"}, "an address is no phrase"),
        (
            "node-swapped",
            "node",
            _TO_ANN,
            {"rule": "named-in-file", "node": 2, "start": 0, "end": 10},
            "a file that the policy does not trust",
        ),
        ("node-later", "node", _TO_ANN, {"node": 11}, "a node that comes later"),
        ("premise-removed", "premise", _TO_BOB, {"premises": None}, "what selects the contact is left out"),
        ("premise-false", "premise", _TO_BOB, {"premises": [other]}, "what selects the contact is not named"),
        ("pointer-moved", "span", _TO_BOB, {"pointer": "/1/mail"}, "the leaf of another contact"),
    ):
        yield tampered(
            f"derived-{name}",
            f"derivation-{fault}",
            honest(items=_told(seq, **changes), outcome=_OUTCOME).files(),
            seq,
            f"signed, but {why}",
            **options,
        )
