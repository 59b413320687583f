"""The index of trusted texts finds what a walk over them finds: the same text, the same span, for any snapshot."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.policy import indexed, word_index
from interlock.policy.derivations.typed import find_typed
from interlock.policy.indexed import Found, Span
from interlock.policy.matching import find_token
from interlock.policy.sources import Source, Sources
from interlock.policy.tools.values import find_value

PIECES = [
    "alice", "Alice", "ALICE", "bob", "re-port", "report", "a", "13", "İx", "ΑΣ", "ας", "straße", "ﬁn", "fin", "é",
    "e\u0301", "Ａlice", "x@y.example", "X@Y.example", "b.example", "https://b.example/Ab", "b.example:8080", "xn--bcher-kva.example",
    "bücher.example", "[2001:db8::1]", "http://[2001:db8::1]/x", "DE89370400440532013000", "docs/a.md", "./docs/a.md",
    " ", " ", " ", " ", "  ", "\n", "\t", "\u2028", "\x00", "\u202e", '"', "“", ".", ":", ",", "_", "/", "@", "(", "-",
]  # fmt: skip
CONTEXT, CONTEXT_LENGTH = indexed._CONTEXT, indexed._CONTEXT_LENGTH
pieces = st.sampled_from(PIECES)
texts = st.lists(pieces, max_size=14).map("".join)
values = st.lists(pieces, min_size=1, max_size=3).map("".join)


def _source(text: str, kind: str = "file") -> Source:
    return Source(kind=kind, node=1, offset=0, text=text)


def _walk(sources: list[Source], find: Callable[[str], Span | None]) -> list[tuple[int, int, int]]:
    found = [(number, find(source.text)) for number, source in enumerate(sources)]
    return [(number, *span) for number, span in found if span is not None]


def _plain(found: Found[Source]) -> tuple[int, int, int]:
    return found.number, found.start, found.end


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    # Blocks of a few characters, so that what is generated lies in many of them.
    monkeypatch.setattr(word_index, "BLOCK", 12)
    monkeypatch.setattr(word_index, "MOST_TEXTS", 2)
    monkeypatch.setattr(word_index, "_SEGMENT", 8)
    monkeypatch.setattr(word_index, "_LARGEST", 24)
    monkeypatch.setattr(word_index, "_OFTEN", 2)
    monkeypatch.setattr(word_index, "_FEW", 0)
    monkeypatch.setattr(indexed, "_CONTEXT", 3)
    monkeypatch.setattr(indexed, "_CONTEXT_LENGTH", 4)
    monkeypatch.setattr(indexed, "MOST_WALKED", 1)
    monkeypatch.setattr(indexed, "MOST_WALKED_LENGTH", 10)


def _finders(value: str) -> list[tuple[str, Callable[[str], Span | None]]]:
    return [
        (value, partial(find_token, value=value)),
        (value, partial(find_token, value=value, heads=("~/", "./"))),
        (value, partial(find_value, "name", value)),
        (value, partial(find_value, "email", value)),
        (value, partial(find_value, "iban", value)),
        (value.partition("://")[2] or value, partial(find_value, "url", value)),
    ]


@few_and_many(150, 1500, st.lists(texts, max_size=8), values, derandomize=True)
def test_the_index_finds_what_a_walk_finds(given: list[str], value: str) -> None:
    sources = Sources()
    snapshots = [sources]
    for text in given:
        sources = sources.with_source(_source(text))
        snapshots.append(sources)
    for anchor, find in _finders(value):
        for snapshot in (sources, *snapshots[::3]):
            expected = _walk(list(snapshot), find)
            assert [_plain(each) for each in snapshot.every(find, anchor)] == expected
            for number in range(len(snapshot)):
                one = [_plain(each) for each in snapshot.every(find, anchor, only=number)]
                assert one == [each for each in expected if each[0] == number]


numbers = st.sampled_from(
    ["1,234.50", "1234.5", "2024-05-15", "15.05.2024", "May 15, 2024", "+1 (555) 010-0199", "15550100199", "555-0100",
     "DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "id 13", "file 13", "13", "#13", "user id: 13", "Al", "'Al'"]
)  # fmt: skip
KINDS = [
    "name",
    "text",
    "email",
    "url",
    "host",
    "path",
    "iban",
    "phone",
    "amount",
    "date",
    "id:file",
    "iban|name",
    "flag",
]


@few_and_many(
    200,
    3000,
    st.lists(st.lists(st.one_of(pieces, numbers), max_size=60).map("".join), max_size=4),
    st.one_of(values, numbers),
    derandomize=True,
)
def test_a_value_of_a_type_is_found_where_a_walk_finds_it(given: list[str], value: str) -> None:
    sources = Sources(_source(text) for text in given)
    for kind in KINDS:
        walked = ((number, find_typed(kind, value, text)) for number, text in enumerate(given))
        expected = next((each for each in walked if each[1] is not None), None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(indexed, "_CONTEXT", CONTEXT)
            patch.setattr(indexed, "_CONTEXT_LENGTH", CONTEXT_LENGTH)
            named = sources.naming(kind, value)
        assert (None if named is None else (named.number, named.found)) == expected, kind


few_words = st.lists(st.sampled_from(["ab", "cd", "ef", " ", " ", "  ", "\n", '"', "ab.", "Cd"]), max_size=40)


@few_and_many(
    150, 3000, st.lists(few_words.map("".join), max_size=3), few_words.map("".join), derandomize=True
)
def test_a_phrase_is_found_where_it_lies_over_several_blocks(given: list[str], value: str) -> None:
    value = value[:12]
    sources = Sources(_source(text) for text in given)
    find = partial(find_token, value=value)
    assert [_plain(each) for each in sources.every(find, value)] == _walk(list(sources), find)


@few_and_many(60, 600, st.lists(texts, max_size=5), st.lists(texts, max_size=4), values, derandomize=True)
def test_histories_that_part_do_not_see_each_other(first: list[str], then: list[str], value: str) -> None:
    find = partial(find_token, value=value)
    root = Sources(_source(text) for text in first)
    root.first(find, value)
    one, other = root, root
    for text in then:
        one = one.with_source(_source(text + " one"))
        other = other.with_source(_source(text + " other"))
        one.first(find, value)
    for history in (root, one, other):
        assert [_plain(each) for each in history.every(find, value)] == _walk(list(history), find)
    assert [source.text for source in one] == [*first, *(text + " one" for text in then)]
    assert [source.text for source in other] == [*first, *(text + " other" for text in then)]
    assert root == Sources(_source(text) for text in first)
    assert all(root.has_text(text) for text in first)
    assert one.has_text("never said") is False


def test_a_form_is_found_where_it_stands_first_and_an_empty_one_nowhere() -> None:
    def forms(text: str) -> list[tuple[str, int, int]]:
        return [(word, text.index(word), text.index(word) + len(word)) for word in text.split()]

    before = Sources([_source("1 2"), _source("2 3")])
    after = before.with_source(_source("4"))
    assert after.first_form("amount", "4", forms) is not None
    assert before.first_form("amount", "4", forms) is None
    found = before.first_form("amount", "2", forms)
    assert found is not None
    assert _plain(found) == (0, 2, 3)
    assert after.first_form("amount", "", forms) is None


def test_beyond_its_bounds_the_rest_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_index, "MAX_BLOCKS", 3)
    monkeypatch.setattr(indexed, "MAX_FORMS", 2)
    sources = Sources(_source(f"word{number} and some more text") for number in range(20))
    find = partial(find_token, value="word19")
    found = sources.first(find, "word19")
    assert found is not None
    assert _plain(found) == (19, 0, 6)

    def forms(text: str) -> list[tuple[str, int, int]]:
        return [(text.split(maxsplit=1)[0], 0, 5)]

    late = sources.first_form("amount", "word19", forms)
    assert late is not None
    assert late.number == 19
