"""The key `regulation` of a policy: what is read, and each mistake with its line and its fix."""

from __future__ import annotations

import pytest
from tests.fakes.regulated import REGULATION, clinic

from interlock.model.errors import PolicyError
from interlock.policy import load_policy
from interlock.policy.regulation import Consent, addresses_in

HEAD = "version: 1\npreset: none\n"
FOOT = "cedar: |\n  permit(principal, action, resource);\n"
BASE = "regulation:\n  apply: [hipaa]\n  sender: {name: Clinic, role: covered entity}\n"


def test_what_is_declared_is_read() -> None:
    found = clinic().regulation
    assert found is not None
    assert (found.apply, found.sender) == (("hipaa",), "Riverside Clinic (covered entity)")
    assert [one.name for one in found.parties] == ["City Lab", "Ad Firm", "Family"]
    assert [one.receives for one in found.parties] == [("health data",), (), None]
    assert found.data[2].consent is Consent.NOT_NEEDED
    assert found.data[1].consent is Consent.UNSAID


def test_a_policy_without_the_key_has_none() -> None:
    assert load_policy(HEAD + FOOT, filename="p").regulation is None


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("apply: [hipaa]", "apply: []", "list of regulations"),
        ("apply: [hipaa]", "apply: [HIPAA!]", "is no regulation's id"),
        ("apply: [hipaa]", "apples: [hipaa]", "apples"),
        ("  sender: {name: Riverside Clinic, role: covered entity}\n", "", "sender"),
        ("role: covered entity}", "rule: covered entity}", "rule"),
        ('consent: {field: consent, is: ["yes"]}', "consent: {field: consent, is: []}", "list of texts"),
        ('consent: {field: consent, is: ["yes"]}', "consent: maybe", "given, withheld, not-needed"),
        ("arguments: [send_mail.note]", "arguments: [note]", "names no argument of a tool"),
        ("tool: read_record, fields: [phone]", "fields: [phone]", "nowhere where this data comes from"),
        ('place: "bills/**"', 'place: "bills/**", host: a.example', "twice where this data comes from"),
        ('place: "bills/**"', 'place: "/bills"', "is not relative"),
        ("type: free note", 'type: "two\\nlines"', "one line"),
        ("type: free note, ", "", "type"),
        ("receives: [health data]", "receives: 5", "list"),
        ('match: ["*@home.example"]', "match: []", "list of values"),
        (
            "arguments: [send_mail.note], basis",
            "arguments: [send_mail.note], fields: [x], basis",
            "says nothing beside",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(before: str, after: str, says: str) -> None:
    assert before in REGULATION
    with pytest.raises(PolicyError) as caught:
        load_policy(HEAD + REGULATION.replace(before, after, 1) + FOOT, filename="clinic.yaml")
    assert says in str(caught.value)
    assert "clinic.yaml:" in str(caught.value)
    assert caught.value.hint


def test_more_entries_than_can_be_looked_through_are_a_mistake() -> None:
    party = "    - {name: A, role: b, match: [a]}\n"
    with pytest.raises(PolicyError, match="more than 200 entries"):
        load_policy(HEAD + BASE + "  parties:\n" + party * 201 + FOOT, filename="p")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ann@Lab.example", ("ann@lab.example",)),
        ("Ann Doe <ann@lab.example>; bob@b.example", ("ann@lab.example", "bob@b.example")),
        ("https://lab.example/x?to=eve@x.example", ("lab.example",)),
        ("to ann@lab.example", ("",)),
        ("ann@lab.example eve@x.example", ("",)),
        ("eve@x.example <ann@lab.example>", ("",)),
        ("ann@lab.example@x.example", ("",)),
        ("", ()),
    ],
)
def test_a_text_names_who_it_names_plainly_or_nobody(text: str, found: tuple[str, ...]) -> None:
    assert addresses_in(text) == found
