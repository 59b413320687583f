"""A panel's answer: what each kind releases, whom it asks, and that nothing that fails releases."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.fakes.deferred import deferred
from tests.fakes.panel_members import Member
from tests.fakes.parted import asked as asked_in_parts
from tests.fakes.parted import conflicting, modified

from interlock.model.events import OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle import Oracle, Question, ask
from interlock.oracle.asking import Way, way_of
from interlock.oracle.human import Human
from interlock.oracle.panel import Kind, Panel

QUESTION = Question(
    task="t", deferred=tuple(deferred(n, f"f{n}") for n in (1, 2, 3)), diff=lambda _effect: ""
)


def panel(kind: str, *members: Oracle, budget: object | None = None) -> Panel:
    names = ", ".join(member.name for member in members)
    return Panel(Kind(kind), members, name=f"{kind}({names})", budget=budget)


def released(answered: OracleAnswered) -> list[str]:
    return [one.effect_id for one in answered.answers if one.decision is Decision.RELEASE]


def says(name: str, **words: str) -> Member:
    return Member(name, words)


@pytest.mark.parametrize(
    ("kind", "minds", "expected"),
    [
        ("all", ("release", "release"), True),
        ("all", ("release", "refuse"), False),
        ("all", ("release", "defer"), False),
        ("all", ("release", "silent"), False),
        ("all", ("release", "twice"), False),
        ("any", ("refuse", "release"), True),
        ("any", ("refuse", "refuse"), False),
        ("any", ("defer", "release"), True),
        ("any", ("silent", "twice"), False),
        ("majority", ("release", "refuse", "release"), True),
        ("majority", ("release", "refuse", "refuse"), False),
        ("majority", ("release", "defer", "refuse"), False),
        ("majority", ("release", "defer", "release"), True),
        ("majority", ("release", "release", "refuse", "refuse"), False),
        ("first", ("release", "refuse"), True),
        ("first", ("refuse", "release"), False),
        ("first", ("defer", "release"), True),
        ("first", ("silent", "release"), False),
        ("first", ("twice", "release"), False),
        ("first", ("defer", "defer"), False),
    ],
)
def test_what_each_kind_releases(kind: str, minds: tuple[str, ...], expected: bool) -> None:
    members = [Member(f"m{n}", else_=mind) for n, mind in enumerate(minds)]
    assert released(ask(panel(kind, *members), QUESTION)) == (["e1", "e2", "e3"] if expected else [])


@pytest.mark.parametrize("kind", ["all", "majority", "any"])
@pytest.mark.parametrize("fails", ["fault", "raises", "breaks", "unasked"])
def test_a_member_that_fails_is_one_that_refuses(kind: str, fails: str) -> None:
    failing = Member("f", else_="release" if fails != "unasked" else "refuse", fails=fails)
    others = [Member("r"), Member("q")]
    answered = ask(panel(kind, failing, *others), QUESTION)
    assert released(answered) == []
    assert [answer.effect_id for answer in answered.answers] == ["e1", "e2", "e3"]


@pytest.mark.parametrize("fails", ["fault", "raises", "breaks"])
def test_first_passes_on_from_a_member_that_fails_and_the_last_refusal_stands(fails: str) -> None:
    failing = Member("f", else_="release", fails=fails)
    assert released(ask(panel("first", failing, Member("r", else_="release")), QUESTION)) == [
        "e1",
        "e2",
        "e3",
    ]
    answered = ask(panel("first", Member("d", else_="defer"), Member("g", fails=fails)), QUESTION)
    assert released(answered) == []
    assert "g: " in answered.answers[0].reason
    assert "secret" not in str(answered)


def test_a_panel_whose_members_all_fail_passes_on_but_one_that_refuses_does_not() -> None:
    down = panel("majority", *(Member(f"m{n}", fails="fault") for n in range(3)))
    human = Member("human", else_="release")
    assert released(ask(panel("first", down, human), QUESTION)) == ["e1", "e2", "e3"]
    split = panel("majority", Member("a"), Member("b"), Member("c", fails="fault"))
    assert released(ask(panel("first", split, Member("x", else_="release")), QUESTION)) == []


def test_a_refusal_that_comes_later_in_all_is_not_passed_on() -> None:
    inner = panel("all", Member("f", fails="fault"), Member("r"))
    assert released(ask(panel("first", inner, Member("x", else_="release")), QUESTION)) == []


def test_members_are_asked_only_about_what_is_open() -> None:
    one, two = says("one", e1="release"), says("two", e1="release", e2="release", e3="release")
    ask(panel("all", one, two), QUESTION)
    assert (one.asked, two.asked) == ([("e1", "e2", "e3")], [("e1",)])
    one, two = says("one", e1="release"), Member("two")
    ask(panel("any", one, two), QUESTION)
    assert two.asked == [("e2", "e3")]
    members = [says("one", e1="release"), says("two", e1="release", e2="release"), Member("three")]
    ask(panel("majority", *members), QUESTION)
    assert members[2].asked == [("e2",)]
    one, two = says("one", e1="defer", e2="release"), Member("two")
    ask(panel("first", one, two), QUESTION)
    assert two.asked == [("e1",)]


def test_nobody_else_is_asked_once_all_is_settled() -> None:
    two = Member("two", else_="release")
    ask(panel("all", Member("one"), two), QUESTION)
    assert two.asked == []


def test_a_member_of_all_that_fails_ends_it_where_nobody_could_take_over() -> None:
    two = Member("two", else_="release")
    ask(panel("all", Member("one", fails="fault"), two), QUESTION)
    assert two.asked == []


def test_who_said_what_is_told() -> None:
    answered = ask(panel("all", says("one", e1="release"), says("two", e1="refuse")), QUESTION)
    told = [(vote.by, vote.decision, vote.effects) for vote in answered.votes]
    assert told == [
        ("one", Decision.RELEASE, ("e1",)),
        ("one", Decision.REFUSE, ("e2", "e3")),
        ("two", Decision.REFUSE, ("e1",)),
    ]
    assert answered.answers[0].reason == "two: refuse says two"
    assert answered.oracle == "all(one, two)"


def test_a_vote_of_a_member_that_failed_is_none() -> None:
    answered = ask(panel("any", Member("f", fails="fault"), Member("r")), QUESTION)
    assert (answered.votes[0].by, answered.votes[0].decision) == ("f", Decision.DEFER)
    assert answered.votes[0].reason == "it failed"


def test_whoever_leaves_the_scope_open_leaves_it_open_for_all() -> None:
    person = Member("human", fails="leaves")
    answered = ask(panel("all", says("one", e1="release"), person), QUESTION)
    assert answered.leave_open
    assert answered.answers == ()
    assert [vote.by for vote in answered.votes] == ["one", "one"]
    settled = ask(panel("all", Member("one"), person), QUESTION)
    assert not settled.leave_open


def test_in_mid_run_nothing_can_be_left_open() -> None:
    now = Question(task="t", deferred=QUESTION.deferred, diff=lambda _effect: "", now=True)
    person = Member("human", fails="leaves")
    assert released(ask(panel("all", Member("one", else_="release"), person), now)) == []
    assert not ask(panel("all", Member("one", else_="release"), person), now).leave_open


def test_parts_are_counted_hunk_by_hunk() -> None:
    question = asked_in_parts(modified(1, "a"), counts={"e1": 4}, clean=[])

    def said(kind: str, *words: str) -> tuple[Decision, tuple[int, ...]]:
        members = [Member(f"m{n}", else_=word) for n, word in enumerate(words)]
        (answer,) = ask(panel(kind, *members), question).answers
        return answer.decision, answer.hunks

    assert said("all", "release 1,2", "release 2,3") == (Decision.RELEASE, (2,))
    assert said("all", "release", "release 2,3") == (Decision.RELEASE, (2, 3))
    assert said("all", "release 1", "release 2") == (Decision.REFUSE, ())
    assert said("any", "release 1", "release") == (Decision.RELEASE, (1,))
    assert said("majority", "release 1,2", "release 2", "refuse") == (Decision.RELEASE, (2,))
    assert said("majority", "release 1,2", "release", "refuse") == (Decision.RELEASE, (1, 2))
    assert said("majority", "release 1", "release 2", "release 3") == (Decision.REFUSE, ())
    assert said("majority", "release", "release", "release 1") == (Decision.RELEASE, ())
    assert said("first", "defer", "release 1") == (Decision.RELEASE, (1,))


def test_what_one_releases_only_redacted_leaves_redacted() -> None:
    question = replace(QUESTION, redacted=lambda _effect: "cut")

    def said(kind: str, *words: str) -> tuple[Decision, bool]:
        members = [Member(f"m{n}", else_=word) for n, word in enumerate(words)]
        answer = ask(panel(kind, *members), question).answers[0]
        return answer.decision, answer.redact

    assert said("all", "redact", "release") == (Decision.RELEASE, True)
    assert said("all", "redact", "refuse") == (Decision.REFUSE, False)
    assert said("any", "release", "redact") == (Decision.RELEASE, False)
    assert said("majority", "release", "redact", "refuse") == (Decision.RELEASE, True)
    assert said("majority", "release", "redact", "release") == (Decision.RELEASE, False)


def test_a_conflict_is_not_released_by_members_that_would_not_merge_it() -> None:
    question = asked_in_parts(conflicting(1, "c"), counts={}, clean=["e1"])
    members = [Member("a", else_="release"), Member("b", else_="release")]
    assert released(ask(panel("any", *members), question)) == []


def test_a_member_is_never_asked_about_a_refusal_that_strayed_into_the_question() -> None:
    effect, verdict = deferred(9, "x")
    question = replace(
        QUESTION, deferred=(*QUESTION.deferred, (effect, replace(verdict, decision=Decision.REFUSE)))
    )
    answered = ask(panel("any", Member("a", else_="release"), Member("b", else_="release")), question)
    assert released(answered) == ["e1", "e2", "e3"]


class Purse:
    """Counts how often it was renewed."""

    def __init__(self) -> None:
        self.made: list[Purse] = []

    def renewed(self) -> "Purse":
        self.made.append(Purse())
        return self.made[-1]


def test_the_members_of_a_scope_share_one_budget() -> None:
    seen: list[object | None] = []

    class Spender(Member):
        def resolve(self, question: Question) -> OracleAnswered:
            seen.append(question.budget)
            return super().resolve(question)

    purse = Purse()
    inner = panel("any", Spender("a"), Spender("b"), budget=Purse())
    asked = panel("any", inner, Spender("c"), budget=purse)
    now = replace(QUESTION, now=True)
    for question in (now, now, QUESTION):
        ask(asked, question)
    assert len(seen) == 9
    assert all(one is purse for one in seen)
    ask(asked, QUESTION)
    assert seen[-1] is purse.made[0]
    assert len(purse.made) == 1


def test_a_panel_is_as_slow_as_its_slowest_member() -> None:
    class Slow(Member):
        way = Way.AWAY

    assert way_of(panel("all", Member("a"), Member("b"))) is Way.AT_ONCE
    assert way_of(panel("all", Member("a"), Slow("b"))) is Way.AWAY
    assert way_of(panel("first", panel("all", Member("a"), Slow("b")), Human())) is Way.TERMINAL


def test_reasons_are_bounded() -> None:
    class Long(Member):
        def _answers(self, effect_id: str):  # type: ignore[no-untyped-def]
            (answer,) = super()._answers(effect_id)
            return (replace(answer, reason="x" * 5000 + "\ud800"),)

    words: Mapping[str, str] = {}
    answered = ask(panel("any", Long("a", words), Long("b", words, else_="defer")), QUESTION)
    assert all(len(vote.reason) <= 1000 for vote in answered.votes)
    assert all(len(answer.reason) <= 1000 for answer in answered.answers)
    str(answered).encode()
