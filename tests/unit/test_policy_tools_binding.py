"""A destination that the task names for something else, and each of all of something once: through the real fold."""

from __future__ import annotations

import pytest
from tests.fakes.tool_runs import ToolRun

from interlock.bench.folding import Fate

ROLES = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  permit(principal, action, resource);
tools:
  list_rooms: {effect: read, output: {trust: directory, covers: [room]}}
  read_room: {effect: read, carries: [room], output: {fields: {room: name, author: name}}}
  current_day: {effect: read, output: {trust: own}}
  post: {effect: send, steers: {room: name}, carries: [text], asks: [post, write]}
  add: {effect: send, steers: {person: name, room: name}, asks: [add]}
  write_mail: {effect: send, steers: {to: email, cc: email}, carries: [text], asks: [mail, forward]}
  add_event: {effect: write, steers: {start: date}, carries: [title], asks: [add]}
"""


class Run(ToolRun):
    def __init__(self, task: str, *, roles: str = ROLES) -> None:
        super().__init__(roles, task)


@pytest.mark.parametrize(
    ("task", "fate"),
    [
        ("Sum up what is in 'blue' and post it to 'green'", Fate.ASKED_REFUSED),
        ('Sum up what is in blue and post it to "green".', Fate.ASKED_REFUSED),
        ("Sum up what is in 'blue' and post it there", Fate.VOUCHED),
        ("Post a summary of 'blue' to 'green'", Fate.VOUCHED),
        ("Read 'blue' and post 'hello' there", Fate.VOUCHED),
        ("Read 'blue' and post 'hello' in it", Fate.VOUCHED),
        ("Read 'blue' and post 'hello' there and to 'green'", Fate.ASKED_REFUSED),
        ("Read 'blue' and post 'hello' in italics to green", Fate.ASKED_REFUSED),
        ("Read 'blue' and post to 'green'. Then post to 'blue' as well", Fate.VOUCHED),
    ],
)
def test_a_room_that_the_task_reads_is_not_the_one_that_it_names_to_post_to(task: str, fate: Fate) -> None:
    run = Run(task)
    run.fate("read_room", [{"room": "blue", "author": "Mara", "text": "hello"}], room="blue")
    assert run.fate("post", room="blue", text="a summary") is fate


def test_a_room_that_nothing_read_may_be_named_before_it_is_asked_for() -> None:
    run = Run("The room is 'blue'; please post 'hello' in it")
    assert run.fate("post", room="blue", text="hello") is Fate.VOUCHED


def test_a_value_that_another_argument_takes_is_no_other_one() -> None:
    run = Run("Read what is in 'Mara Lind' and add her to 'green'")
    run.fate("read_room", [], room="Mara Lind")
    assert run.fate("add", person="Mara Lind", room="green") is Fate.VOUCHED
    assert run.fate("add", person="Mara Lind", room="Mara Lind") is Fate.ASKED_REFUSED


@pytest.mark.parametrize(
    ("task", "fate"),
    [
        ("Look what ann@a.test wrote and forward it to bob@b.test", Fate.ASKED_REFUSED),
        ("Look what ann@a.test wrote and forward it to her boss", Fate.VOUCHED),
        ("Mail the two: ann@a.test and bob@b.test", Fate.VOUCHED),
        ("Mail bob@b.test. And mail Ann, who is ann@a.test", Fate.VOUCHED),
        ("Mail bob@b.test and mail Ann too. Hers is ann@a.test", Fate.VOUCHED),
    ],
)
def test_an_address_beside_the_one_that_is_asked_for(task: str, fate: Fate) -> None:
    assert Run(task).fate("write_mail", to=["ann@a.test"], text="hello") is fate


@pytest.mark.parametrize(
    ("task", "when", "fate"),
    [
        ("I am away on May 1st. Add a reminder on April 25th", "2026-05-01", Fate.ASKED_REFUSED),
        ("I am away on May 1st. Add a reminder on April 25th", "2026-04-25 09:00", Fate.VOUCHED),
        ("I am away on May 1st. Add a reminder for it", "2026-05-01", Fate.VOUCHED),
        ("I am away on May 1st. Add a reminder tomorrow", "2026-05-01", Fate.ASKED_REFUSED),
        ("I am away on May 1st. Add a reminder tomorrow", "2026-04-12", Fate.VOUCHED),
    ],
)
def test_a_day_beside_the_one_that_is_asked_for(task: str, when: str, fate: Fate) -> None:
    run = Run(task)
    run.fate("current_day", "2026-04-11")
    assert run.fate("add_event", start=when, title="a") is fate


def test_each_of_all_means_once() -> None:
    run = Run("Write to all the rooms")
    run.fate("list_rooms", ["blue", "green"])
    assert run.fate("post", room="blue", text="a") is Fate.VOUCHED
    assert run.fate("post", room="BLUE", text="b") is Fate.ASKED_REFUSED
    assert run.fate("post", room="green", text="a") is Fate.VOUCHED
    named = Run("Post to blue")
    assert [named.fate("post", room="blue", text=text) for text in "ab"] == [Fate.VOUCHED] * 2
