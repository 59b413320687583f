"""What leaves is read as the plain lines of `spec/sensitivity.py` read it, through generated chains of encodings."""

import random

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from spec import sensitivity as spec
from tests.fakes.few_and_many import few_and_many

from interlock.bench.disguises import secrets_from, transforms_from
from interlock.bench.documents import prose_from, table_from
from interlock.model.labels import Confidentiality
from interlock.policy.sensitivity import Known

KEEPS_ALL = (
    "full width", "reversed", "hex", "hex upper", "base32", "base32 bare", "base64", "base64 url", "base64 at 1",
    "base64 at 2", "base64 wrapped", "url", "html", "json", "gzip", "zlib", "brotli",
)  # fmt: skip
AROUND = (
    "{}", "q={}", '{{"data": "{}"}}', "/v1/{}/x", "<p>{}</p>", "see {} there", "k={}&page=2", "a, b, {}; c\n", "({})",
)  # fmt: skip


def near(text: str, draw: random.Random) -> str:
    """Return a text of the same kind that nobody declared."""
    return "".join(
        draw.choice("bcdfghjk") if char.islower() else draw.choice("BCDFGHJK") if char.isupper()
        else draw.choice("23456789") if char.isdigit() else char
        for char in text
    )  # fmt: skip


@st.composite
def outbound(draw: st.DrawFn) -> tuple[list[tuple[int, str]], str, list[str], bool]:
    """Draw what is known, a text that leaves, its encodings, and whether it holds what is known."""
    seed = draw(st.integers(0, 10_000))
    secrets = list(secrets_from(seed).values())
    prose = prose_from(seed)
    known = [(2, f"VALUE={secret}\n") for secret in secrets[:3]] + [(1, f"{one}\n") for one in secrets[3:]]
    known.append((3, prose))
    held = draw(st.booleans())
    words = prose.splitlines()[draw(st.integers(2, 20))].split()
    begin = draw(st.integers(0, len(words) - 9))
    told = draw(st.sampled_from([*secrets, " ".join(words[begin : begin + 9])]))
    if not held:
        told = near(told, random.Random(seed))
    way = draw(st.lists(st.sampled_from(KEEPS_ALL), max_size=3))
    return known, told, way, held


def sent(told: str, way: list[str], around: str, seed: int) -> str:
    transforms = transforms_from(seed)
    for step in way:
        told = transforms[step](told)
    return around.format(told)


@few_and_many(
    25, 600, outbound(), st.sampled_from(AROUND), st.integers(0, 99), suppress_health_check=list(HealthCheck)
)
def test_an_outbound_text_has_the_level_that_the_plain_lines_give_it(
    case: tuple[list[tuple[int, str]], str, list[str], bool], around: str, seed: int
) -> None:
    known, told, way, held = case
    text = sent(told, way, around, seed)
    code = Known()
    for level, sensitive in known:
        more = code.with_text(Confidentiality(level), sensitive)
        assert more is not None
        code = more
    plain = spec.level_in(known, text)
    assert int(code.level_in(text)) == plain
    assert (plain > 0) == held


@few_and_many(40, 2000, st.integers(0, 10_000), st.integers(1, 40), st.booleans(), st.sampled_from(AROUND))
def test_a_row_of_a_table_has_the_level_that_the_plain_lines_give_it(
    seed: int, number: int, held: bool, around: str
) -> None:
    table = table_from(seed)
    row = table.splitlines()[number]
    text = around.format(row if held else near(row, random.Random(seed)))
    code = Known().with_text(Confidentiality.CRITICAL, table)
    assert code is not None
    assert int(code.level_in(text)) == spec.level_in([(3, table)], text)
    assert (code.level_in(text) > 0) == held


@pytest.mark.parametrize(
    "text", ["", "%", "\\u12", "&#;", "=" * 40, "A" * 40, "0" * 41, "\ud800", "eJw=", "\x1f\x8b" * 9]
)
def test_both_read_what_is_broken(text: str) -> None:
    known = [(2, "VALUE=tok-91f2c7d0a4b8XyZ\n")]
    code = Known().with_text(Confidentiality.SECRET, known[0][1])
    assert code is not None
    assert code.level_in(text) == spec.level_in(known, text.encode("utf-8", "replace").decode()) == 0
