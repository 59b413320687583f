"""Each form gives what its example says and not what its counter-example says, to the finder and to the checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.model.effects import ChangeKind, FileChange
from interlock.model.places import Place
from interlock.policy.derivations import document, names
from interlock.policy.derivations.addresses import NET_READINGS
from interlock.policy.derivations.checking import RULE_CHECKS, typed_readings
from interlock.policy.derivations.choice_table import CHOICE_RULES
from interlock.policy.derivations.places_read import base_name, path_tail
from interlock.policy.derivations.reading import Reading
from interlock.policy.derivations.table import FORMS, RULES, Example, Form
from interlock.policy.derivations.typed import find_typed
from interlock.policy.matching import find_token
from interlock.policy.naming import find_named

ROOT = Path(__file__).parents[2]


def found(form: Form, one: Example) -> tuple[int, int] | None:
    if one.kind == "net":
        return find_named(one.text, "url", one.value)
    if one.kind == "place":
        parts = one.value.split("/")
        starts = range(len(parts) - 1) if form.name == names.PATH_TAIL else [len(parts) - 1]
        spans = (find_token(one.text, "/".join(parts[start:])) for start in starts)
        return next((span for span in spans if span is not None), None)
    given = find_typed(one.kind, one.value, one.text)
    return (given.start, given.end) if given is not None and given.form == form.name else None


def reading(form: Form, one: Example) -> Reading:
    if one.kind == "net":
        return NET_READINGS[form.name]
    if one.kind == "place":
        change = FileChange(kind=ChangeKind.MODIFY, place=Place(root="workspace", path=one.value))
        return (path_tail if form.name == names.PATH_TAIL else base_name)(change, "path")
    return typed_readings(one.kind)[form.name]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_an_example_is_found_and_read_again(form: Form) -> None:
    one = form.example
    span = found(form, one)
    assert span is not None
    assert reading(form, one)(one.value, one.text, *span)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_counter_example_is_not_found_nor_read_from_any_span(form: Form) -> None:
    one = form.counter_example
    assert found(form, one) is None
    read = reading(form, one)
    spans = ((start, end) for start in range(len(one.text)) for end in range(start + 1, len(one.text) + 1))
    assert not [span for span in spans if read(one.value, one.text, *span)]


def test_the_document_is_written_from_the_tables() -> None:
    """If this fails: `make generate`."""
    assert (ROOT / "docs/derivations.md").read_text(encoding="utf-8") == document.written_out()


def test_every_rule_that_is_checked_is_listed() -> None:
    listed = {rule.name for rule in (*RULES, *CHOICE_RULES)}
    texts = {names.NAMED_IN_TASK, names.NAMED_IN_FILE, names.NAMED_IN_NET}
    assert listed == {*RULE_CHECKS, *texts}


def test_every_form_and_rule_has_a_name_of_its_own() -> None:
    listed = [*(form.name for form in FORMS), *(rule.name for rule in (*RULES, *CHOICE_RULES))]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("url", "https://bit.test/aBc", "open https://bit.test/AbC now"),
        ("url", "https://a.test/x", "open http://b.test/https://a.test/x"),
        ("phone", "555-0100;to=evil", "ring 555-0100 please"),
        ("phone", "20240515", "on 2024-05-15 please"),
        ("amount", "2024", "on 2024-05-15 please"),
        ("amount", "12,34", "send 1234 to"),
        ("amount", "10", "at 10:30"),
        ("amount", "12", "12% of it"),
        ("amount", "13", "the file with id 13"),
        ("id:file", "13", "June 13"),
        ("id:file", "13", "the user id 13 asked"),
        ("id:file", "13", "phone number 13"),
        ("id:file", "13", "number 13"),
        ("id:file", "13", "id 13.5"),
        ("name", "bob", "send it to Bob"),
        ("name", "good", "good\u200bevil"),
        ("name", "good", "\u202egood"),
        ("name", "good", "good\ufffd"),
        ("name", "good", "good\x00evil"),
        ("name", "cafe", "cafe\u0301 rouge"),
        ("name", "good\u200b", "good\u200b"),
        ("name", "a\x00bcd", "a\x00bcd"),
        ("name", "g\u043e\u043ed", "good"),
        ("email", "ann@a.test", "ann@a.test\u200b.evil.test"),
        ("email", "ann@a.test", "ann@a.test.evil.test"),
        ("email", "ann@a.test", "mail ann@a.test.Evil is next"),
        ("email", "ann@a.test", "mail ann@a.test.Please.evil.test is next"),
        ("email", "ann@a.test", "mail ann@a.test.please wait"),
        ("email", "ann@a.test", "mail ann@a.test.Please"),
        ("url", "www.a.test", "see www.a.test.Zip now"),
        ("url", "www.A.test", "see www.A.test.They said"),
        ("url", "https://a.test/x", "see https://a.test/x.The end"),
        ("text", "", "anything"),
        ("flag", "true", "true"),
    ],
)
def test_a_loose_match_names_nothing(kind: str, value: str, text: str) -> None:
    assert find_typed(kind, value, text) is None
    spans = [(start, end) for start in range(len(text)) for end in range(start + 1, len(text) + 1)]
    readings = typed_readings(kind).values()
    assert not [span for span in spans for read in readings if _shown(value) and read(value, text, *span)]


def _shown(value: str) -> bool:
    from interlock.policy.derivations.reading import shows_all

    return shows_all(value)


@pytest.mark.parametrize(
    ("kind", "value", "text", "form"),
    [
        ("name", "dev", "in the channel 'dev' now", "phrase"),
        ("name", "dev", " dev ", "phrase"),
        ("name", "Bob", "send it to Bob.", "phrase"),
        ("name", "It's me", "say \u201cIt\u2019s me\u201d", "phrase"),
        ("name", "caf\u00e9", "the cafe\u0301", "phrase"),
        ("name", "file", "open the \ufb01le", "phrase"),
        ("iban|name", "Ann Smith", "pay Ann Smith", "phrase"),
        ("id:file", "a1b2c3", "take a1b2c3", "id"),
        ("id:file", "13", "delete file #13", "id"),
        ("id:calendar_event", "6", "the event with ID '6'.", "id"),
        ("date", "2024-05-15 10:00", "at 2024-05-15 10:00.", "phrase"),
        ("url", "a.test", "see a.test.", "phrase"),
        ("url", "a.test", "see a.test.Then go on", "phrase"),
        ("url", "www.a.test", "see www.a.test.They sent it", "url"),
        ("email", "ann@a.test", "mail ann@a.test.Please wait", "email"),
        ("host", "xn--mnchen-3ya.test", "see m\u00fcnchen.test", "host"),
    ],
)
def test_a_value_is_named_by_its_form(kind: str, value: str, text: str, form: str) -> None:
    given = find_typed(kind, value, text)
    assert given is not None
    assert given.form == form
    assert typed_readings(kind)[form](value, text, given.start, given.end)
