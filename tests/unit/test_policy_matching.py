"""Looking for known tokens in a long text finds what cutting all of it into tokens finds."""

import pytest
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.policy import matching
from interlock.policy.matching import holds_any, tokens_of

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
