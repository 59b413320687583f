"""How an effect is tied to a call of the model's, in words and as JSON values (`policy.announced_ties`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from interlock.model.effects import Effect
from interlock.model.verdicts import Verdict
from interlock.policy.announced_ties import UNSEEN, Relation, Tie, Ties

if TYPE_CHECKING:
    from interlock.monitor import State

_SHORTLY = {
    Relation.ANNOUNCED: "by {}",
    Relation.COVERED: "within {}",
    Relation.DIFFERS: "not what {} says",
}
_WORDS = {
    Relation.OWN: "the agent program's own",
    Relation.ANNOUNCED: "the model's call names it",
    Relation.COVERED: "a call of the model's that may do anything was under way, and does not name it",
    Relation.DIFFERS: "the model's call under way says that it does something else",
    Relation.UNANNOUNCED: "no call of the model's announced it",
    Relation.UNKNOWN: "which call of the model's it comes from is not known",
}


def tie_of(state: State, effect: Effect) -> Tie | None:
    """Return how an effect is tied, by what the state knows; None where nothing is to be said of it.

    That is so for traffic with the model itself, and where no exchange with a model was seen.
    """
    if state.policy is None or state.knowledge is None or effect.operation == "net.model":
        return None
    tie = Ties(state.policy, state.knowledge).of(effect)
    return None if tie is UNSEEN else tie


def ties_of(state: State, effects: Iterable[Effect]) -> dict[str, Tie]:
    """Return the same for many effects, by their ids, those alone of which something is to be said."""
    if state.policy is None or state.knowledge is None or not state.knowledge.announced.seen:
        return {}
    ties = Ties(state.policy, state.knowledge)
    told = ((effect.id, ties.of(effect)) for effect in effects if effect.operation != "net.model")
    return {effect_id: tie for effect_id, tie in told if tie is not None and tie is not UNSEEN}


def shortly(tie: Tie) -> str:
    """Say it in a few words, `""` for what needs none."""
    if tie.call is not None:
        return _SHORTLY[tie.relation].format(tie.call.named.short)
    return "unannounced" if tie.relation is Relation.UNANNOUNCED else ""


def in_words(tie: Tie) -> list[str]:
    """Say it in one line, and the call in a second one."""
    said = _WORDS[tie.relation]
    if tie.why:
        return [f"{said}: {tie.why}"]
    if tie.call is None:
        return [said]
    named = tie.call.named
    ids = ", ".join(filter(None, (named.call_id, f"exchange {tie.call.exchange}")))
    return [f"{said} ({ids}):", f"  {named.tool} {named.arguments}"]


def document(tie: Tie) -> dict[str, object]:
    """Return it as JSON values."""
    found: dict[str, object] = {"relation": tie.relation.value}
    if tie.why:
        found["why"] = tie.why
    if tie.call is not None:
        named = tie.call.named
        found |= {
            "tool": named.tool,
            "arguments": named.arguments,
            "call": named.call_id,
            "exchange": tie.call.exchange,
        }
    return found


def told_of(state: State, deferred: Iterable[tuple[Effect, Verdict]]) -> dict[str, str]:
    """Return what a review says of effects, by their ids: nothing of the agent program's own."""
    ties = ties_of(state, (effect for effect, _verdict in deferred))
    return {
        effect_id: said
        for effect_id, tie in ties.items()
        if tie.relation is not Relation.OWN and (said := _reviewed(tie))
    }


def _reviewed(tie: Tie) -> str:
    short = f": {tie.call.named.short}" if tie.call is not None else ""
    why = f": {tie.why}" if tie.why else ""
    return f"{_WORDS[tie.relation]}{short or why}"
