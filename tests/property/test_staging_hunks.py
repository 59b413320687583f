"""Hunks of a text: all of them are the change, none of them is nothing, and each is just its own lines."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.staging.hunks import NO_NEWLINE, text_hunks, with_hunks

LINES = st.lists(
    st.sampled_from(["", "a", "b", "}", "  x", "é", "a\r", "\u2028", "\x0c", "-", "+", "@@ -1 +1 @@"])
    | st.integers(0, 60).map(lambda number: f"line {number}"),
    max_size=50,
)
ENDS = st.sampled_from(["", "\n", "\r\n"])
TEXTS = st.builds(lambda lines, end: ("\n".join(lines) + end).encode(), LINES, ENDS)


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A text of many different lines, and it after a few edits."""
    count = draw(st.integers(1, 120))
    new = old = [f"{number % draw(st.sampled_from([7, 1000]))}" for number in range(count)]
    for at, gone, put in draw(
        st.lists(st.tuples(st.integers(0, count), st.integers(0, 3), st.lists(st.just("new"), max_size=2)))
    ):
        new = [*new[:at], *put, *new[at + gone :]]
    ends = draw(st.tuples(ENDS, ENDS))
    return ("\n".join(old) + ends[0]).encode(), ("\n".join(new) + ends[1]).encode()


PAIRS = edited() | st.tuples(TEXTS, TEXTS)


@given(pair=PAIRS, chosen=st.sets(st.integers(1, 12)))
def test_any_hunks_and_then_the_rest_are_the_whole_change(
    pair: tuple[bytes, bytes], chosen: set[int]
) -> None:
    before, after = pair
    count = len(text_hunks(before, after))
    numbers = range(1, count + 1)
    assert with_hunks(before, after, numbers) == after
    assert with_hunks(before, after, ()) == before
    first = chosen & set(numbers)
    between = with_hunks(before, after, first)
    assert with_hunks(between, after, range(1, len(text_hunks(between, after)) + 1)) == after
    assert with_hunks(after, between, ()) == after


@settings(max_examples=60)
@given(pair=PAIRS, data=st.data())
def test_what_is_chosen_is_what_its_lines_say(pair: tuple[bytes, bytes], data: st.DataObject) -> None:
    before, after = pair
    hunks = text_hunks(before, after)
    chosen = data.draw(st.sets(st.sampled_from([hunk.number for hunk in hunks]))) if hunks else set()
    assert [hunk.number for hunk in hunks] == list(range(1, len(hunks) + 1))
    lines = before.decode().split("\n")
    ended = lines[-1] == ""
    at, out = 0, []
    for hunk in hunks:
        start, old, new, old_ends, new_ends = read_hunk(hunk.header, hunk.lines)
        out += lines[at:start]
        at = start + len(old)
        assert lines[start:at] == old
        out += new if hunk.number in chosen else old
        if at >= len(lines) - ended:  # the last hunk says how its side ends
            assert old_ends == ended or not old
            ended = new_ends if hunk.number in chosen and new else ended
    if at < len(lines) - (lines[-1] == ""):
        out += lines[at : len(lines) - (lines[-1] == "")]
    text = "\n".join(out) + ("\n" if ended and out else "")
    if hunks and after and before:
        assert with_hunks(before, after, chosen) == text.encode()


def read_hunk(header: str, lines: tuple[str, ...]) -> tuple[int, list[str], list[str], bool, bool]:
    """Read a hunk as a tool would: where it starts, both sides, and whether each ends in a newline."""
    first, _, length = header.split(" ")[1][1:].partition(",")
    start = int(first) - (length != "0")
    old: list[str] = []
    new: list[str] = []
    old_ends = new_ends = True
    sign = ""
    for line in lines:
        if line == NO_NEWLINE:
            old_ends = old_ends and sign == "+"
            new_ends = new_ends and sign == "-"
            continue
        sign, text = line[:1], line[1:]
        if sign in " -":
            old.append(text)
        if sign in " +":
            new.append(text)
    return start, old, new, old_ends, new_ends


@pytest.mark.parametrize("chosen", [{1}, {2}, {3}, {1, 3}, {1, 2, 3}])
def test_git_applies_the_shown_hunks_to_the_same_bytes(tmp_path: Path, chosen: set[int]) -> None:
    old = [f"line {number}\r" if number % 9 == 0 else f"line {number}" for number in range(60)]
    new = [*old[:4], "put", *old[4:30], *old[33:58], "last, changed"]
    before, after = "\n".join(old).encode(), ("\n".join(new) + "\n").encode()
    hunks = text_hunks(before, after)
    assert len(hunks) == 3
    shown = "".join(
        f"{hunk.header}\n" + "\n".join(hunk.lines) + "\n" for hunk in hunks if hunk.number in chosen
    )
    (tmp_path / "f").write_bytes(before)
    (tmp_path / "patch").write_bytes(f"--- a/f\n+++ b/f\n{shown}".encode())
    subprocess.run(["git", "apply", "patch"], cwd=tmp_path, check=True)
    assert (tmp_path / "f").read_bytes() == with_hunks(before, after, chosen)
