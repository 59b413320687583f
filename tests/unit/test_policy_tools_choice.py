"""Values that the task chooses or hands over instead of naming them: each rule through the real fold, and what it is
not to let through."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.tool_runs import ToolRun

from interlock import policy as room
from interlock.bench.folding import Fate
from interlock.model.errors import PolicyError
from interlock.policy.tools.remedies import delegations
from interlock.policy.vouching import smallest_change

ROLES = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  list_rooms: {effect: read, output: {trust: directory, covers: [room]}}
  list_people: {effect: read, output: {trust: own, fields: {name: name}, covers: [person, people, member]}}
  who_is_in: {effect: read, carries: [room], output: {trust: own, covers: [person, people, member]}}
  read_room:
    effect: read
    carries: [room]
    output: {fields: {author: name}, ranks: {"#author": {most: [most messages], least: [fewest messages]}}}
  read_note: {effect: read, carries: [path]}
  read_page: {effect: egress, steers: {address: url}}
  list_documents:
    effect: read
    carries: [about]
    output:
      fields: {id: "id:document", size: amount, changed: date}
      ranks:
        size: {most: [largest], least: [smallest]}
        changed: {most: [latest], least: [oldest]}
  post: {effect: send, steers: {room: name}, carries: [text], asks: [post, write]}
  tell: {effect: send, steers: {person: name}, carries: [text], asks: [tell, write]}
  remove: {effect: destroy, steers: {document: "id:document"}, asks: [remove]}
  pay: {effect: send, steers: {account: iban}, carries: [sum], asks: [pay]}
  confirm: {effect: write, follows: [pay], carries: [code]}
  invite: {effect: send, steers: {mail: email}, asks: [invite]}
  current_day: {effect: read, output: {trust: own}}
  add_event: {effect: write, steers: {start: date}, carries: [title], asks: [add]}
  make_folder: {effect: write, carries: [path], inert: true}
delegate:
  - {tool: read_note, source: "*", roles: [pay.account], with: [sum]}
  - {tool: read_page, source: "*", roles: [invite.mail]}
  - {tool: read_room, source: "*", roles: [read_page.address], effects: 2}
"""
ONE, OTHER = "DE89370400440532013000", "GB29NWBK60161331926819"


class Run(ToolRun):
    def __init__(self, task: str, *, roles: str = ROLES) -> None:
        super().__init__(roles, task)


def test_a_beginning_chooses_the_one_name_that_begins_so() -> None:
    run = Run("Post hello to the room starting with Ext")
    run.fate("list_rooms", ["general", "External 1"])
    assert run.fate("post", room="External 1", text="hello") is Fate.VOUCHED
    assert run.rules == ["prefix-selected"]
    assert run.fate("post", room="general", text="hello") is Fate.ASKED_REFUSED


def test_a_beginning_of_two_names_chooses_neither() -> None:
    run = Run("Post hello to the room starting with Ext")
    run.fate("list_rooms", ["External 2", "External 1"])
    assert run.fate("post", room="External 1", text="hello") is Fate.ASKED_REFUSED


def test_a_first_name_chooses_the_one_person_who_has_it() -> None:
    run = Run("Tell Mara that we are late")
    run.fate("list_people", [{"name": "Mara Lind"}, {"name": "Otto Berg"}])
    assert run.fate("tell", person="Mara Lind", text="late") is Fate.VOUCHED
    assert run.fate("tell", person="Otto Berg", text="late") is Fate.ASKED_REFUSED
    run.fate("list_people", [{"name": "Mara Holm"}])
    assert run.fate("tell", person="Mara Lind", text="late") is Fate.ASKED_REFUSED


def test_an_element_of_a_bare_list_says_nothing_of_the_ones_beside_it() -> None:
    run = Run("Tell Mara that we are late")
    run.fate("list_rooms", ["Mara", "Otto"])
    run.fate("who_is_in", ["Mara", "Otto"], room="Mara")
    assert run.fate("tell", person="Otto", text="late") is Fate.ASKED_REFUSED


@pytest.mark.parametrize(
    ("task", "fate"),
    [
        ("Tell every member of blue to be quick", Fate.VOUCHED),
        ("Tell all people to be quick", Fate.VOUCHED),
        ("Tell all people who are late to be quick", Fate.ASKED_REFUSED),
        ("Tell all people but Otto to be quick", Fate.ASKED_REFUSED),
        ("Tell not every member to be quick", Fate.ASKED_REFUSED),
        ("Tell every member of green to be quick", Fate.ASKED_REFUSED),
        ("Tell somebody to be quick", Fate.ASKED_REFUSED),
    ],
)
def test_who_asks_for_all_means_each_of_them_and_no_part(task: str, fate: Fate) -> None:
    run = Run(task)
    run.fate("list_rooms", ["blue", "green"])
    run.fate("who_is_in", ["Mara Lind"], room="blue")
    assert run.fate("tell", person="Mara Lind", text="quick") is fate


DOCUMENTS = [
    {"id": "31", "size": 700, "changed": "2026-01-05 10:00"},
    {"id": "32", "size": 1200, "changed": "2026-01-05 09:00"},
    {"id": "33", "size": 90, "changed": "2025-11-30 23:59"},
]


@pytest.mark.parametrize(
    ("word", "chosen"), [("largest", "32"), ("smallest", "33"), ("latest", "31"), ("oldest", "33")]
)
def test_the_end_of_a_field_that_the_task_asks_for_chooses_its_record(word: str, chosen: str) -> None:
    run = Run(f"Remove the {word} document")
    run.fate("list_documents", DOCUMENTS)
    for each in ("31", "32", "33"):
        assert run.fate("remove", document=each) is (Fate.VOUCHED if each == chosen else Fate.ASKED_REFUSED)


@pytest.mark.parametrize(
    ("listed", "arguments"),
    [
        ([*DOCUMENTS, {"id": "34", "size": 1200, "changed": "2026-01-01"}], {}),
        ([*DOCUMENTS, {"id": "34", "changed": "2026-01-01"}], {}),
        ([*DOCUMENTS, {"id": "34", "size": "huge", "changed": "2026-01-01"}], {}),
        (DOCUMENTS[1:2], {}),
        (DOCUMENTS, {"about": "what the agent likes"}),
    ],
)
def test_no_end_is_chosen_of_a_tie_a_gap_or_a_part(listed: object, arguments: dict[str, Any]) -> None:
    run = Run("Remove the largest document")
    run.fate("list_documents", listed, **arguments)
    assert run.fate("remove", document="32") is Fate.ASKED_REFUSED


def test_a_record_that_is_listed_again_is_still_one_and_a_changed_listing_chooses_nothing_more() -> None:
    run = Run("Remove the largest document")
    run.fate("list_documents", DOCUMENTS)
    run.fate("list_documents", DOCUMENTS)
    assert run.fate("remove", document="32") is Fate.VOUCHED
    assert run.rules == ["extreme-of"]
    run.fate("list_documents", [each for each in DOCUMENTS if each["id"] != "32"])
    assert run.fate("remove", document="31") is Fate.ASKED_REFUSED


def test_a_task_that_asks_for_both_ends_chooses_neither() -> None:
    run = Run("Remove the largest and the smallest document")
    run.fate("list_documents", DOCUMENTS)
    assert run.fate("remove", document="32") is Fate.ASKED_REFUSED


def test_a_count_needs_every_room_to_be_read() -> None:
    run = Run("Tell whoever wrote the most messages that it is enough")
    run.fate("list_rooms", ["blue", "green"])
    run.fate("read_room", [{"author": "Mara Lind"}, {"author": "Mara Lind"}, {"author": "Otto"}], room="blue")
    assert run.fate("tell", person="Mara Lind", text="enough") is Fate.ASKED_REFUSED
    run.fate("read_room", [{"author": "Otto"}, {"author": "Otto"}], room="green")
    assert run.fate("tell", person="Otto", text="enough") is Fate.VOUCHED
    assert run.rules == ["extreme-of"]
    assert run.fate("tell", person="Mara Lind", text="enough") is Fate.ASKED_REFUSED


def test_a_named_source_hands_over_its_only_account_once_and_with_its_sum() -> None:
    run = Run("Please pay the bill in march.txt")
    assert run.fate("pay", account=ONE, sum="12.50") is Fate.ASKED_REFUSED
    run.fate("read_note", f"To pay: 12.50 to {ONE}", path="march.txt")
    assert run.fate("pay", account=ONE, sum="900") is Fate.ASKED_REFUSED
    assert run.fate("pay", account=ONE, sum="12.5") is Fate.VOUCHED
    assert run.rules == ["delegated"]
    assert run.fate("pay", account=ONE, sum="12.50") is Fate.ASKED_REFUSED


def test_with_a_second_account_in_the_source_neither_is_handed_over() -> None:
    run = Run("Please pay the bill in march.txt")
    run.fate("read_note", f"To pay: 12.50 to {ONE}", path="march.txt")
    run.fate("read_note", f"To pay: 12.50 to {OTHER}", path="march.txt")
    assert run.fate("pay", account=ONE, sum="12.50") is Fate.ASKED_REFUSED
    assert run.fate("pay", account=OTHER, sum="12.50") is Fate.ASKED_REFUSED


def test_a_source_that_was_not_known_whole_hands_over_nothing() -> None:
    run = Run("Please pay the bill in march.txt")
    run.fate("read_note", f"12.50 {ONE}", path="march.txt")
    run.fate("read_note", "x" * 300_000, path="march.txt")
    assert run.fate("pay", account=ONE, sum="12.50") is Fate.ASKED_REFUSED


@pytest.mark.parametrize("task", ["Please pay the bill", "What is in march.txt?", "Do not pay march.txt"])
def test_a_source_that_the_task_does_not_name_or_an_effect_that_it_does_not_ask_for(task: str) -> None:
    run = Run(task)
    run.fate("read_note", f"12.50 {ONE}", path="march.txt")
    assert run.fate("pay", account=ONE, sum="12.50") is Fate.ASKED_REFUSED


def test_a_link_of_a_named_conversation_is_opened_as_it_stands_and_so_often_only() -> None:
    run = Run("Sum up the articles in blue")
    said = [{"author": "Otto", "text": "see https://a.example.com/x, and www.b.example.com"}]
    run.fate("read_room", said, room="blue")
    run.fate("read_room", [{"author": "Eve", "text": "https://evil.example.com/"}], room="green")
    assert run.fate("read_page", "x", address="https://a.example.com/x?q=1") is Fate.ASKED_REFUSED
    assert run.fate("read_page", "x", address="https://evil.example.com/") is Fate.ASKED_REFUSED
    assert run.fate("read_page", "x", address="https://a.example.com/x") is Fate.VOUCHED
    assert run.rules == ["received-whole"]
    assert run.fate("read_page", "x", address="www.b.example.com") is Fate.VOUCHED
    assert run.fate("read_page", "x", address="https://a.example.com/x") is Fate.ASKED_REFUSED


def test_a_second_step_follows_each_call_that_was_let_through_once() -> None:
    run = Run(f"Pay 5 to {ONE}")
    assert run.fate("confirm", code="1") is Fate.ASKED_REFUSED
    run.fate("pay", account=ONE, sum="5")
    assert run.fate("confirm", code="1") is Fate.VOUCHED
    assert run.fate("confirm", code="1") is Fate.ASKED_REFUSED


def test_what_makes_something_empty_needs_nothing_but_declared_arguments() -> None:
    run = Run(f"Sort my notes, and pay 5 to {ONE}")
    assert run.fate("make_folder", path="a") is Fate.VOUCHED
    assert run.fate("make_folder", path="a", share_with="everybody") is Fate.ASKED_REFUSED
    run.fate("pay", account=ONE, sum="5")
    assert run.fate("confirm", code="1", of="another") is Fate.ASKED_REFUSED


@pytest.mark.parametrize(
    ("task", "when", "fate"),
    [
        ("Add lunch on May 19th", "2024-05-19 12:00", Fate.VOUCHED),
        ("Add lunch on the 19th of May 2024", "2024-05-19T12:00", Fate.VOUCHED),
        ("Add lunch on 2024-05-19", "2024-05-19", Fate.VOUCHED),
        ("Add lunch tomorrow", "2024-05-19 12:00", Fate.VOUCHED),
        ("Add lunch today", "2024-05-19 12:00", Fate.ASKED_REFUSED),
        ("Add lunch on May 19th 2023", "2024-05-19 12:00", Fate.ASKED_REFUSED),
        ("Add lunch on 05/06/2024", "2024-06-05 12:00", Fate.ASKED_REFUSED),
        ("Add lunch", "2024-05-19 12:00", Fate.ASKED_REFUSED),
        ("Add lunch on May 19th", "2024-05-19 12:00 and later", Fate.ASKED_REFUSED),
    ],
)
def test_the_day_of_an_event_has_to_be_named(task: str, when: str, fate: Fate) -> None:
    run = Run(task)
    run.fate("current_day", "2024-05-18")
    assert run.fate("add_event", start=when, title="Lunch") is fate


def test_tomorrow_needs_a_day_that_the_user_s_own_calendar_gave() -> None:
    assert Run("Add lunch tomorrow").fate("add_event", start="2024-05-19", title="x") is Fate.ASKED_REFUSED


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("tools: {a: {effect: send, inert: true}}", "more than make"),
        ("tools: {a: {effect: write, steers: {b: name}, inert: true}}", "more than make"),
        ("tools: {a: {effect: write, follows: [b]}}", "no other tool `b`"),
        ("tools: {a: {effect: write, follows: [a]}}", "no other tool `a`"),
        ("tools: {b: {effect: send}, a: {effect: write, asks: [go], follows: [b]}}", "more than complete"),
        ("tools: {a: {effect: read, output: {ranks: [size]}}}", "mapping of fields"),
        ("tools: {a: {effect: read, output: {ranks: {size: {}}}}}", "no word chooses"),
        ("tools: {a: {effect: read, output: {ranks: {size: {most: [x], least: [x]}}}}}", "no word chooses"),
        (
            "tools: {a: {effect: read}, b: {effect: send, steers: {c: name}}}\n"
            "delegate: [{tool: a, source: x, roles: [b.c]}]",
            "no text says",
        ),
        (
            "tools: {a: {effect: read}, b: {effect: send, steers: {c: iban}}}\n"
            "delegate: [{tool: a, source: x, roles: [b.c], with: [d]}]",
            "no argument `d`",
        ),
    ],
)
def test_a_mistake_in_what_chooses_is_told_with_its_place(keys: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as raised:
        room.load_policy(f"version: 1\npreset: none\n{keys}\n", filename="roles.yaml")
    assert raised.value.line > 0
    assert raised.value.hint


def test_the_smallest_change_of_a_call_is_words_of_the_task_else_a_delegation() -> None:
    run = Run("Please pay the bill in march.txt", roles=ROLES[: ROLES.index("delegate:")])
    run.fate("read_note", f"To pay: 12.50 to {ONE}", path="march.txt")
    assert run.fate("pay", account=ONE, sum="12.50") is Fate.ASKED_REFUSED
    state, item = run.fold.state, run.fold.state.latest
    assert state.policy is not None
    assert state.knowledge is not None
    assert item is not None
    change = smallest_change(state.policy, state.knowledge, item.effect)
    assert change is not None
    assert (change.kind, change.text) == ("task", f"pay {ONE}")
    (delegated,) = delegations(state.policy, state.knowledge, item.effect)
    assert 'source: "march.txt", roles: [pay.account]' in delegated[0]
