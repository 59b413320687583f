"""Oracles are bounded: no answer, two answers, a strange answer or a broken oracle never releases."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.deferred import deferred
from tests.fakes.parted import asked, conflicting, modified

from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision, Verdict
from interlock.oracle import Human, Oracle, Principal, Question, Strict, ask, sanity
from interlock.oracle.question import ShownHunk

PAIRS = (deferred(1, "a"), deferred(2, "b"), deferred(3, "c"))
QUESTION = Question(task="t", deferred=PAIRS, diff=lambda effect: "")


def release(effect_id: str) -> Answer:
    return Answer(effect_id=effect_id, decision=Decision.RELEASE, reason="ok")


def decisions(answered: OracleAnswered) -> dict[str, Decision]:
    return {answer.effect_id: answer.decision for answer in answered.answers}


class Says:
    name = "says"

    def __init__(self, answered: OracleAnswered | Exception) -> None:
        self._answered = answered

    def resolve(self, question: Question) -> OracleAnswered:
        if isinstance(self._answered, Exception):
            raise self._answered
        return self._answered


def test_strict_refuses_each_with_its_reason() -> None:
    answered = ask(Strict(), QUESTION)
    assert decisions(answered) == dict.fromkeys(("e1", "e2", "e3"), Decision.REFUSE)
    assert {answer.reason for answer in answered.answers} == {"nobody was asked"}


def test_missing_unknown_and_repeated_answers() -> None:
    raw = OracleAnswered(oracle="x", answers=(release("e1"), release("e2"), release("e2"), release("e99")))
    answered = ask(Says(raw), QUESTION)
    assert decisions(answered) == {"e1": Decision.RELEASE, "e2": Decision.REFUSE, "e3": Decision.REFUSE}
    assert [answer.reason for answer in answered.answers] == [
        "ok",
        "the oracle answered more than once",
        "the oracle gave no answer",
    ]


def test_undecided_is_refused() -> None:
    raw = OracleAnswered(oracle="x", answers=(Answer(effect_id="e1", decision=Decision.DEFER, reason="hmm"),))
    assert decisions(sanity(raw, QUESTION))["e1"] is Decision.REFUSE


@pytest.mark.parametrize("decision", [Decision.REFUSE, Decision.RELEASE])
def test_what_was_not_deferred_is_not_answered(decision: Decision) -> None:
    effect, verdict = PAIRS[0]
    settled = Verdict(effect_id=effect.id, decision=decision, checks=verdict.checks)
    question = Question(task="t", deferred=((effect, settled), PAIRS[1]), diff=lambda effect: "")
    raw = OracleAnswered(oracle="x", answers=(release("e1"), release("e2")))
    assert decisions(sanity(raw, question)) == {"e2": Decision.RELEASE}


def test_the_principal_overturns_no_refusal() -> None:
    effect, verdict = PAIRS[0]
    refused = Verdict(effect_id=effect.id, decision=Decision.REFUSE, checks=verdict.checks)
    question = Question(task="t", deferred=((effect, refused), PAIRS[1]), diff=lambda effect: "")
    assert decisions(Principal().resolve(question)) == {"e2": Decision.RELEASE}


def test_a_fault_refuses_all_even_with_answers_and_leave_open() -> None:
    raw = OracleAnswered(oracle="x", answers=(release("e1"),), fault="timed out", leave_open=True)
    answered = sanity(raw, QUESTION)
    assert not answered.leave_open
    assert decisions(answered) == dict.fromkeys(("e1", "e2", "e3"), Decision.REFUSE)
    assert {answer.reason for answer in answered.answers} == {"timed out"}


def test_a_scope_left_open_releases_nothing() -> None:
    raw = OracleAnswered(oracle="x", answers=(release("e1"),), leave_open=True)
    answered = sanity(raw, QUESTION)
    assert answered.leave_open
    assert answered.answers == ()


@pytest.mark.parametrize("error", [ValueError("the secret"), RecursionError(), KeyError("the secret")])
def test_a_broken_oracle_refuses_and_tells_no_secret(error: Exception) -> None:
    answered = ask(Says(error), QUESTION)
    assert set(decisions(answered).values()) == {Decision.REFUSE}
    assert len(answered.answers) == 3
    assert answered.fault == f"broke off: {type(error).__name__}"


def test_our_own_errors_say_what_is_wrong() -> None:
    assert ask(Says(InputError("no such file")), QUESTION).fault == "no such file"


def test_a_human_without_a_terminal_leaves_the_scope_open() -> None:
    # Descriptors that are closed: what a lost terminal looks like.
    answered = ask(Human(reader=987, writer=987), QUESTION)
    assert answered.leave_open
    assert answered.answers == ()


def test_reasons_are_bounded_and_fit_the_ledger() -> None:
    raw = OracleAnswered(
        oracle="x", answers=(Answer(effect_id="e1", decision=Decision.RELEASE, reason="\ud800" + "x" * 9999),)
    )
    reason = sanity(raw, QUESTION).answers[0].reason
    assert len(reason) <= 1000
    assert reason.encode("utf-8")


PARTED = asked(modified(1, "a"), conflicting(2, "b"), conflicting(3, "c"), counts={"e1": 3}, clean=["e2"])
"""One with three hunks, one conflict with a clean merge, and one without."""


def one(effect_id: str, hunks: tuple[int, ...] = (), *, merge: bool = False) -> Answer:
    answer = Answer(effect_id=effect_id, decision=Decision.RELEASE, reason="ok", hunks=hunks, merge=merge)
    answered = sanity(OracleAnswered(oracle="x", answers=(answer,)), PARTED)
    (found,) = (item for item in answered.answers if item.effect_id == effect_id)
    return found


@pytest.mark.parametrize(
    ("effect_id", "hunks", "merge", "words"),
    [
        ("e1", (4,), False, "no hunk 4: they go from 1 to 3"),
        ("e1", (0,), False, "no hunk 0"),
        ("e1", (-1, 2), False, "no hunk -1"),
        ("e1", (), True, "nothing to merge"),
        ("e1", (1,), True, "nothing to merge"),
        ("e2", (), False, "the host changed it too: merge it, or keep the host's version"),
        ("e2", (1,), False, "the host changed it too: merge it, or keep the host's version"),
        ("e2", (1,), True, "merged whole, not by hunks"),
        ("e3", (), True, "both sides changed 1 place differently"),
    ],
)
def test_what_an_effect_cannot_have_is_a_refusal(
    effect_id: str, hunks: tuple[int, ...], merge: bool, words: str
) -> None:
    answer = one(effect_id, hunks, merge=merge)
    assert answer.decision is Decision.REFUSE
    assert words in answer.reason
    assert (answer.hunks, answer.merge) == ((), False)


def test_hunks_are_put_in_order_and_all_of_them_are_the_whole() -> None:
    assert one("e1", (3, 1, 3)).hunks == (1, 3)
    whole = one("e1", (3, 2, 1))
    assert (whole.decision, whole.hunks) == (Decision.RELEASE, ())
    assert one("e2", merge=True).merge


def test_parts_that_nobody_can_look_at_are_refused() -> None:
    bare = Question(task="t", deferred=PARTED.deferred, diff=lambda effect: "")

    def breaks(effect: Effect) -> list[ShownHunk]:
        raise KeyError("secret")

    broken = replace(PARTED, hunks=breaks, merged=breaks)  # type: ignore[arg-type]
    raw = OracleAnswered(
        oracle="x",
        answers=(
            Answer(effect_id="e1", decision=Decision.RELEASE, reason="ok", hunks=(1,)),
            Answer(effect_id="e2", decision=Decision.RELEASE, reason="ok", merge=True),
        ),
    )
    for question, words in ((bare, "here"), (broken, "KeyError")):
        answers = sanity(raw, question).answers
        assert [answer.decision for answer in answers] == [Decision.REFUSE] * 3
        assert all(words in answer.reason for answer in answers[:2])
        assert "secret" not in str(answers)


def test_a_refusal_keeps_no_parts() -> None:
    raw = Answer(effect_id="e1", decision=Decision.REFUSE, reason="no", hunks=(1,), merge=True)
    (answer, *_) = sanity(OracleAnswered(oracle="x", answers=(raw,)), PARTED).answers
    assert answer == Answer(effect_id="e1", decision=Decision.REFUSE, reason="no")


def test_the_principal_releases_no_conflict() -> None:
    answers = ask(Principal(), PARTED).answers
    assert [answer.decision for answer in answers] == [Decision.RELEASE, Decision.REFUSE, Decision.REFUSE]


@given(
    hunks=st.lists(st.integers(-2, 5), max_size=5).map(tuple),
    merge=st.booleans(),
    effect_id=st.sampled_from(["e1", "e2", "e3"]),
)
def test_parts_are_bounded_and_stable(hunks: tuple[int, ...], merge: bool, effect_id: str) -> None:
    raw = OracleAnswered(
        oracle="x",
        answers=(
            Answer(effect_id=effect_id, decision=Decision.RELEASE, reason="", hunks=hunks, merge=merge),
        ),
    )
    once = sanity(raw, PARTED)
    assert sanity(once, PARTED) == once
    for answer in once.answers:
        if answer.decision is Decision.RELEASE:
            assert answer.merge == (answer.effect_id == "e2")
            assert answer.hunks == () or (answer.effect_id == "e1" and len(answer.hunks) < 3)
            assert all(1 <= number <= 3 for number in answer.hunks)


ANSWERS = st.lists(
    st.builds(
        Answer,
        effect_id=st.sampled_from(["e1", "e2", "e3", "e4", ""]),
        decision=st.sampled_from(list(Decision)),
        reason=st.text(max_size=5),
    ),
    max_size=6,
)


@given(answers=ANSWERS, fault=st.sampled_from(["", "broken"]), leave_open=st.booleans())
def test_sanity_is_bounded_and_stable(answers: list[Answer], fault: str, leave_open: bool) -> None:
    raw = OracleAnswered(oracle="x", answers=tuple(answers), fault=fault, leave_open=leave_open)
    once = sanity(raw, QUESTION)
    assert sanity(once, QUESTION) == once
    if once.leave_open:
        assert once.answers == ()
        assert not fault
        return
    assert [answer.effect_id for answer in once.answers] == ["e1", "e2", "e3"]
    for answer in once.answers:
        given_answers = [one.decision for one in answers if one.effect_id == answer.effect_id]
        released = answer.decision is Decision.RELEASE
        assert released == (given_answers == [Decision.RELEASE] and not fault)


def test_every_oracle_fits_the_protocol() -> None:
    oracles: list[Oracle] = [Strict(), Principal(), Human()]
    assert [oracle.name for oracle in oracles] == ["strict", "principal", "human"]
