"""The review apart from a terminal: lines in, text out."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.deferred import deferred

from interlock.model.effects import (
    ChangeKind,
    Channel,
    Effect,
    FileChange,
    FileStamp,
    FileType,
    Hazard,
)
from interlock.model.errors import BoundaryError
from interlock.model.verdicts import Verdict
from interlock.oracle import Question
from interlock.oracle.listing import arrange, fold, ranges, select
from interlock.oracle.review import Review, Screen, Stage, State
from interlock.oracle.shown import clip, columns, shown, wrap


def review(*pairs: tuple[Effect, Verdict], diff: str = "", height: int = 24) -> Review:
    question = Question(task="mend the test", deferred=pairs, diff=lambda effect: diff)
    return Review(question=question, items=arrange(pairs), screen=Screen(width=80, height=height))


def play(play_review: Review, *lines: str) -> tuple[State, str]:
    state, said = State(), ""
    for line in lines:
        state, text = play_review.step(state, line)
        said += text
    return state, said


def three() -> Review:
    return review(
        deferred(1, "Makefile", "make-target"),
        deferred(2, "b/x", "pth"),
        deferred(3, ".git/hooks/h", "git-hook"),
    )


def accepted(state: State, of: Review) -> set[str]:
    assert state.stage is Stage.DECIDED
    return {item.effect.id for item in of.items if item.number in state.proposed}


def test_opening_says_what_waits_and_why() -> None:
    text = three().opening()
    assert "3 effects of the agent wait" in text
    assert "task: mend the test" in text
    for words in ("workspace:Makefile", "make-target: why make-target", "waits: the task names it not"):
        assert words in text


@pytest.mark.parametrize(
    ("lines", "released"),
    [
        (("a", "y"), {"e1", "e2", "e3"}),
        (("all", "yes"), {"e1", "e2", "e3"}),
        (("r", "y"), set()),
        (("d", "y"), set()),
        (("1", "d", "y"), {"e1"}),
        (("1,3", "d", "y"), {"e1", "e2"}),
        (("1-3", "2", "d", "y"), {"e1", "e2"}),
        (("1", "1", "d", "y"), set()),
        (("*hooks*", "d", "y"), {"e3"}),
        (("a", "n", "1", "d", "y"), {"e1"}),
        (("1", "a", "n", "d", "y"), {"e1"}),
        (("1", "r", "y"), set()),
        (("s 1", "w 2", "l", "?", "2", "done", "y"), {"e3"}),
        (("nonsense", "4", "1", "huh", "0", "d", "y"), {"e1"}),
    ],
)
def test_what_ends_up_accepted(lines: tuple[str, ...], released: set[str]) -> None:
    of = three()
    # Numbers follow folders: 1 is Makefile (e1), 2 is .git/hooks/h (e3), 3 is b/x (e2).
    state, _ = play(of, *lines)
    assert accepted(state, of) == released


@pytest.mark.parametrize(
    "lines", [("a",), ("a", "n"), ("1", "d"), ("1", "2"), ("a", "", "n"), ("y",), ("y", "y")]
)
def test_nothing_is_decided_without_a_confirmation(lines: tuple[str, ...]) -> None:
    state, _ = play(three(), *lines)
    assert state.stage in {Stage.CHOOSING, Stage.CONFIRMING}


@pytest.mark.parametrize(
    "lines",
    [("", "", ""), ("x", "9", "3-1"), ("a", "maybe", "", "a"), ("s", "w", "s 9"), ("1;2", "-1", "1-")],
)
def test_three_lines_of_nonsense_end_it(lines: tuple[str, ...]) -> None:
    state, _ = play(three(), *lines)
    assert state.stage is Stage.CONFUSED


def test_quit_leaves_it_open_also_from_a_confirmation() -> None:
    assert play(three(), "q")[0].stage is Stage.LEFT_OPEN
    assert play(three(), "a", "q")[0].stage is Stage.LEFT_OPEN


def test_a_confirmation_names_the_counts_and_the_rare_kind_first() -> None:
    many = [deferred(n, f"v/{n}.sh", "package-script") for n in range(1, 500)]
    of = review(*many, deferred(500, "v/evil", "git-hook"))
    _, said = play(of, "a")
    assert "accept 500: 1 git-hook, 499 package-script" in said
    _, said = play(three(), "1", "d")
    assert "accept 1: 1 make-target" in said
    assert "refuse 2" in said


def test_a_file_brings_its_deferred_new_folders() -> None:
    effect, verdict = deferred(1, "new", "x")
    assert effect.change is not None
    folder = FileStamp(type=FileType.DIRECTORY, mode=0o755, uid=0, gid=0, size_bytes=0)
    change = FileChange(kind=ChangeKind.CREATE, place=effect.change.place, after=folder)
    made = Effect(
        id="e1", channel=Channel.FILE, operation="file.create", object="workspace:new", reach=effect.reach,
        steering=(), carried=effect.carried, clearance=effect.clearance, change=change,
    )  # fmt: skip
    of = review((made, verdict), deferred(2, "new/f"), deferred(3, "newer"))
    number = next(item.number for item in of.items if item.effect.id == "e2")
    state, said = play(of, str(number), "d", "y")
    assert accepted(state, of) == {"e1", "e2"}
    assert "with 1 new folder" in said


def test_a_diff_is_shown_safely_and_paged() -> None:
    diff = "--- a\n+++ b\n" + "".join(f"+line {n}\x1b[2J\n" for n in range(100))
    of = review(deferred(1, "f"), diff=diff, height=24)
    state, said = play(of, "s 1")
    assert state.stage is Stage.PAGING
    assert "+line 3\\x1b[2J" in said
    assert "\x1b" not in said
    assert said.count("\n") == 22
    assert "22 of 103 lines" in of.prompt(state)
    state, said = play(of, "s 1", "", "", "", "")
    assert state.stage is Stage.CHOOSING
    assert "+line 99\\x1b" in said
    assert play(of, "s 1", "q")[0].stage is Stage.CHOOSING
    assert play(of, "s 1", "a", "y")[0].stage is Stage.DECIDED


def test_a_diff_colours_only_where_asked_and_a_wrapped_tail_is_set_in() -> None:
    question = Question(
        task="", deferred=(deferred(1, "f"),), diff=lambda effect: "-old\n+" + "x" * 90 + "-y"
    )
    of = Review(question=question, items=arrange(question.deferred), screen=Screen(colours=True))
    _, said = play(of, "s 1")
    assert "\x1b[31m-old\x1b[0m\n" in said
    assert f"\x1b[32m+{'x' * 79}\x1b[0m\n\x1b[32m    {'x' * 11}-y\x1b[0m\n" in said


@pytest.mark.parametrize(
    ("error", "words"),
    [(BoundaryError("gone\x1b"), "no diff: gone\\x1b"), (KeyError("secret"), "no diff: KeyError")],
)
def test_a_diff_that_fails_does_not_end_the_review(error: Exception, words: str) -> None:
    def fails(effect: Effect) -> str:
        raise error

    question = Question(task="", deferred=(deferred(1, "f"),), diff=fails)
    of = Review(question=question, items=arrange(question.deferred), screen=Screen())
    state, said = play(of, "s 1", "a", "y")
    assert words in said
    assert "secret" not in said
    assert accepted(state, of) == {"e1"}


def test_why_says_everything() -> None:
    _, said = play(review(deferred(7, "Makefile", "make-target", hazards=(Hazard.SET_ID,))), "w 1")
    for words in (
        "effect e7",
        "set-id: runs with",
        "make-target: why",
        "depends on path: Makefile",
        "provenance cannot vouch [r1]: the task names it not",
        "mode 644, owner 1000:1000, 12 bytes",
    ):
        assert words in said


def test_no_reason_or_facet_reaches_the_screen_raw() -> None:
    effect, verdict = deferred(1, "a\x1b[2J", "kind\x1b[2J")
    check = replace(verdict.checks[0], reason="why\x1b[2J\u202e", rules=("rule\x1b[2J",))
    of = review((effect, replace(verdict, checks=(check,))))
    said = of.opening() + play(of, "w 1", "s 1", "l", "a")[1]
    assert all(char == "\n" or char.isprintable() for char in said)
    assert "waits: why\\x1b[2J\\xe2\\x80\\xae" in said


def test_ten_thousand_effects_fit_a_screen_and_hide_nothing() -> None:
    pairs = [deferred(n, f"vendor/p{n % 7}/d{n % 13}/f{n}", "package-script") for n in range(9_999)]
    of = review(*pairs, deferred(10_000, "z/.git/hooks/h", "git-hook"))
    text = of.opening()
    assert text.count("\n") <= 24
    assert all(columns(line) <= 80 for line in text.split("\n"))
    assert "10,000 effects" in text
    assert "workspace:z/.git/hooks/h" in text
    assert "1,429 effects below workspace:vendor/p0/" in text
    state, _ = play(of, "1-9999", "d", "y")
    assert len(state.proposed) == 9_999


def test_a_flat_folder_folds_with_its_rare_kind_in_sight() -> None:
    pairs = [deferred(n, f"flat/f{n}", "package-script") for n in range(3_000)]
    text = review(*pairs, deferred(5_000, "flat/g", "git-hook")).opening()
    assert "3,001 effects in workspace:flat/" in text
    assert "1 git-hook, 3,000 package-script" in text


PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=4).map("/".join), max_size=40
)


@given(paths=PATHS, budget=st.integers(0, 50))
def test_fold_covers_each_item_once_within_its_budget(paths: list[str], budget: int) -> None:
    items = arrange([deferred(n, path) for n, path in enumerate(paths)])
    rows = fold(items, budget)
    assert [index for row in rows for index in range(row.start, row.end)] == list(range(len(items)))
    assert len(rows) <= max(budget, 1)
    if budget >= len(items):
        assert all(row.end - row.start == 1 for row in rows)
    for row in rows:
        if row.label not in {"", "everywhere"}:
            inside = [item.effect.object for item in items[row.start : row.end]]
            assert all(path.startswith(row.label) for path in inside)


@given(numbers=st.frozensets(st.integers(1, 30), min_size=1))
def test_ranges_and_select_are_inverse(numbers: frozenset[int]) -> None:
    items = arrange([deferred(n, f"f{n}") for n in range(30)])
    assert select(ranges(numbers), items) == numbers


@pytest.mark.parametrize("text", ["0", "0-2", "4", "2-1", "1-4", "", "x", "*.none", "99999999", "١"])
def test_select_says_what_it_cannot_find(text: str) -> None:
    assert isinstance(select(text, three().items), str)


@given(text=st.text())
def test_shown_is_printable_and_never_steers(text: str) -> None:
    safe = shown(text)
    assert safe.isprintable()
    assert shown(safe) == safe
    assert safe.encode("utf-8").decode("utf-8") == safe


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain \\ text", "plain \\ text"),
        ("\x00\x1b[2J\x07\x7f", "\\x00\\x1b[2J\\x07\\x7f"),
        ("\x9b31m", "\\xc2\\x9b31m"),
        ("a\u202eb\u2066c\u200bd", "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c\\xe2\\x80\\x8bd"),
        ("a\u3164\u2800\ufe0f", "a\\xe3\\x85\\xa4\\xe2\\xa0\\x80\\xef\\xb8\\x8f"),
        ("a\u2028b\nc\rd", "a\\xe2\\x80\\xa8b\\x0ac\\x0dd"),
        ("\ud800", "\\xed\\xa0\\x80"),
        ("e\u0301", "e\u0301"),
        ("e" + "\u0301" * 3, "e\u0301\u0301\\xcc\\x81"),
        ("\U000e0041", "\\xf3\\xa0\\x81\\x81"),
        ("你好", "你好"),
        ("\tx", "    x"),
    ],
)
def test_shown(text: str, safe: str) -> None:
    assert shown(text) == safe


@given(text=st.text().map(shown), width=st.integers(10, 60))
def test_clip_and_wrap_keep_to_the_width(text: str, width: int) -> None:
    assert columns(clip(text, width)) <= width
    lines = wrap(text, width, indent="  ")
    assert all(columns(line) <= width for line in lines)
    kept = lines[0] + "".join(line.removeprefix("  ") for line in lines[1:])
    assert kept.replace(" ", "") == text.replace(" ", "")


@given(lines=st.lists(st.text(max_size=12), max_size=12))
def test_no_input_crashes_the_review_or_reaches_the_screen_raw(lines: list[str]) -> None:
    state, said = play(three(), *lines)
    assert all(char == "\n" or char.isprintable() for char in said)
    if state.stage is Stage.DECIDED:
        assert {"y", "yes"} & {line.strip().lower() for line in lines}
