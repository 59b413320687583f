"""`why` in words: each value, the rule, the span and the event that it comes from, and what the rule rests on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.test_policy_derivation_rules import STORIES, fixture_nodes, told

from interlock.model import events as ev
from interlock.model.places import Place
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.verdicts import Derivation
from interlock.monitor import event_from_payload, is_event
from interlock.policy.derivations import names
from interlock.policy.derivations.choice_table import CHOICE_RULES
from interlock.policy.derivations.table import RULES
from interlock.runtime.reasons import _RULES, _pages, chain_of
from interlock.verify.derivations import _recorded
from interlock.verify.report import ReadNode

assert fixture_nodes


def events_of(nodes: list[ReadNode]) -> dict[int, ev.Event]:
    return {
        node.seq: event_from_payload(node.payload)
        for node in nodes
        if node.payload is not None and is_event(node.payload)
    }


def test_every_rule_has_words() -> None:
    assert {rule.name for rule in (*RULES, *CHOICE_RULES)} == _RULES.keys()


@pytest.mark.parametrize("rule", STORIES)
def test_a_value_of_a_call_is_led_back_to_the_words_that_gave_it(rule: str, nodes: list[ReadNode]) -> None:
    story = STORIES[rule][0]
    told(story)
    derivations = [one for node in nodes for _effect, one in _recorded(node.payload or {})]
    last = derivations[-1]
    assert last is not None
    first, *premises = chain_of(last, events_of(nodes))
    assert first.startswith(f"{last.role} `{last.value}` <- {_RULES[rule]} ({rule}) <- `")
    where = "the task" if rule == "day-named" else "the result of e"
    assert f"` <- {where}" in first
    assert first.endswith(f"node {last.node}")
    assert len(premises) == len(last.premises)
    for line, premise in zip(premises, last.premises, strict=True):
        assert line.startswith(f"  {premise.role} `{premise.value}` <- ")
        assert "<- the task, node 0" in line or "<- the result of e" in line


def test_pages_are_what_was_read_with_success_and_is_still_kept(tmp_path: Path) -> None:
    (tmp_path / "inbound").write_bytes(b"first\xff" + b"second")
    read = NetRequest(method="GET", scheme="https", host="a.test", port=443, path="/")
    write = NetRequest(method="POST", scheme="https", host="a.test", port=443, path="/")

    def answer(effect: str, kept: str, status: int = 200) -> ev.ResponseReceived:
        done = NetResponse(outcome=Outcome.DONE, status=status, kept=kept)
        return ev.ResponseReceived(effect_id=effect, response=done)

    answers = [
        answer("e1", "6+6"),
        answer("e1", "0+5"),
        answer("e1", "0+6"),  # no text
        answer("e1", "99+9"),  # beyond the file's end
        answer("e1", ""),
        answer("e1", "x+y"),
        answer("e1", "0+5", 404),
        answer("e2", "0+5"),
        answer("e3", "0+5"),
        answer("e9", "0+5"),
    ]
    found = list(_pages(str(tmp_path / "inbound"), [read, write, None], answers))
    assert found == [(read, "second"), (read, "first")]
    assert list(_pages(str(tmp_path / "gone"), [read], answers)) == []


TASK = ev.TaskGiven(run_id="r", task="write .git/hooks/x", argv=("a",), started_at_ns="0")
READ = ev.FileRead(
    place=Place(root="workspace", path="docs/a.md"), opened=1, closed=2, staged=False, text="see AGENTS.md"
)
EVENTS: dict[int, ev.Event] = {
    0: TASK,
    3: ev.ActivityObserved(reads=(READ, READ), writes=()),
    7: ev.OracleAnswered(oracle="human", answers=()),
}


@pytest.mark.parametrize(
    ("rule", "node", "span", "said"),
    [
        (names.NAMED_IN_TASK, 0, (6, 18), "the task's own words name it (named-in-task) <- `.git/hooks/x` <- the task, node 0"),
        (names.NAMED_IN_FILE, 3, (18, 27), "(named-in-file) <- `AGENTS.md` <- the read of workspace:docs/a.md, node 3"),
        (names.NAMED_IN_POLICY, 0, (0, 0), "the policy itself names it (named-in-policy) <- the policy, node 0"),
        (names.PUBLISHED, 0, (0, 0), "the policy publishes this port (published) <- the policy, node 0"),
        (names.UNDER_ROOT, 0, (0, 0), "below a folder that was given to the run (under-root) <- the task, node 0"),
        (names.GRANTED, 7, (0, 0), "an oracle released the same before (granted) <- the answer of the oracle `human`, node 7"),
    ],
)  # fmt: skip
def test_a_value_of_a_change_or_a_request_is_led_back_too(
    rule: str, node: int, span: tuple[int, int], said: str
) -> None:
    one = Derivation(role="path", value="x", rule=rule, node=node, start=span[0], end=span[1])
    (line,) = chain_of(one, EVENTS)
    assert line.startswith("path `x` <- ")
    assert line.endswith(said)
