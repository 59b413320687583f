"""A field's derivation in a signed ledger: it holds, and whoever holds the key cannot make another leaf vouch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.playbook.test_monitor_scope import EXITED, TASK, created, stood
from tests.unit.test_verify_replay import nodes_of, written

from interlock.model import events as ev
from interlock.model.nodes import Node
from interlock.model.places import Place
from interlock.verify import verify_path

POLICY = """\
version: 1
preset: none
trusted:
  - {task: true}
  - {file: "team.json", fields: ["hooks[].path"]}
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived };
"""
HOOK = ".git/hooks/pre-commit"
TEXT = json.dumps({"about": HOOK, "hooks": [{"path": "none", "note": HOOK}, {"path": f"install {HOOK}"}]})


def read(path: str, text: str | None) -> ev.FileRead:
    return ev.FileRead(place=Place(root="workspace", path=path), opened=1, closed=2, staged=False, text=text)


def honest() -> list[Node]:
    story: tuple[ev.Event, ...] = (
        TASK,
        stood(text=POLICY),
        ev.ActivityObserved(reads=(read("other.txt", None), read("team.json", TEXT)), writes=()),
        EXITED,
        ev.ChangesListed(changes=(created(HOOK),), last=True),
        ev.IntentRecorded(released=("e1",)),
        ev.ScopeCommitted(applied=("e1",)),
        ev.ScopeDiscarded(),
    )
    return nodes_of(story)


def at(nodes: list[Node]) -> int:
    return next(node.seq for node in nodes if node.payload.get("derivations"))


def derivation(nodes: list[Node]) -> dict[str, Any]:
    given = nodes[at(nodes)].payload["derivations"]
    assert isinstance(given, list)
    (one,) = given
    assert isinstance(one, dict)
    return one


def test_an_honest_ledger_names_the_leaf_and_replays(tmp_path: Path) -> None:
    nodes = honest()
    one = derivation(nodes)
    assert (one["rule"], one["pointer"]) == ("named-in-file", "/reads/1/hooks/1/path")
    assert f"install {HOOK}"[int(one["start"]) : int(one["end"])] == HOOK
    report = verify_path(written(tmp_path, nodes), replay=True)
    assert (report.verdict, report.reason) == ("complete", "ok")


@pytest.mark.parametrize(
    "change",
    [
        {"pointer": "/reads/1/about", "start": 0, "end": len(HOOK)},
        {"pointer": "/reads/1/hooks/0/note", "start": 0, "end": len(HOOK)},
        {"pointer": "/reads/0/hooks/1/path"},
        {"pointer": "/reads/1/hooks/0/path"},
        {"pointer": "/reads/1/hooks/7/path"},
        {"pointer": ""},
        {"start": 0},
        {"end": 99},
        {"node": 0},
        {"rule": "named-in-task"},
    ],
)
def test_another_leaf_or_span_is_refuted_whoever_signs_it(tmp_path: Path, change: dict[str, Any]) -> None:
    nodes = honest()
    number = at(nodes)
    lied = {**nodes[number].payload, "derivations": [{**derivation(nodes), **change}]}
    nodes[number] = replace(nodes[number], payload=lied)
    path = written(tmp_path, nodes)
    assert verify_path(path).verdict == "complete", "the lie is well signed"
    report = verify_path(path, replay=True)
    assert (report.verdict, report.node) == ("tampered", number)
    assert report.reason.startswith("derivation-")
