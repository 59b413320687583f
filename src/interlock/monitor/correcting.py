"""Corrections: how often a refused kind of action may be mended before nobody is asked about it any more.

Only a refusal that says which check failed (S, T, I) tells the agent what to mend, so only these are counted. What is
mended passes the whole decision again; what is the same as before is not asked about twice.
Source: AgentVisor §4.4 (one correction), which does what was mended unaudited; that it is decided anew, ours.
"""

from interlock import policy as rules
from interlock.model import events as ev
from interlock.model.effects import Channel, Effect
from interlock.model.records import changed
from interlock.model.verdicts import SemanticException
from interlock.monitor.exceptions import refused_again, refused_by_answer
from interlock.monitor.parking import turn_away
from interlock.monitor.state import Decided, Objected, State
from interlock.monitor.writing import Writing

MAX_OBJECTED = 1_000
"""Past it every kind that was refused is asked about no more."""


def refused_by(
    state: State,
    out: Writing,
    item: Decided,
    event: ev.OracleAnswered,
    *,
    given: dict[str, ev.Answer],
    node: int,
) -> State:
    """Turn away what an oracle did not release, and count it where it says what to mend.

    Takes: `node`, of the answer.
    """
    answer = given.get(item.effect.id)
    exception = refused_by_answer(state.policy, item, event, answer)
    state = turn_away(state, out, item, exception)
    if answer is None or answer.exception is not exception or item.effect.channel is Channel.FILE:
        return state
    kind = _kind_of(item.effect)
    # What was proposed before the agent was told of a refusal corrects nothing.
    told = [one.attempt for one in state.objected if one.kind == kind and one.node < item.call]
    one = Objected(
        kind=kind,
        question=rules.question_of(item.effect, whole=True),
        node=node,
        attempt=1 + max(told, default=0),
        exception=exception,
    )
    return changed(state, objected=(*state.objected, one)[:MAX_OBJECTED])


def spent(state: State, effect: Effect) -> SemanticException | None:
    """Return what the agent is told of an effect that is asked about no more, None where it may be asked about."""
    if not state.objected or effect.channel is Channel.FILE:
        return None
    kind = _kind_of(effect)
    past = [one for one in state.objected if one.kind == kind]
    if not past:
        return None
    assert state.policy is not None
    question = rules.question_of(effect, whole=True)
    same = next((one for one in past if question is not None and one.question == question), None)
    if same is not None:
        return refused_again(effect, same.exception, corrections=None)
    corrections = state.policy.corrections
    if max(one.attempt for one in past) > corrections or len(state.objected) >= MAX_OBJECTED:
        return refused_again(effect, past[-1].exception, corrections=corrections)
    return None


def _kind_of(effect: Effect) -> str:
    """Return what makes two effects proposals of one kind: the tool, else the operation, whatever its object."""
    return f"{effect.operation} {effect.object}" if effect.channel is Channel.TOOL else effect.operation
