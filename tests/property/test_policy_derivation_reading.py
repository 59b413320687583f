"""What the finder finds, the checker reads again, in texts made of near misses; what is moved or changed, it does not."""

from __future__ import annotations

import os
from posixpath import normpath

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interlock.policy.derivations.checking import typed_readings
from interlock.policy.derivations.typed import Found, find_typed, same_form

VALUES = [
    *(
        ("name", value)
        for value in ("Bob", "bob", "dev", "general", "Ann Smith", "caf\u00e9", "It's me", "a-b")
    ),
    *(("name", value) for value in ("\uff22ob", "\u03a3\u0391\u03a3", "\u674e\u660e", "x")),
    *(("email", value) for value in ("ann@a.test", "Ann@A.test", "x.y+z@b.a.test", "pay@stra\u00dfe.x")),
    *(
        ("url", value)
        for value in ("https://a.test/x", "http://a.test/x", "www.a.test", "a.test", "https://a.test/")
    ),
    *(
        ("host", value)
        for value in ("a.test", "b.a.test", "https://a.test", "http://a.test", "xn--strae-oqa.x")
    ),
    *(
        ("path", value)
        for value in ("./docs//a.txt", "docs/a.txt", "a.txt", "/etc/x", "../x", "docs/", "notes")
    ),
    *(("iban", value) for value in ("DE89370400440532013000", "GB29NWBK60161331926819")),
    *(("phone", value) for value in ("555-0100", "+1 555 0100 22", "5550100", "20240515")),
    *(("amount", value) for value in ("13", "1,234", "1234.50", "50", "0", "2024", "15")),
    *(
        ("date", value)
        for value in ("2024-05-15", "05/06/2024", "May 15, 2024", "2024-05-15 10:00", "31/12/2023")
    ),
    *(("id:file", value) for value in ("13", "7", "a1b2c3", "x")),
    *(("id:calendar_event", value) for value in ("13", "6")),
    *(("text", value) for value in ("hello there", "to", "alpha\nbeta")),
    *(("iban|name", value) for value in ("DE89370400440532013000", "Bob")),
]
AROUND = [
    *" \n.,:;-/'\"`()[]@#=?!%_",
    *"\u200b\u0301\u202e\x00\ufffd\u2026\u2122\u00bd\u2474\u00b4\u201c\u201d\u00ab\u03a3\u00df\u0130",
    *(
        "  ",
        ", ",
        ". ",
        ": ",
        "~/",
        "./",
        "$HOME/",
        "https://",
        "http://",
        "www.",
        "WWW.",
        "x",
        "id ",
        "ID: ",
        "13",
        "2024",
    ),
    *(
        "the file with the ID ",
        "file ",
        "user id ",
        "number ",
        "no. ",
        "with id ",
        "event ",
        "is ",
        "May ",
        "15th of ",
    ),
    *(
        "on ",
        "mail ",
        "of ",
        "5",
        "to ",
        "https://a.test/x",
        "(https://b.test)",
        "May 15th, 2024",
        "2024/5/15",
    ),
    *("15 May 2024", "555 0100", "DE89 3704 0044 0532 0130 00", "1,234.50", "1234.5"),
]


@st.composite
def named_values(draw: st.DrawFn) -> tuple[str, str, str]:
    kind, value = draw(st.sampled_from(VALUES))
    spelt = st.sampled_from([value, value, value.upper(), value.lower(), value.replace(" ", "\n ")])
    around = st.lists(st.sampled_from(AROUND), max_size=3).map("".join)
    text = draw(around) + draw(spelt) + draw(around)
    if draw(st.booleans()):
        text += draw(spelt) + draw(around)
    return kind, value, text


def read_again(kind: str, value: str, text: str, found: Found) -> bool:
    read = typed_readings(kind).get(found.form)
    return read is not None and read(value, text, found.start, found.end)


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "70")))
@given(named_values())
def test_what_is_found_is_read_again(case: tuple[str, str, str]) -> None:
    kind, value, text = case
    found = find_typed(kind, value, text)
    assume(found is not None)
    assert found is not None
    assert 0 <= found.start < found.end <= len(text)
    assert read_again(kind, value, text, found)


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "40")))
@given(named_values(), st.sampled_from([(-1, 0), (1, 0), (0, -1), (0, 1), (1, 1), (-1, -1)]))
def test_a_span_that_is_moved_is_not_read_again(case: tuple[str, str, str], move: tuple[int, int]) -> None:
    kind, value, text = case
    found = find_typed(kind, value, text)
    assume(found is not None)
    assert found is not None
    moved = Found(form=found.form, start=found.start + move[0], end=found.end + move[1])
    inside = 0 <= moved.start < moved.end <= len(text)
    # Another writing of the same value that stands there is no false statement.
    assume(not (inside and find_typed(kind, value, text[moved.start : moved.end])))
    assert not (inside and read_again(kind, value, text, moved))


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "40")))
@given(named_values(), st.sampled_from(VALUES))
def test_another_value_is_not_read_from_the_span(case: tuple[str, str, str], other: tuple[str, str]) -> None:
    kind, value, text = case
    found = find_typed(kind, value, text)
    assume(found is not None)
    assert found is not None
    assume(not any(same_form(one, other[1]) == same_form(one, value) for one in kind.split("|")))
    # One that the same words give too (`http` for `https`, another case, `./` and doubled slashes) is no false one.
    assume(find_typed(kind, other[1], text[found.start : found.end]) is None)
    assume("path" not in kind.split("|") or normpath(other[1]) != normpath(value))
    assert not read_again(kind, other[1], text, found)
