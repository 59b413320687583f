"""Looking for known tokens in a long text finds what cutting all of it into tokens finds."""

import pytest
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.policy import matching
from interlock.policy.matching import find_token, holds_any, tokens_of

TOKENS = ["secret1", "a/b-secret", "x:y-secret", "key=secret", "sécret_ß", "secret1secret1", ".secret2:"]
pieces = st.sampled_from(
    [*TOKENS, *(token.upper() for token in TOKENS), " ", "\n", "=", ":", ".", "/", '"', "x", ",", "ß"]
)


@few_and_many(
    300,
    1500,
    st.lists(pieces, max_size=8).map("".join),
    st.frozensets(st.sampled_from(TOKENS), max_size=3),
    derandomize=True,
)
def test_the_fast_search_finds_what_the_plain_one_does(text: str, wanted: frozenset[str]) -> None:
    tokens = tokens_of(" ".join(wanted))
    padded = text + " " + "filler word " * 400
    assert len(padded) > matching._LONG
    expected = not tokens_of(padded).isdisjoint(tokens)
    assert holds_any(padded, tokens) is expected
    assert holds_any("filler word " * 400 + text, tokens) is (
        not tokens_of("filler word " * 400 + text).isdisjoint(tokens)
    )


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("y" * 5000 + "secret1" + "y" * 5000, False),
        ("y" * 5000 + " secret1 " + "y" * 5000, True),
        ("xsecret1 " * 500 + "secret1", True),
        ("xsecret1 " * 500, False),
        ("." * 5000 + "secret1", True),
        ("", False),
    ],
)
def test_words_without_an_end_and_many_near_misses(text: str, held: bool) -> None:
    assert holds_any(text, frozenset({"secret1"})) is held


@pytest.mark.parametrize(
    "beside", ["\u200b", "\u200f", "\u202e", "\u0301", "\ufe0f", "\x00", "\x7f", "\ufffd", "\ue000"]
)
def test_what_is_not_seen_belongs_to_the_word_beside_it(beside: str) -> None:
    assert find_token(f"mend Makefile{beside}", "Makefile") is None
    assert find_token(f"mend {beside}Makefile", "Makefile") is None
    assert find_token(f"{beside} mend Makefile, {beside}", "Makefile") == (7, 15)


@pytest.mark.parametrize("beside", ["\u00a0", "\u2028", "\x85", "\x1f", "\u3000", "\u201c", "\u2014"])
def test_spaces_and_marks_that_are_seen_end_a_word(beside: str) -> None:
    assert find_token(f"mend{beside}Makefile{beside}", "Makefile") == (5, 13)


def test_a_word_inside_of_a_letter_that_becomes_two_is_not_one() -> None:
    assert find_token("\u0130x", "x") is None
