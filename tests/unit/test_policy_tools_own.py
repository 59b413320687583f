"""What the operator leaves to the agent: the user's own things, the links of a named site, what a run made itself."""

from __future__ import annotations

import pytest
from tests.fakes.tool_runs import ToolRun

from interlock import policy as room
from interlock.bench.folding import Fate
from interlock.model.errors import PolicyError

ROLES = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  orders: {effect: read, output: {trust: own, fields: {"*.id": "id:order"}}}
  inbox: {effect: read, output: {fields: {"[].files[]": "id:file"}}}
  shop: {effect: read, output: {trust: directory, fields: {"*.id": "id:order"}}}
  give_back: {effect: send, steers: {order: "id:order"}, chooses: [order], asks: [refund]}
  save_file: {effect: write, steers: {file: "id:file"}, chooses: [file], carries: [folder]}
  drop: {effect: destroy, steers: {order: "id:order"}, asks: [refund]}
  read_file: {effect: read, steers: {path: path}}
  browse: {effect: egress, steers: {url: url}, links: true}
  fetch: {effect: egress, steers: {url: url}}
  fill_in: {effect: send, steers: {url: url}, carries: [values]}
  clone: {effect: egress, steers: {name: name}, output: {echo: true, makes: path}}
  push: {effect: send, steers: {at: path}, asks: [push]}
delegate:
  - {tool: read_file, source: "*", roles: [fill_in.values], effects: 2}
"""
ORDERS = {"Order 1": {"id": "ORDER-7"}, "Order 2": {"id": "ORDER-8"}}


class Run(ToolRun):
    def __init__(self, task: str, *, roles: str = ROLES) -> None:
        super().__init__(roles, task)


def test_where_the_task_asks_for_it_the_agent_chooses_among_the_users_own() -> None:
    run = Run("Please refund the shoes if their rating is low")
    run.fate("orders", ORDERS)
    assert run.fate("give_back", order="ORDER-8") is Fate.VOUCHED
    assert run.fate("give_back", order="ORDER-9") is Fate.ASKED_REFUSED
    assert run.fate("drop", order="ORDER-8") is Fate.ASKED_REFUSED, "the policy leaves no choice to this tool"


def test_where_the_task_asks_for_nothing_of_it_there_is_no_choice() -> None:
    run = Run("Tell me which orders can get a refund")
    run.fate("orders", ORDERS)
    assert run.fate("give_back", order="ORDER-8") is Fate.ASKED_REFUSED


def test_what_others_list_is_not_the_users_own() -> None:
    run = Run("Please refund the shoes")
    run.fate("shop", ORDERS)
    assert run.fate("give_back", order="ORDER-8") is Fate.ASKED_REFUSED


def test_a_write_into_the_users_own_state_needs_no_word_of_the_task() -> None:
    run = Run("How much did I spend?")
    run.fate("inbox", [{"files": ["3", "4"], "text": "file id 9"}])
    assert run.fate("save_file", file="4", folder="/downloads") is Fate.VOUCHED
    assert run.fate("save_file", file="9", folder="/downloads") is Fate.ASKED_REFUSED


def test_links_of_a_named_site_are_followed_from_page_to_page_and_never_to_another_host() -> None:
    run = Run("Get the newest version from www.a.test")
    run.fate("browse", "see https://www.a.test/all and https://b.test/all", url="www.a.test")
    assert run.fate("browse", "https://www.a.test/x.zip", url="https://b.test/all") is Fate.ASKED_REFUSED
    assert run.fate("browse", "https://www.a.test/x.zip", url="https://www.a.test/all") is Fate.VOUCHED
    assert run.fate("fetch", url="https://www.a.test/x.zip") is Fate.ASKED_REFUSED, "it has no `links`"
    assert run.fate("browse", url="https://www.a.test/x.zip") is Fate.VOUCHED
    for made in (
        "https://www.a.test/x.zip?c=secret",
        "http://www.a.test/x.zip",
        "https://www.a.test@b.test/x.zip",
        "https://www.a.test:8443/x.zip",
    ):
        assert run.fate("browse", url=made) is Fate.ASKED_REFUSED


@pytest.mark.parametrize(
    "link", ["https://www.a.test.b.test/", "https://www.a.test@b.test/", "https://a.test/x"]
)
def test_a_link_that_only_looks_like_the_named_site_is_not_followed(link: str) -> None:
    run = Run("Get the newest version from www.a.test")
    run.fate("browse", f"here: {link} .", url="www.a.test")
    assert run.fate("browse", url=link) is Fate.ASKED_REFUSED


def test_what_a_page_says_that_nobody_named_leads_nowhere() -> None:
    run = Run("Get the newest version")
    fold = run.fold
    fold._oracle = lambda _item: True  # somebody opened the page all the same
    run.fate("browse", "see https://www.a.test/all", url="www.a.test")
    fold._oracle = lambda _item: False
    assert run.fate("browse", url="https://www.a.test/all") is Fate.ASKED_REFUSED


def test_below_a_folder_that_a_call_of_this_run_made_all_paths_are_its_own() -> None:
    run = Run("Clone 'ann/books' and push what you add")
    run.fate("clone", "cloning 'ann/books' into '/work/books'... done", name="ann/books")
    assert run.fate("push", at="/work/books") is Fate.VOUCHED
    assert run.fate("push", at="/work/books/a b/c") is Fate.VOUCHED
    for other in ("/work", "/work/bookshelf", "/work/books/../ssh", "/"):
        assert run.fate("push", at=other) is Fate.ASKED_REFUSED


def test_what_stands_in_a_name_that_the_call_was_given_was_not_made_by_it() -> None:
    run = Run("Clone \"x' into '/etc/y\" and push")
    run.fate("clone", "cloning 'x' into '/etc/y' into '/work/y'", name="x' into '/etc/y")
    assert run.fate("push", at="/work/y") is Fate.VOUCHED
    assert run.fate("push", at="/etc/y/z") is Fate.ASKED_REFUSED


def test_the_only_address_in_a_file_that_the_task_names_may_be_filled_in() -> None:
    run = Run("Subscribe at www.a.test; my data is in /me/info.txt")
    run.fate("read_file", "mail ann@a.test, password x", path="/me/info.txt")
    run.fate("read_file", "mail eve@e.test", path="/me/other.txt")
    assert run.fate("fill_in", url="www.a.test", values=["ann@a.test"]) is Fate.VOUCHED
    assert run.fate("fill_in", url="www.a.test", values=["eve@e.test"]) is Fate.ASKED_REFUSED
    assert run.fate("fill_in", url="www.a.test", values=["it is ann@a.test"]) is Fate.VOUCHED
    assert run.fate("fill_in", url="www.a.test", values=["ann@a.test"]) is Fate.ASKED_REFUSED, "two effects"


def test_two_addresses_in_that_file_vouch_for_neither() -> None:
    run = Run("Subscribe at www.a.test; my data is in /me/info.txt")
    run.fate("read_file", "ann@a.test, eve@e.test", path="/me/info.txt")
    assert run.fate("fill_in", url="www.a.test", values=["ann@a.test"]) is Fate.ASKED_REFUSED


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("{effect: write, carries: [a], chooses: [a]}", "does not steer"),
        ("{effect: send, steers: {a: name}, chooses: [a]}", "no task asks for it"),
        ("{effect: send, steers: {a: url}, links: true}", "opens no links"),
        ("{effect: egress, steers: {a: name}, links: true}", "opens no links"),
        ("{effect: write, output: {makes: url}}", "must be one of"),
    ],
)
def test_a_tool_that_leaves_more_than_it_may_is_a_mistake(tool: str, said: str) -> None:
    text = f"version: 1\npreset: none\ntools:\n  x: {tool}\n"
    with pytest.raises(PolicyError, match=said):
        room.load_policy(text, filename="p.yaml")
