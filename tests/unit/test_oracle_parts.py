"""A review in part: hunks, conflicts that are merged, and what comes along or falls with a choice."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.deferred import deferred
from tests.fakes.parted import FOLDER, Pair, asked, changed, conflicting, file_stamp, modified

from interlock.model.effects import ChangeKind, Effect, HostEdit
from interlock.model.events import Answer
from interlock.model.verdicts import Decision
from interlock.oracle import Question
from interlock.oracle.listing import arrange
from interlock.oracle.marks import Marks, Typed, read_marks, toggled
from interlock.oracle.needs import close, needs_of
from interlock.oracle.review import Review, Screen, Stage, State
from interlock.oracle.shown import columns

A, B, C, D = modified(1, "a"), modified(2, "b"), conflicting(3, "c"), conflicting(4, "d")
QUESTION = asked(A, B, C, D, counts={"e1": 3, "e2": 1, "e3": 2}, clean=["e3"])


def review(question: Question = QUESTION, *, height: int = 24) -> Review:
    items = arrange(question.deferred)
    return Review(question=question, items=items, screen=Screen(width=80, height=height))


def play(of: Review, *lines: str) -> tuple[State, str]:
    state, said = State(), ""
    for line in lines:
        state, text = of.step(state, line)
        said += text
    return state, said


def released(of: Review, *lines: str) -> dict[str, tuple[tuple[int, ...], bool]]:
    state, _ = play(of, *lines)
    assert state.stage is Stage.DECIDED
    answers = of.answers(state)
    assert [answer.effect_id for answer in answers] == [item.effect.id for item in of.items]
    return {
        answer.effect_id: (answer.hunks, answer.merge)
        for answer in answers
        if answer.decision is Decision.RELEASE
    }


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("1.1,1.3", "d", "y"), {"e1": ((1, 3), False)}),
        (("1.1-2", "d", "y"), {"e1": ((1, 2), False)}),
        (("1.2, 2", "d", "y"), {"e1": ((2,), False), "e2": ((), False)}),
        (("1.1-3", "d", "y"), {"e1": ((), False)}),
        (("1.1", "1.2-3", "d", "y"), {"e1": ((), False)}),
        (("1", "1.2", "d", "y"), {"e1": ((1, 3), False)}),
        (("1.2", "1", "d", "y"), {"e1": ((), False)}),
        (("1.2", "1.2", "d", "y"), {}),
        (("1", "1", "d", "y"), {}),
        (("2.1", "d", "y"), {"e2": ((), False)}),
        (("1.2", "a", "y"), {"e1": ((), False), "e2": ((), False)}),
        (("m 3", "d", "y"), {"e3": ((), True)}),
        (("m3", "m 3", "d", "y"), {"e3": ((), True)}),
        (("m 3", "3", "d", "y"), {}),
        (("m 4", "d", "y"), {}),
        (("merge 3-4", "a", "y"), {"e1": ((), False), "e2": ((), False), "e3": ((), True)}),
        (("3", "3-4", "1,3", "d", "y"), {"e1": ((), False)}),
        (("a", "y"), {"e1": ((), False), "e2": ((), False)}),
        (("m 1", "d", "y"), {}),
        (("m 3", "r", "y"), {}),
    ],
)
def test_what_ends_up_released(
    lines: tuple[str, ...], expected: dict[str, tuple[tuple[int, ...], bool]]
) -> None:
    assert released(review(), *lines) == expected


def test_the_confirmation_says_how_much_of_what() -> None:
    of = review(asked(modified(1, "a", mode=0o755), B, C, counts={"e1": 3}, clean=["e3"]))
    _, said = play(of, "1.1,1.3", "m 3", "d")
    assert "accept 2 of 3 hunks of workspace:a, and its mode 755" in said
    assert "  merge workspace:c\n" in said
    assert "1, 3" in said


def test_hunks_are_shown_with_their_numbers_and_safely() -> None:
    of = review()
    _, said = play(of, "1.2", "h 1")
    assert "[ ] 1.1  @@ -10 +10 @@  +1 -0\n same\n+put 1\\x1b[2J\n[x] 1.2  @@" in said
    _, said = play(of, "s 1")
    assert "@@ -10 +10 @@  [1.1]\n" in said
    assert "@@ -30 +30 @@  [1.3]\n" in said
    # one hunk alone is the whole change
    assert "[2.1]" not in play(of, "s 2")[1]
    assert "it has no hunks: accept it whole" in play(of, "h 4")[1]
    assert play(of, "h")[1] == play(of, "?")[1]


@pytest.mark.parametrize(
    "line", ["1.4", "1.0", "1.3-1", "9.1", "4.1", "1.1-4", "1.", "1.x", "1.1.1", "1.1,9"]
)
def test_a_hunk_that_is_not_there_is_no_mark(line: str) -> None:
    state, said = play(review(), line)
    assert state.marks == Marks()
    assert state.strikes == 1
    assert "everything is refused" in said


def test_hunks_or_a_merge_that_break_do_not_end_the_review() -> None:
    def fails(effect: Effect) -> str:
        raise KeyError("secret")

    of = review(replace(QUESTION, hunks=fails, merged=fails))  # type: ignore[arg-type]
    state, said = play(of, "h 1", "m 3", "s 1", "1.1", "1", "a", "y")
    assert state.stage is Stage.DECIDED
    assert "no hunks: KeyError" in said
    assert "no merge: KeyError" in said
    assert "only the host's version can stay now" in said
    assert "secret" not in said


def test_where_nothing_can_give_hunks_or_merges_it_is_said() -> None:
    of = review(Question(task="t", deferred=(A, C), diff=lambda effect: ""))
    _, said = play(of, "h 1", "m 2")
    assert "cannot be had here" in said
    assert "cannot be merged here" in said


def test_a_conflict_is_named_and_never_accepted_plainly() -> None:
    of = review()
    assert "The host changed 2 of them too: m N shows the merge." in of.opening()
    assert "conflict: the host changed it too" in of.opening()
    _, said = play(of, "1,3")
    assert "not marked, since the host changed them too: 3 (m 3 shows the merge)" in said
    _, said = play(of, "a")
    assert "2 conflicts keep the host's version: 3-4 (m N merges one)" in said
    state, said = play(of, "m 3")
    assert "+both" in said
    assert "-host\\x1b[2J" in said
    assert state.marks.merges == {3}
    state, said = play(of, "m 4")
    assert "both sides changed 1 place differently" in said
    assert "only the host's version can stay now" in said
    assert state.marks == Marks()
    assert "(the host did not change it: mark it as 1)" in play(of, "m 1")[1]
    assert "the agent began from: nothing" in play(of, "w 3")[1]
    answers: tuple[Answer, ...] = of.answers(play(of, "a", "y")[0])
    assert [answer.reason for answer in answers[2:]] == [
        "refused in the review: the host's version stays"
    ] * 2


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (HostEdit.APPEARED, "the host made it too"),
        (HostEdit.GONE, "the host removed it"),
        (HostEdit.UNCERTAIN, "the host may have changed it too"),
    ],
)
def test_each_kind_of_conflict_says_what_the_host_did(edit: HostEdit, words: str) -> None:
    assert f"conflict: {words}" in review(asked(conflicting(1, "a", edit))).opening()


MOVED = (
    changed(1, "new", ChangeKind.CREATE, after=FOLDER),
    changed(2, "new/f", ChangeKind.CREATE, after=file_stamp("m" * 64)),
    changed(3, "f", ChangeKind.DELETE, before=file_stamp("m" * 64)),
    changed(4, "there", ChangeKind.RENAME, before=FOLDER, after=FOLDER, source="here"),
    changed(5, "there/deep", ChangeKind.MODIFY, before=file_stamp("0" * 64), after=file_stamp("1" * 64)),
    changed(6, "here", ChangeKind.CREATE, after=file_stamp("2" * 64)),
)


def number(of: Review, effect_id: str) -> int:
    return next(item.number for item in of.items if item.effect.id == effect_id)


def test_what_comes_along_is_named_before_the_confirmation() -> None:
    of = review(asked(*MOVED))
    folder, inside, moved, deep, instead = (number(of, f"e{n}") for n in (1, 2, 4, 5, 6))
    state, said = play(of, f"{inside},{deep},{instead}", "d")
    assert f"with 1 new folder: {inside} needs {folder}" in said
    assert f"with 1 moved folder: {instead} needs {moved}, {deep} needs {moved}" in said
    assert {folder, moved} <= state.proposed
    assert set(released(of, f"{inside},{deep}", "d", "y")) == {"e1", "e2", "e4", "e5"}


def test_unmarking_what_others_need_says_so() -> None:
    of = review(asked(*MOVED))
    folder, inside = number(of, "e1"), number(of, "e2")
    _, said = play(of, f"{folder},{inside}", f"{folder}")
    assert f"{inside} needs {folder}: unmark too, or {folder} comes along" in said


def test_what_needs_a_conflict_falls_with_it_and_is_named() -> None:
    effect, verdict = MOVED[0]
    assert effect.change is not None
    folder: Pair = (replace(effect, change=replace(effect.change, host_edit=HostEdit.APPEARED)), verdict)
    of = review(asked(folder, *MOVED[1:]))
    state, said = play(of, "a")
    first, inside = number(of, "e1"), number(of, "e2")
    assert f"refusing {first} drops {inside} with it" in said
    assert not {first, inside} & state.proposed
    assert "e2" not in released(of, "a", "y")


def test_half_of_a_move_is_told() -> None:
    of = review(asked(*MOVED))
    gone, made = number(of, "e3"), number(of, "e2")
    words = f"{gone} and {made} look like one move: with {gone} alone the file is gone"
    assert words in play(of, str(gone), "d")[1]
    assert words not in play(of, f"{gone},{made}", "d")[1]
    assert words not in play(of, "a")[1]


@pytest.mark.parametrize("count", [1, 3, 8, 40, 3_000])
def test_no_screen_is_wider_or_higher_than_the_terminal(count: int) -> None:
    pairs = [
        conflicting(n, f"d{n % 5}/{'long' * 40}{n}") if n % 3 else modified(n, f"d{n % 5}/f{n}")
        for n in range(1, count + 1)
    ]
    of = review(asked(*pairs, counts={f"e{n}": 4 for n in range(count + 1)}, clean=["e1"]))
    marks = [
        f"{item.number}.1" for item in of.items if not item.effect.change or not item.effect.change.host_edit
    ]
    merge = number(of, "e1")
    for screen in (
        of.opening(),
        *(play(of, *lines)[1] for lines in (("?",), ("a",), (",".join(marks[:20]), "d"))),
    ):
        lines = screen.split("\n")
        assert all(columns(line) <= 80 for line in lines)
        assert len(lines) <= 24
    if count > 1:
        assert all(columns(line) <= 80 for line in play(of, f"m {merge}", f"h {merge}", "d")[1].split("\n"))


COUNTS = {"e1": 3, "e2": 1, "e3": 2}
ITEMS = arrange((A, B, C, D))


@given(
    lines=st.lists(
        st.tuples(
            st.frozensets(st.integers(1, 4), max_size=3),
            st.frozensets(st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 1)]), max_size=3),
        ).filter(any),
        max_size=8,
    )
)
def test_marks_keep_their_shape_and_twice_the_same_is_nothing(
    lines: list[tuple[frozenset[int], frozenset[tuple[int, int]]]],
) -> None:
    def count(item: object) -> int:
        return COUNTS.get(item.effect.id, 0)  # type: ignore[attr-defined]

    marks = Marks()
    for numbers, parts in lines:
        typed = Typed(numbers=numbers, parts=parts)
        after = toggled(marks, typed, ITEMS, count)
        assert not after.marked & {3, 4}
        assert {owner for owner, _ in after.parts} <= after.marked
        for owner in {owner for owner, _ in after.parts}:
            assert 0 < len(after.hunks(owner)) < COUNTS[f"e{owner}"]
        once = toggled(Marks(), typed, ITEMS, count)
        if once.marked:
            again = read_marks(once.shown().replace(" ", ""), ITEMS, count)
            assert isinstance(again, Typed)
            assert toggled(Marks(), again, ITEMS, count) == once
            assert toggled(once, typed, ITEMS, count) == Marks()
        marks = after


@given(
    chosen=st.frozensets(st.integers(1, 8)),
    barred=st.frozensets(st.integers(1, 8), max_size=3),
    arrows=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=14),
)
def test_what_is_accepted_has_all_that_it_needs_and_nothing_barred(
    chosen: frozenset[int], barred: frozenset[int], arrows: list[tuple[int, int]]
) -> None:
    needs: dict[int, tuple[int, ...]] = {}
    for one, other in arrows:
        needs[one] = (*needs.get(one, ()), other)
    closed = close(chosen, needs, barred)
    assert not closed.accepted & barred
    assert all(need in closed.accepted for one in closed.accepted for need in needs.get(one, ()))
    assert chosen == (closed.accepted - closed.added) | closed.fallen.keys()
    assert all(wall in barred for wall in closed.fallen.values())


def test_needs_are_those_of_the_merge() -> None:
    items = arrange([*MOVED, deferred(7, "lone")])
    by_id = {item.number: item.effect.id for item in items}
    found = {by_id[one]: {by_id[need] for need in needs} for one, needs in needs_of(items).items()}
    assert found == {"e2": {"e1"}, "e5": {"e4"}, "e6": {"e4"}}


@given(
    lines=st.lists(st.sampled_from(["1.1", "1", "m 3", "3", "d", "y", "n", "a", "r", "h 1", "1.1-2", "q"]))
)
def test_no_line_makes_a_conflict_a_plain_release(lines: list[str]) -> None:
    of = review()
    state, said = play(of, *lines)
    assert all(char == "\n" or char.isprintable() for char in said)
    for answer in of.answers(state) if state.stage is Stage.DECIDED else ():
        if answer.decision is Decision.RELEASE:
            assert answer.merge == (answer.effect_id == "e3")
            assert answer.effect_id != "e4"
