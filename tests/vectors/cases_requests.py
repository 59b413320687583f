"""Vectors of a request's derivations: what names the URL above it vouches for a write there, never for a DELETE."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from tests.vectors.cases_derivation import ended
from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.forge import Item, tar

_POLICY = """\
version: 1
preset: none
trusted:
  - task: true
network: {}
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""
_TASK = "post to https://api.test/v1 please"
_CHECKED = 4
_OUTCOME = "nothing-committed"


def story(method: str) -> list[Item]:
    """A request below the URL that the task names, released."""
    named = {"effect": "e1", "rule": "named-in-task", "node": 0, "start": 8, "end": 27}
    derivations = [
        {**named, "role": "host", "value": "api.test", "form": "url-host"},
        {**named, "role": "url", "value": "https://api.test/v1/items", "form": "url-prefix"},
    ]
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
        "policy_name": "requests",
        "policy_digest": sha256(_POLICY.encode()).hexdigest(),
        "policy_text": _POLICY,
        "receipt": [["seccomp", "00"]],
        "degraded": [],
        "file_events": "fanotify",
    }
    request = {
        "method": method,
        "scheme": "https",
        "host": "api.test",
        "port": 443,
        "path": "/v1/items",
        "body_size_bytes": 2,
        "body_text": "{}",
    }
    answered = {
        "event": "response-received",
        "effect_id": "e1",
        "response": {"outcome": "done", "status": 204},
    }
    return [
        Item(kind="prompt", parent=None, actor="principal", payload=started),
        Item(kind="apm", parent=0, payload=stood),
        Item(
            kind="tool_call", parent=1, actor="agent", payload={"event": "request-made", "request": request}
        ),
        Item(kind="check", parent=2, payload=_checked("rules", [], "no rule forbids it")),
        Item(
            kind="check",
            parent=2,
            verdict="release",
            payload={
                **_checked("provenance", ["all"], "vouched for (named-in-task) and permitted"),
                "derivations": derivations,
            },
        ),
        Item(kind="tool_output", parent=2, actor="agent", payload=answered),
        *ended(),
    ]


def _checked(guard: str, rules: list[str], reason: str) -> dict[str, Any]:
    found = {"outcome": "pass", "rules": rules, "reason": reason, "effects": ["e1"]}
    return {"guard": guard, "findings": [found]}


def requested() -> Iterator[Vector]:
    """A POST below the named URL, and the same as a DELETE."""
    yield Vector(
        name="derived-request",
        why="a POST to a URL below the one that the task names",
        content=tar(honest(items=story("POST"), outcome=_OUTCOME).files()),
        verdict="complete",
        reason="ok",
        options={"replay": "yes"},
    )
    for method in ("DELETE", "delete"):
        yield tampered(
            f"derived-{'delete' if method == 'DELETE' else 'delete-small'}-above",
            "derivation-rule",
            honest(items=story(method), outcome=_OUTCOME).files(),
            _CHECKED,
            "signed, but the URL that the task names stands above the one that is deleted",
            replay="yes",
        )
