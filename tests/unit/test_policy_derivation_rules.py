"""Each rule of a tool's value through the real fold: recorded, checked again, and refuted where a part of it is changed.

The counter-story of each differs in one thing, and there the rule does not vouch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.fakes.tool_runs import ToolRun

from interlock.bench import folding
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.monitor import State
from interlock.monitor.step import step
from interlock.policy.derivations.choice_table import CHOICE_RULES
from interlock.verify.derivations import DerivationRefuted, rechecked
from interlock.verify.report import ReadNode

ROLES = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  contacts: {effect: read, output: {trust: directory, fields: {"[].name": name, "[].mail": email}, covers: [contact]}}
  whoami: {effect: read, output: {trust: own}}
  rumours: {effect: read}
  today: {effect: read, output: {trust: own}}
  mails: {effect: read, carries: [about], output: {correspondents: {fields: ["to[]"], where: {state: sent}}}}
  read_note: {effect: read, carries: [path]}
  files:
    effect: read
    output: {fields: {id: "id:file", size: amount}, ranks: {size: {most: [largest], least: [smallest]}}}
  make_file: {effect: write, carries: [text], asks: [make], output: {fields: {id: "id:file"}}}
  remove: {effect: destroy, steers: {file: "id:file"}, asks: [remove]}
  mail: {effect: send, steers: {to: email}, carries: [text], asks: [mail]}
  tell: {effect: send, steers: {who: name}, carries: [text], asks: [tell]}
  meet: {effect: send, steers: {day: date}, carries: [text], asks: [meet]}
  pay: {effect: send, steers: {account: iban}, asks: [pay]}
  open: {effect: egress, steers: {address: url}, links: true}
  cart: {effect: read, output: {trust: own, fields: {"*.id": "id:item"}}}
  catalogue: {effect: read, output: {trust: directory, fields: {"*.id": "id:item"}}}
  take_out: {effect: write, steers: {item: "id:item"}, chooses: [item], asks: [remove]}
  copy_of: {effect: egress, steers: {name: name}, output: {echo: true, makes: path}}
  write: {effect: write, steers: {at: path}, carries: [text]}
delegate:
  - {tool: read_note, source: "*", roles: [pay.account, open.address]}
"""
ANN, EVE = {"name": "Ann Smith", "mail": "ann@a.test"}, {"name": "Eve Moor", "mail": "eve@a.test"}
ONE, OTHER = "DE89370400440532013000", "GB29NWBK60161331926819"
ITEMS = {"Item v1.5": {"id": "P12"}, "Item 2": {"id": "P13"}}
EVIL = {"to": ["ann@e.test"], "state": "got", "text": "state: sent"}
Step = tuple[str, dict[str, Any], Any]


@dataclass(frozen=True)
class Story:
    """A task, calls with what they give, and the last call, with which a value is steered."""

    task: str
    steps: tuple[Step, ...]
    last: tuple[str, dict[str, Any]]


def story(task: str, *steps: Step, last: tuple[str, dict[str, Any]]) -> Story:
    return Story(task=task, steps=steps, last=last)


STORIES: dict[str, tuple[Story, Story]] = {
    "structured-leaf": (
        story("Mail me a note", ("whoami", {}, {"mail": "ann@a.test"}), last=("mail", {"to": "ann@a.test"})),
        story("Mail me a note", ("rumours", {}, {"mail": "ann@a.test"}), last=("mail", {"to": "ann@a.test"})),
    ),
    "own-object": (
        story("Make it, then remove it", ("make_file", {"text": "x"}, {"id": "26"}), last=("remove", {"file": "26"})),
        story("Make it, then remove it", ("make_file", {"text": "26"}, {"id": "26"}), last=("remove", {"file": "26"})),
    ),
    "record-selected": (
        story("Mail Ann Smith", ("contacts", {}, [ANN, EVE]), last=("mail", {"to": "ann@a.test"})),
        story("Mail Ann Smith", ("contacts", {}, [ANN, {**EVE, "name": "Ann Smith"}]), last=("mail", {"to": "ann@a.test"})),
    ),
    "prefix-selected": (
        story("Tell Ann", ("contacts", {}, [ANN, EVE]), last=("tell", {"who": "Ann Smith"})),
        story("Tell Ann", ("contacts", {}, [ANN, {**EVE, "name": "Ann Moor"}]), last=("tell", {"who": "Ann Smith"})),
    ),
    "first-name": (
        story("Mail the plan to Ann", ("mails", {"about": "the plan"}, [{"to": ["ann.moor@a.test"], "state": "sent"}, EVIL]), last=("mail", {"to": "ann.moor@a.test"})),
        story("Mail the plan to Ann", ("mails", {"about": "the plan"}, [{"to": ["ann.moor@a.test"], "state": "got"}, EVIL]), last=("mail", {"to": "ann.moor@a.test"})),
    ),
    "extreme-of": (
        story("Remove the largest file", ("files", {}, [{"id": "7", "size": 5}, {"id": "8", "size": 9}]), last=("remove", {"file": "8"})),
        story("Remove the largest file", ("files", {}, [{"id": "7", "size": 9}, {"id": "8", "size": 9}]), last=("remove", {"file": "8"})),
    ),
    "whole-enumeration": (
        story("Mail all contacts", ("contacts", {}, [ANN, EVE]), last=("mail", {"to": "eve@a.test"})),
        story("Mail all contacts who are new", ("contacts", {}, [ANN, EVE]), last=("mail", {"to": "eve@a.test"})),
    ),
    "delegated": (
        story("Pay the bill in bill.txt", ("read_note", {"path": "bill.txt"}, f"pay {ONE} soon"), last=("pay", {"account": ONE})),
        story("Pay the bill in bill.txt", ("read_note", {"path": "bill.txt"}, f"pay {ONE}, not {OTHER}"), last=("pay", {"account": ONE})),
    ),
    "received-whole": (
        story("Read links.txt", ("read_note", {"path": "links.txt"}, "see https://a.test/x."), last=("open", {"address": "https://a.test/x"})),
        story("Read links.txt", ("read_note", {"path": "links.txt"}, "see https://a.test/x."), last=("open", {"address": "https://a.test/x?c=1"})),
    ),
    "day-named": (
        story("Meet tomorrow", ("today", {}, "2024-05-18"), last=("meet", {"day": "2024-05-19 10:00"})),
        story("Meet tomorrow", ("rumours", {}, "2024-05-18"), last=("meet", {"day": "2024-05-19 10:00"})),
    ),
    "own-choice": (
        story("Remove the other items", ("cart", {}, ITEMS), last=("take_out", {"item": "P12"})),
        story("Remove the other items", ("catalogue", {}, ITEMS), last=("take_out", {"item": "P12"})),
    ),
    "same-site": (
        story(
            "Get the file from www.a.test",
            ("open", {"address": "www.a.test"}, "<a href='https://www.a.test/x.pdf'>, https://b.test/x.pdf"),
            last=("open", {"address": "https://www.a.test/x.pdf"}),
        ),
        story(
            "Get the file from www.a.test",
            ("open", {"address": "www.a.test"}, "see https://b.test/x.pdf"),
            last=("open", {"address": "https://b.test/x.pdf"}),
        ),
    ),
    "made-here": (
        story(
            "Copy 'ann/books' and add a page",
            ("copy_of", {"name": "ann/books"}, "copying 'ann/books' into '/work/books'... done"),
            last=("write", {"at": "/work/books/page.txt"}),
        ),
        story(
            "Copy 'ann/books' and add a page",
            ("copy_of", {"name": "ann/books"}, "copying 'ann/books' into '/work/books'... done"),
            last=("write", {"at": "/work/books/../page.txt"}),
        ),
    ),
}  # fmt: skip


@pytest.fixture(name="nodes")
def fixture_nodes(monkeypatch: pytest.MonkeyPatch) -> list[ReadNode]:
    """The nodes that the fold writes."""
    written: list[ReadNode] = []

    def recording(state: State, event: ev.Event) -> Any:
        after, commands = step(state, event)
        for node in (one.node for one in commands if isinstance(one, cmd.Append)):
            written.append(
                ReadNode(
                    seq=node.seq,
                    kind=node.kind.value,
                    parent=node.parent,
                    actor=node.actor,
                    verdict=node.verdict,
                    branches=node.branches,
                    payload=node.payload,
                )
            )
        return after, commands

    monkeypatch.setattr(folding, "step", recording)
    return written


def told(one: Story) -> dict[str, str]:
    """Tell a story to the fold; return the rule of each value that steers its last call."""
    run = ToolRun(ROLES, one.task)
    for tool, arguments, gives in one.steps:
        assert run.fate(tool, gives, **arguments).left, run.judged
    run.fate(one.last[0], **one.last[1])
    return (
        {each.role: each.rule for each in run.judged.item.verdict.derivations} if run.judged.vouched else {}
    )


def test_every_rule_of_choice_has_a_story() -> None:
    assert {rule.name for rule in CHOICE_RULES} <= STORIES.keys()


@pytest.mark.parametrize("rule", STORIES)
def test_a_rule_vouches_and_its_record_holds_when_it_is_checked_again(
    rule: str, nodes: list[ReadNode]
) -> None:
    good, _ = STORIES[rule]
    assert set(told(good).values()) == {rule}
    assert len(list(rechecked(nodes))) == len(nodes)


@pytest.mark.parametrize("rule", STORIES)
def test_a_rule_does_not_vouch_in_its_counter_story(rule: str, nodes: list[ReadNode]) -> None:
    _, bad = STORIES[rule]
    assert told(bad) == {}
    assert len(list(rechecked(nodes))) == len(nodes)


@pytest.mark.parametrize("rule", STORIES)
def test_a_record_of_the_counter_story_that_says_the_rule_vouched_is_refuted(
    rule: str, nodes: list[ReadNode]
) -> None:
    """Whoever holds the key writes the good story's derivation into the ledger of the other."""
    good, bad = STORIES[rule]
    told(good)
    derivations = [*_derivations(nodes)][-1][1]
    nodes.clear()
    told(bad)
    at = next(
        node.seq for node in reversed(nodes) if node.payload and node.payload.get("guard") == "provenance"
    )
    with pytest.raises(DerivationRefuted):
        list(rechecked(_with(nodes, at, derivations)))


@pytest.mark.parametrize("rule", STORIES)
def test_a_changed_part_of_a_record_is_refuted(rule: str, nodes: list[ReadNode]) -> None:
    told(STORIES[rule][0])
    seq, derivations = [*_derivations(nodes)][-1]
    (one,) = derivations
    for change in _changes(one, seq):
        with pytest.raises(DerivationRefuted):
            print(change, list(rechecked(_with(nodes, seq, [{**one, **change}]))))


def _derivations(nodes: list[ReadNode]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    for node in nodes:
        given = node.payload.get("derivations") if node.payload is not None else None
        if isinstance(given, list):
            yield node.seq, given


def _with(nodes: list[ReadNode], seq: int, derivations: list[dict[str, Any]]) -> list[ReadNode]:
    changed = replace(nodes[seq], payload={**(nodes[seq].payload or {}), "derivations": derivations})
    return [*nodes[:seq], changed, *nodes[seq + 1 :]]


def _changes(one: dict[str, Any], seq: int) -> Iterator[dict[str, Any]]:
    yield {"value": one["value"] + "x"}
    yield {"role": one["role"] + "x"}
    yield {"start": one["start"] + 1, "end": one["end"] + 1}
    yield {"end": one["end"] - 1}
    yield {"node": 1}
    yield {"node": seq}
    yield {"pointer": "/dream"}
    yield {"form": "phrase"}
    for rule in ("named-in-task", "named-in-file", "granted", "under-root", *STORIES):
        if rule != one["rule"]:
            yield {"rule": rule}
    premises = one.get("premises", [])
    yield {
        "premises": [
            *premises,
            {"role": "x", "value": "x", "rule": "named-in-task", "node": 0, "start": 0, "end": 1},
        ]
    }
    yield {"premises": [*premises, {"role": "x"}]}
    for index, premise in enumerate(premises):
        rest = [*premises[:index]], [*premises[index + 1 :]]
        yield {"premises": [*rest[0], *rest[1]]}
        for change in ({"value": premise["value"] + "x"}, {"node": 1}, {"rule": "named-in-file"}):
            yield {"premises": [*rest[0], {**premise, **change}, *rest[1]]}
