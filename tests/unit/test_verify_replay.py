"""Replay finds what only someone who can sign could do: a verdict changed, left out or invented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.playbook.test_monitor_scope import EXITED, TASK, created, stood

from interlock.evidence import LedgerWriter, SigningKey
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.nodes import Node, NodeKind
from interlock.model.verdicts import Decision
from interlock.monitor import State, step
from interlock.verify import verify_path
from interlock.verify.reader import read_nodes
from interlock.verify.replay import replay

HELD = ev.OracleAnswered(
    oracle="strict", answers=(ev.Answer(effect_id="e2", decision=Decision.REFUSE, reason="nobody"),)
)
STORY: tuple[ev.Event, ...] = (
    TASK,
    stood(),
    EXITED,
    ev.ChangesListed(changes=(created("src/a.py"), created(".git/hooks/pre-commit")), last=True),
    HELD,
    ev.IntentRecorded(released=("e1",)),
    ev.ScopeCommitted(applied=("e1",)),
    ev.ScopeDiscarded(),
)


def nodes_of(story: tuple[ev.Event, ...]) -> list[Node]:
    state, nodes = State(), []
    for event in story:
        state, commands = step(state, event)
        nodes += [command.node for command in commands if isinstance(command, cmd.Append)]
    return nodes


def written(folder: Path, nodes: list[Node], outcome: str = "committed") -> str:
    path = str(folder / "ledger")
    ledger = LedgerWriter.create(path, run_id="r1", apm={}, key=SigningKey.generate())
    for node in nodes:
        ledger.append(node)
    ledger.barrier()
    ledger.seal(outcome)
    ledger.close()
    return path


def test_an_honest_ledger_replays(tmp_path: Path) -> None:
    report = verify_path(written(tmp_path, nodes_of(STORY)), replay=True)
    assert (report.verdict, report.reason) == ("complete", "ok")


def test_a_seal_says_what_the_nodes_come_to_and_not_before_the_end(tmp_path: Path) -> None:
    nodes = nodes_of(STORY)
    for number, (story, outcome, said) in enumerate(
        (
            (nodes, "nothing-committed", "that comes to `committed`"),
            (nodes, "", "that comes to `committed`"),
            (nodes[:-1], "committed", "does not lead to its end"),
            (nodes_of(STORY[:-1]), "committed", "does not lead to its end"),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        report = verify_path(written(folder, story, outcome), replay=True)
        assert (report.verdict, report.reason, report.node) == ("tampered", "replay-mismatch", None)
        assert said in report.detail
        assert verify_path(str(folder / "ledger")).verdict == "complete"


def kind_of(nodes: list[Node], kind: NodeKind) -> int:
    return next(node.seq for node in nodes if node.kind is kind)


def as_released(nodes: list[Node]) -> list[Node]:
    """The signer says that the commit released the hook too."""
    at = next(node.seq for node in nodes if node.payload.get("intent") == "commit")
    changed = replace(nodes[at], payload={**nodes[at].payload, "effects": ["e1", "e2"]})
    return [changed if node.seq == at else node for node in nodes]


def other_reason(nodes: list[Node]) -> list[Node]:
    at = kind_of(nodes, NodeKind.DEFERRED)
    changed = replace(nodes[at], payload={**nodes[at].payload, "reason": "all is well"})
    return [changed if node.seq == at else node for node in nodes]


def other_policy(nodes: list[Node]) -> list[Node]:
    """The policy's text is swapped for one that would have let the hook pass; its digest stays."""
    at = kind_of(nodes, NodeKind.APM)
    text = 'version: 1\npreset: none\ncedar: |\n  @id("all")\n  permit(principal, action, resource);\n'
    changed = replace(nodes[at], payload={**nodes[at].payload, "policy_text": text})
    return [changed if node.seq == at else node for node in nodes]


def overturned(nodes: list[Node]) -> list[Node]:
    """The oracle's recorded answer says release, the nodes that follow say refused."""
    at = kind_of(nodes, NodeKind.RESOLUTION)
    payload = {**nodes[at].payload, "answers": [{"effect_id": "e2", "decision": "release", "reason": ""}]}
    changed = replace(nodes[at], payload=payload)
    return [changed if node.seq == at else node for node in nodes]


def invented_event(nodes: list[Node]) -> list[Node]:
    at = kind_of(nodes, NodeKind.TOOL_OUTPUT)
    changed = replace(nodes[at], payload={**nodes[at].payload, "event": "no-such-event"})
    return [changed if node.seq == at else node for node in nodes]


def extra_field(nodes: list[Node]) -> list[Node]:
    at = kind_of(nodes, NodeKind.TOOL_OUTPUT)
    changed = replace(nodes[at], payload={**nodes[at].payload, "note": "x"})
    return [changed if node.seq == at else node for node in nodes]


@pytest.mark.parametrize(
    "lie", [as_released, other_reason, other_policy, overturned, invented_event, extra_field]
)
def test_a_signed_lie_is_found_and_its_node_named(
    tmp_path: Path, lie: Callable[[list[Node]], list[Node]]
) -> None:
    honest = nodes_of(STORY)
    lied = lie(honest)
    path = written(tmp_path, lied)
    assert verify_path(path).verdict == "complete", "the lie is well signed"
    report = verify_path(path, replay=True)
    assert (report.verdict, report.reason) == ("tampered", "replay-mismatch")
    first = next(a.seq for a, b in zip(honest, lied, strict=True) if a != b)
    assert report.node is not None
    assert first <= report.node <= first + 1


def test_a_prefix_replays_and_knows_what_is_still_to_come(tmp_path: Path) -> None:
    honest = nodes_of(STORY)
    cut = kind_of(honest, NodeKind.DEFERRED)
    path = str(tmp_path / "ledger")
    ledger = LedgerWriter.create(path, run_id="r1", apm={}, key=SigningKey.generate())
    for node in honest[:cut]:
        ledger.append(node)
    ledger.barrier()
    ledger.close()
    last = list(replay(read_nodes(path)))[-1]
    assert [node.seq for node in last.pending] == [cut]
    assert last.pending[0] == honest[cut]
    assert verify_path(path, replay=True).verdict == "unfinished"
