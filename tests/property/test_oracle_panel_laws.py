"""Laws of panels, over nested ones drawn at random: the plain counting, monotony, faults, bounds, and who is asked.

`plain` is a second reading: it asks everybody about everything and counts in three values, with no early end.
"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.deferred import deferred
from tests.fakes.panel_members import Member

from interlock.model.events import OracleAnswered
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision
from interlock.oracle import Oracle, Question, ask, sanity
from interlock.oracle.panel import Kind, Panel

FEW = settings(max_examples=40)
EFFECTS = ("e1", "e2", "e3")
QUESTION = Question(
    task="t", deferred=tuple(deferred(n, f"f{n}") for n in (1, 2, 3)), diff=lambda _effect: ""
)
WORDS = ("release", "refuse", "defer", "silent", "twice")
FAILS = ("", "", "", "fault", "raises", "breaks", "unasked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A member or a panel, before it is made. Takes: `kind`, None for a member with `words` and `fails`."""

    kind: Kind | None = None
    members: "tuple[Sketch, ...]" = ()
    words: tuple[str, ...] = ()
    fails: str = ""


def members() -> st.SearchStrategy[Sketch]:
    return st.builds(
        lambda words, fails: Sketch(words=words, fails=fails),
        st.tuples(*(st.sampled_from(WORDS) for _ in EFFECTS)),
        st.sampled_from(FAILS),
    )


SKETCHES = st.recursive(
    members(),
    lambda inner: st.builds(
        lambda kind, some: Sketch(kind=kind, members=tuple(some)),
        st.sampled_from(list(Kind)),
        st.lists(inner, min_size=2, max_size=4),
    ),
    max_leaves=8,
)
PANELS = st.builds(
    lambda kind, some: Sketch(kind=kind, members=tuple(some)),
    st.sampled_from(list(Kind)),
    st.lists(SKETCHES, min_size=2, max_size=4),
)


def made(sketch: Sketch, made_so_far: list[Member] | None = None) -> Oracle:
    leaves = [] if made_so_far is None else made_so_far
    if sketch.kind is None:
        member = Member(f"m{len(leaves)}", dict(zip(EFFECTS, sketch.words, strict=True)), fails=sketch.fails)
        leaves.append(member)
        return member
    return Panel(sketch.kind, [made(one, leaves) for one in sketch.members], name="p")


def plain(sketch: Sketch, effect: int) -> bool | None:
    """Return whether it releases (True), refuses (False) or does not decide (None)."""
    if sketch.kind is None:
        if sketch.fails in {"fault", "raises", "breaks"}:
            return None
        return {"release": True, "defer": None}.get(sketch.words[effect], False)
    said = [plain(one, effect) for one in sketch.members]
    yes, no = said.count(True), said.count(False)
    match sketch.kind:
        case Kind.ALL:
            return False if no else (True if yes == len(said) else None)
        case Kind.ANY:
            return True if yes else (False if no == len(said) else None)
        case Kind.MAJORITY:
            if 2 * yes > len(said):
                return True
            return None if 2 * (len(said) - no) > len(said) else False
        case Kind.FIRST:
            return next((one for one in said if one is not None), None)


def released(sketch: Sketch) -> frozenset[str]:
    return released_of(ask(made(sketch), QUESTION))


def released_of(answered: OracleAnswered) -> frozenset[str]:
    return frozenset(one.effect_id for one in answered.answers if one.decision is Decision.RELEASE)


@given(PANELS)
@settings(max_examples=150)
def test_a_panel_releases_what_plain_counting_releases(sketch: Sketch) -> None:
    expected = {effect for at, effect in enumerate(EFFECTS) if plain(sketch, at) is True}
    assert released(sketch) == expected


@given(PANELS)
@FEW
def test_its_answer_is_sane_already(sketch: Sketch) -> None:
    answered = ask(made(sketch), QUESTION)
    assert [one.effect_id for one in answered.answers] == list(EFFECTS)
    assert sanity(answered, QUESTION) == answered
    assert not answered.leave_open


@given(PANELS, st.integers(0, 4), st.sampled_from(list(Kind)))
@FEW
def test_a_refusing_member_more_in_all_never_releases_more(sketch: Sketch, at: int, outer: Kind) -> None:
    """Also where the `all` is itself a member of another panel."""
    base = replace(sketch, kind=Kind.ALL)
    refusing = Sketch(words=("refuse",) * 3)
    place = min(at, len(base.members))
    more = replace(base, members=(*base.members[:place], refusing, *base.members[place:]))
    assert released(more) == frozenset()
    others = tuple(sketch.members[:2])
    assert released(Sketch(kind=outer, members=(more, *others))) <= released(
        Sketch(kind=outer, members=(base, *others))
    )


@given(PANELS, st.data())
@FEW
def test_a_member_that_refuses_instead_never_releases_more(sketch: Sketch, data: st.DataObject) -> None:
    """Holds for every panel: turning one member's releases into refusals takes away, and never gives."""
    at = data.draw(st.integers(0, len(sketch.members) - 1))
    refusing = Sketch(words=("refuse",) * 3)
    less = replace(sketch, members=(*sketch.members[:at], refusing, *sketch.members[at + 1 :]))
    assert released(less) <= released(sketch)


@given(PANELS, st.data())
@FEW
def test_a_fault_never_releases(sketch: Sketch, data: st.DataObject) -> None:
    """What is released with a member down is released by the others' answers alone."""
    at = data.draw(st.integers(0, len(sketch.members) - 1))
    down = Sketch(words=("release",) * 3, fails=data.draw(st.sampled_from(("fault", "raises", "breaks"))))
    with_fault = released(replace(sketch, members=(*sketch.members[:at], down, *sketch.members[at + 1 :])))
    silent = Sketch(words=("defer",) * 3)
    without = released(replace(sketch, members=(*sketch.members[:at], silent, *sketch.members[at + 1 :])))
    assert with_fault == without


@given(
    st.sampled_from(list(Kind)),
    st.lists(st.sampled_from(("fault", "raises", "breaks")), min_size=2, max_size=4),
)
@FEW
def test_nothing_is_released_where_all_fail(kind: Kind, fails: list[str]) -> None:
    members_ = tuple(Sketch(words=("release",) * 3, fails=one) for one in fails)
    assert released(Sketch(kind=kind, members=members_)) == frozenset()


@given(PANELS)
@FEW
def test_nobody_is_asked_twice_or_about_nothing(sketch: Sketch) -> None:
    leaves: list[Member] = []
    answered = ask(made(sketch, leaves), QUESTION)
    for leaf in leaves:
        assert len(leaf.asked) <= 1
        assert all(asked and set(asked) <= set(EFFECTS) for asked in leaf.asked)
    asked_of = {leaf.name: set(leaf.asked[0]) if leaf.asked else set() for leaf in leaves}
    voted = {name: set[str]() for name in asked_of}
    for vote in answered.votes:
        assert not voted[vote.by] & set(vote.effects)
        voted[vote.by] |= set(vote.effects)
    assert voted == asked_of


@given(PANELS)
@FEW
def test_a_release_has_a_vote_that_releases_it(sketch: Sketch) -> None:
    answered = ask(made(sketch), QUESTION)
    for effect_id in released_of(answered):
        assert any(effect_id in vote.effects and vote.decision is Decision.RELEASE for vote in answered.votes)
