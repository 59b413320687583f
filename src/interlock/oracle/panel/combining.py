"""What a panel says on one effect, from what its members said: three-valued, so that not deciding is no answer.

Releases, refuses, or does not decide. Only `first` lets a later member decide what an earlier one did not; on its own,
and at the end, what nobody decided is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from interlock.model.events import Answer
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision
from interlock.oracle.panel.words import Kind


class Mind(Enum):
    """What somebody thinks of one effect."""

    RELEASES = "releases"
    REFUSES = "refuses"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a member said on one effect. Takes: `answer`, whose reason names who said it."""

    mind: Mind
    answer: Answer


def is_settled(kind: Kind, said: Sequence[Said], size: int, *, exact: bool) -> bool:
    """Say whether the members who are still to be asked could change nothing.

    Takes: `said`, of the first members, in order; `size`, how many there are; `exact`, whether it matters that an
    effect is undecided rather than refused.
    """
    if len(said) >= size:
        return True
    refused = sum(1 for one in said if one.mind is Mind.REFUSES or (not exact and one.mind is Mind.UNDECIDED))
    match kind:
        case Kind.ALL:
            return refused > 0
        case Kind.ANY:
            return any(one.mind is Mind.RELEASES for one in said)
        case Kind.MAJORITY:
            whole = sum(1 for one in said if _is_whole(one))
            return whole >= _more_than_half(size) or refused > size - _more_than_half(size)
        case Kind.FIRST:
            return any(one.mind is not Mind.UNDECIDED for one in said)


def outcome(kind: Kind, said: Sequence[Said], size: int) -> Said:
    """Return what the panel says, once it is settled.

    Holds: it releases no part of an effect that the members' answers, counted so, do not release.
    """
    match kind:
        case Kind.ALL:
            return _all(said)
        case Kind.ANY:
            return next((one for one in said if one.mind is Mind.RELEASES), None) or _none_of(said)
        case Kind.MAJORITY:
            return _majority(said, size)
        case Kind.FIRST:
            return next((one for one in said if one.mind is not Mind.UNDECIDED), said[-1])


def _all(said: Sequence[Said]) -> Said:
    for mind in (Mind.REFUSES, Mind.UNDECIDED):
        if (found := next((one for one in said if one.mind is mind), None)) is not None:
            return found
    parts = [frozenset(one.answer.hunks) for one in said if one.answer.hunks]
    common = frozenset.intersection(*parts) if parts else frozenset()
    if parts and not common:
        return _refused(said[0], "they release no part of it together; ", said)
    return _released(said, said, hunks=tuple(sorted(common)))


def _none_of(said: Sequence[Said]) -> Said:
    made = _refused(said[0], "", said)
    undecided = any(one.mind is Mind.UNDECIDED for one in said)
    return replace(made, mind=Mind.UNDECIDED) if undecided else made


def _majority(said: Sequence[Said], size: int) -> Said:
    least = _more_than_half(size)
    whole = [one for one in said if _is_whole(one)]
    releasing = [one for one in said if one.mind is Mind.RELEASES]
    if len(whole) >= least:
        return _released(whole, said)
    if len(releasing) >= least:
        # Each hunk by itself: whoever releases the whole effect releases every hunk of it.
        named = {hunk for one in releasing for hunk in one.answer.hunks}
        common = [
            hunk
            for hunk in sorted(named)
            if sum(1 for one in releasing if not one.answer.hunks or hunk in one.answer.hunks) >= least
        ]
        if common or not named:
            return _released(releasing, said, hunks=tuple(common))
        return _refused(said[0], "more than half release no part of it together; ", said)
    undecided = sum(1 for one in said if one.mind is Mind.UNDECIDED)
    made = _refused(said[0], f"{len(releasing)} of {size} release it, {least} are needed; ", said)
    return replace(made, mind=Mind.UNDECIDED) if len(releasing) + undecided >= least else made


def _released(releasing: Sequence[Said], told: Sequence[Said], *, hunks: tuple[int, ...] = ()) -> Said:
    # Where one of them releases it only redacted, no more than that is released by all of them.
    redact = any(one.answer.redact for one in releasing)
    answer = replace(releasing[0].answer, hunks=hunks, redact=redact, reason=_reasons(told))
    return Said(mind=Mind.RELEASES, answer=answer)


def _refused(one: Said, why: str, told: Sequence[Said]) -> Said:
    # Of the first who refuses the rest of the answer is kept: what it says to the agent.
    own = next((each.answer for each in told if each.mind is Mind.REFUSES), None)
    reason = f"{why}{_reasons(told)}"
    if own is None:
        own = Answer(effect_id=one.answer.effect_id, decision=Decision.REFUSE, reason=reason)
    return Said(mind=Mind.REFUSES, answer=replace(own, reason=reason))


def _reasons(told: Sequence[Said]) -> str:
    return "; ".join(one.answer.reason for one in told)


def _is_whole(one: Said) -> bool:
    return one.mind is Mind.RELEASES and not one.answer.hunks and not one.answer.redact


def _more_than_half(size: int) -> int:
    return size // 2 + 1
