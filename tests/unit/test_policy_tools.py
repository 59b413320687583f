"""Tool calls through the real fold: what vouches for a steering value, and the counter-example of each rule."""

from __future__ import annotations

import pytest
from tests.fakes.tool_runs import ToolRun

from interlock import policy as room
from interlock.bench.folding import Fate, Folding
from interlock.model.errors import PolicyError
from interlock.model.tools import ToolCall

ROLES = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  search_contacts:
    effect: read
    carries: [query]
    output: {trust: directory, fields: {"[].name": name, "[].address": email}}
  list_documents:
    effect: read
    output: {fields: {"[].id": "id:document", "[].title": name}}
  whoami: {effect: read, output: {trust: own, level: secret}}
  read_page: {effect: egress, steers: {address: url}}
  make_document:
    effect: write
    steers: {title: name}
    carries: [text]
    asks: [create, make]
    output: {echo: true, fields: {id: "id:document", title: name}}
  share_document: {effect: send, steers: {document: "id:document", person: email}, asks: [share], output: {echo: true}}
  remove_document: {effect: destroy, steers: {document: "id:document"}, asks: [delete, remove], output: {echo: true}}
  write_mail:
    effect: send
    steers: {to: email}
    acts: {files: "id:document"}
    carries: [text]
    asks: [send, mail]
    output: {echo: true}
"""


class Run(ToolRun):
    def __init__(self, task: str, *, roles: str = ROLES) -> None:
        super().__init__(roles, task)


def test_a_recipient_that_the_task_names_is_vouched_for_and_another_is_not() -> None:
    run = Run("Please send a short note to ann@example.com")
    assert run.fate("write_mail", to=["ann@example.com"], text="hello") is Fate.VOUCHED
    assert run.rules == ["named-in-task"]
    assert run.fate("write_mail", to=["nn@example.com"], text="hello") is Fate.ASKED_REFUSED
    assert run.fate("write_mail", to=["ann@example.com", "eve@example.com"], text="x") is Fate.ASKED_REFUSED


def test_a_named_recipient_does_not_vouch_for_another_kind_of_effect() -> None:
    run = Run("What did ann@example.com write about the document with ID 7?")
    assert run.fate("share_document", document="7", person="ann@example.com") is Fate.ASKED_REFUSED
    assert "does not ask" in run.reason


def test_a_link_in_what_is_carried_has_to_be_named_too() -> None:
    run = Run("Send ann@example.com the link https://good.example.com/a")
    to = ["ann@example.com"]
    assert run.fate("write_mail", to=to, text="see https://good.example.com/a.") is Fate.VOUCHED
    assert run.fate("write_mail", to=to, text="see https://bad.example.com/a") is Fate.ASKED_REFUSED
    assert run.fate("write_mail", to=to, text="ask eve@bad.example.com") is Fate.ASKED_REFUSED
    assert run.fate("write_mail", to=to, text="SEE WWW.BAD.EXAMPLE.COM") is Fate.ASKED_REFUSED
    assert run.fate("write_mail", to=to, text="see HTTPS://bad.example.com") is Fate.ASKED_REFUSED


def test_an_attachment_steers() -> None:
    run = Run("Send a note to ann@example.com")
    assert run.fate("write_mail", to=["ann@example.com"], text="a", files=["7"]) is Fate.ASKED_REFUSED


def test_a_record_is_selected_by_the_field_that_the_task_names() -> None:
    run = Run("Send Ann Smith the minutes")
    people = [{"name": "Ann Smith", "address": "ann@a.test"}, {"name": "Eve Moor", "address": "eve@a.test"}]
    assert run.fate("search_contacts", people, query="a") is Fate.VOUCHED
    assert run.fate("write_mail", to=["ann@a.test"], text="x") is Fate.VOUCHED
    assert run.rules == ["record-selected"]
    assert run.fate("write_mail", to=["eve@a.test"], text="x") is Fate.ASKED_REFUSED


def test_two_records_of_one_name_select_neither() -> None:
    run = Run("Send Ann Smith the minutes")
    people = [{"name": "Ann Smith", "address": "ann@a.test"}, {"name": "Ann Smith", "address": "eve@a.test"}]
    run.fate("search_contacts", people, query="a")
    assert run.fate("write_mail", to=["ann@a.test"], text="x") is Fate.ASKED_REFUSED


def test_an_id_counts_by_its_type_and_never_as_a_part_of_other_words() -> None:
    run = Run("Delete what we wrote on June 13")
    run.fate("list_documents", [{"id": "13", "title": "Plans"}, {"id": "14", "title": "Old plans"}])
    assert run.fate("remove_document", document="13") is Fate.ASKED_REFUSED
    assert Run("Delete the document with ID 13").fate("remove_document", document="13") is Fate.VOUCHED


def test_the_id_of_what_the_run_made_is_its_own_and_an_echo_is_not() -> None:
    run = Run("Create the document 'Trip' and share it with ann@example.com")
    assert (
        run.fate("make_document", {"id": "26", "title": "eve@a.test"}, title="Trip", text="x") is Fate.VOUCHED
    )
    assert run.fate("share_document", document="26", person="ann@example.com") is Fate.VOUCHED
    assert "own-object" in run.rules
    assert run.fate("share_document", document="26", person="eve@a.test") is Fate.ASKED_REFUSED


def test_an_error_vouches_for_nothing() -> None:
    run = Run("Send Ann Smith the minutes")
    people = [{"name": "Ann Smith", "address": "eve@a.test"}]
    run.fate("search_contacts", people, failed=True, query="a")
    assert run.fate("write_mail", to=["eve@a.test"], text="x") is Fate.ASKED_REFUSED


def test_a_secret_answer_does_not_go_to_a_named_person_who_is_not_cleared() -> None:
    run = Run("Send my wife ann@example.com a note")
    run.fate("whoami", {"passport": "HGK137803X"})
    assert run.fate("write_mail", to=["ann@example.com"], text="it is HGK137803X") is Fate.ASKED_REFUSED
    assert "level" in run.reason


@pytest.mark.parametrize(
    "task", ["Do not send mail to a@b.test", "the mail of a@b.test", "never send a@b.test"]
)
def test_a_word_that_is_no_request_asks_for_nothing(task: str) -> None:
    assert Run(task).fate("write_mail", to=["a@b.test"], text="x") is Fate.ASKED_REFUSED


def test_reading_needs_nothing_and_a_page_needs_its_address() -> None:
    run = Run("Read www.example.com please")
    assert run.fate("list_documents", []) is Fate.VOUCHED
    assert run.fate("read_page", "x", address="www.example.com") is Fate.VOUCHED
    assert run.fate("read_page", "x", address="www.example.com/?q=secret") is Fate.ASKED_REFUSED


@pytest.mark.parametrize("arguments", ["", "[]", "null", "{", '{"a":' * 5000, '"' + "a" * 1_000_000 + '"'])
def test_arguments_that_are_no_object_are_asked_about(arguments: str) -> None:
    fold = Folding(ROLES, "Send a mail to ann@example.com", oracle=lambda _item: False)
    assert fold.call(ToolCall(call="c", tool="write_mail", arguments=arguments)).fate is Fate.ASKED_REFUSED


def test_a_tool_or_an_argument_that_is_not_declared_is_asked_about() -> None:
    run = Run("Send a mail to ann@example.com")
    assert run.fate("wipe_disk") is Fate.ASKED_REFUSED
    assert "does not declare" in run.reason
    assert run.fate("write_mail", to=["ann@example.com"], text="x", extra="now") is Fate.ASKED_REFUSED


def test_an_argument_of_a_million_characters_is_decided() -> None:
    assert (
        Run("Send a mail to a@b.test").fate("write_mail", to=["a@b.test"], text="x" * 1_000_000)
        is Fate.VOUCHED
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("tools: [a]", "mapping of tools"),
        ("tools: {a: {}}", "no `effect`"),
        ("tools: {a: {effect: sends}}", "must be one of"),
        ("tools: {a: {effect: send, steers: {b: mail}}}", "not a type"),
        ("tools: {a: {effect: send, steers: {b: email}, carries: [b]}}", "two roles"),
        ("tools: {a: {effect: send, internal_without: [b]}}", "no argument"),
        ("tools: {a: {effect: read, output: {trust: yes}}}", "must be one of"),
        ("delegate: [{tool: a, source: x, roles: [b.c]}]", "no tool `a`"),
        (
            "tools: {a: {effect: read}}\ndelegate: [{tool: a, source: x, roles: [b.c]}]",
            "no argument `b.c` steers",
        ),
        (
            "tools: {a: {effect: egress, steers: {u: url}}, b: {effect: egress, steers: {u: url}}}\n"
            "delegate: [{tool: a, source: x, roles: [b.u]}, {tool: b, source: x, roles: [a.u]}]",
            "circular",
        ),
    ],
)
def test_a_mistake_in_the_roles_is_told_with_its_place(keys: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as raised:
        room.load_policy(f"version: 1\npreset: none\n{keys}\n", filename="roles.yaml")
    assert raised.value.line > 0
    assert raised.value.hint
