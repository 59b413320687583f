"""The stop guard: when execution ends, whatever is left of the plan.

Turns, tokens, money and failures are counted from what happened; time, memory and a person's word come as events. Once
a stop is reached, nothing that acts passes any more: in the whole run, or in the branch that it was reached in.
Source: DESIGN §5, guard 1; KNOX §4.2. What counts, and that an answer without usage is a stop, ours.
"""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from interlock.model.effects import Channel, Effect
from interlock.model.manifest import Manifest, StopCondition, StopConditions
from interlock.model.records import changed, dataclass
from interlock.model.verdicts import Guard

if TYPE_CHECKING:
    from interlock.policy.guarding import Guarded
    from interlock.policy.provenance import Knowledge

STOP = "stop:"
"""Before a condition's name: the rule by which the guard refuses."""
_MODEL = "net.model"
_MILLION = 1_000_000
_OF_THE_RUN = (StopCondition.WALL, StopCondition.TOKENS, StopCondition.MONEY, StopCondition.MEMORY)

Counts = tuple[tuple[str, int], ...]
"""How many, by branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A stop that was reached.

    Takes: `branch`, in which it holds; `whole`, whether it holds in all of them; `value` and `limit`, in the
    condition's unit; `note`, what is said of it beside them.
    """

    condition: StopCondition
    value: int = 0
    limit: int = 0
    branch: str = ""
    whole: bool = False
    note: str = ""

    def holds_in(self, branch: str) -> bool:
        """Say whether it holds in a branch."""
        return self.whole or self.branch == branch

    @property
    def ends_all(self) -> bool:
        """Say whether nothing is left that could act: the whole run, or its only agent, which has no name."""
        return self.whole or not self.branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """What counts towards a stop so far, and what was reached.

    Takes: `cost`, in millionths of a micro-unit, so that it is exact; `reached`, in the order in which they were.
    """

    limits: StopConditions
    turns: Counts = ()
    failures: Counts = ()
    tokens: int = 0
    cost: int = 0
    reached: tuple[Reached, ...] = ()


def began(manifest: Manifest | None) -> Stops | None:
    """Return what is counted from the start; None where nothing but a person's word can stop a run."""
    return Stops(limits=manifest.stop) if manifest is not None and _bounds(manifest.stop) else None


def with_turn(
    stops: Stops,
    branch: str,
    model: str,
    prompt_tokens: int,
    completion_tokens: int,
    *,
    answered: bool = True,
) -> Stops:
    """Return what is counted after an exchange with the agent's model.

    Takes: `answered`, whether an answer came: only that is a turn.
    """
    limits = stops.limits
    if not _bounds(limits):
        return stops
    spent = prompt_tokens + completion_tokens
    price = _price(limits, model)
    stops = changed(stops, tokens=stops.tokens + spent)
    if price is not None:
        cost = prompt_tokens * price[0] + completion_tokens * price[1]
        stops = changed(stops, cost=stops.cost + cost)
    if answered:
        stops = changed(stops, turns=_more(stops.turns, branch, 1))
    if limits.turns and _count(stops.turns, branch) > limits.turns:
        stops = with_reached(stops, _turns(stops, branch))
    silent = "an answer of the model says nothing of its tokens" if answered and not spent else ""
    if limits.tokens and (stops.tokens >= limits.tokens or silent):
        stops = with_reached(
            stops,
            Reached(
                condition=StopCondition.TOKENS,
                value=stops.tokens,
                limit=limits.tokens,
                whole=True,
                note=silent,
            ),
        )
    if limits.money:
        unpriced = f"no price is known for the model `{model}`" if spent and price is None else silent
        value = stops.cost // _MILLION
        if value >= limits.money or unpriced:
            stops = with_reached(
                stops,
                Reached(
                    condition=StopCondition.MONEY,
                    value=value,
                    limit=limits.money,
                    whole=True,
                    note=unpriced,
                ),
            )
    return stops


def with_failures(stops: Stops, branch: str, count: int) -> Stops:
    """Return what is counted after actions of a branch failed or were refused."""
    if not stops.limits.failures:
        return stops
    stops = changed(stops, failures=_more(stops.failures, branch, count))
    value, limit = _count(stops.failures, branch), stops.limits.failures
    if value < limit:
        return stops
    found = Reached(condition=StopCondition.FAILURES, value=value, limit=limit, branch=branch)
    return with_reached(stops, found)


def with_reached(stops: Stops, found: Reached) -> Stops:
    """Return what is known after a stop was reached. Holds: each condition stops a branch once."""
    if any(one.condition is found.condition and one.holds_in(found.branch) for one in stops.reached):
        return stops
    return changed(stops, reached=(*stops.reached, found))


def reached_from(stops: Stops | None, condition: StopCondition, value: int, branch: str, note: str) -> Stops:
    """Return what is known after the runtime told of a stop.

    Raises: ValueError, where that is none by these limits.
    """
    stops = stops or Stops(limits=StopConditions())
    limit = {
        StopCondition.WALL: stops.limits.wall_ms,
        StopCondition.MEMORY: stops.limits.memory_bytes,
    }.get(condition, 0)
    if condition is StopCondition.EXTERNAL:
        if value:
            raise ValueError("a stop from outside has no value")
    elif not limit or value < limit or branch:
        raise ValueError(f"nothing is stopped by {value} of `{condition.value}`")
    whole = condition in _OF_THE_RUN or not branch
    found = Reached(condition=condition, value=value, limit=limit, branch=branch, whole=whole, note=note)
    return with_reached(stops, found)


def stop_for(stops: Stops, effect: Effect) -> Reached | None:
    """Return the stop that an effect comes after; None where it may go on.

    Holds: a change of a file is none: what was staged before waits for the principal's word. A request to the agent's
    model that would begin one turn too many is the first thing that is not done.
    """
    if effect.channel is Channel.FILE:
        return None
    branch = branch_of(effect)
    found = next((one for one in stops.reached if one.holds_in(branch)), None)
    if found is not None or effect.operation != _MODEL or not stops.limits.turns:
        return found
    return _turns(stops, branch) if _count(stops.turns, branch) >= stops.limits.turns else None


def branch_of(effect: Effect) -> str:
    """Return the branch that an effect belongs to, `""` where there is one agent, or nobody knows."""
    return effect.tool.branch if effect.tool is not None else ""


def stopped(knowledge: "Knowledge", effect: Effect) -> "Guarded | None":
    """Return what the stop guard says of an effect; None where nothing is stopped."""
    if knowledge.stops is None:
        return None
    found = stop_for(knowledge.stops, effect)
    if found is None:
        return None
    from interlock.policy.guarding import blocked

    return blocked(
        Guard.STOP,
        STOP + found.condition.value,
        said(found),
        constraints=(
            "nothing more is done in this run" if found.ends_all else "nothing more is done in this branch",
            "trying again changes nothing",
        ),
        instead="end the task now, and say in your answer what is done and what is left",
    )


def said(found: Reached) -> str:
    """Return in words why execution ended."""
    from interlock.manifest.stopping import amount_text

    where = f" of the branch `{found.branch}`" if found.branch else ""
    value, limit = f"{found.value:,}", f"{found.limit:,}"
    match found.condition:
        case StopCondition.TURNS:
            text = f"the model{where} has had the {limit} turns that it may have"
        case StopCondition.WALL:
            text = f"it has run for {found.value / 1000:,.1f} s, and may run for {found.limit / 1000:,.1f} s"
        case StopCondition.TOKENS:
            text = f"it has used {value} tokens, and may use {limit}"
        case StopCondition.MONEY:
            text = f"it has spent {amount_text(found.value)}, and may spend {amount_text(found.limit)}"
        case StopCondition.FAILURES:
            text = f"{value} actions{where} failed or were refused, and {limit} end it"
        case StopCondition.MEMORY:
            text = f"its processes hold {value} bytes of memory, and may hold {limit}"
        case StopCondition.EXTERNAL:
            text = f"it was stopped from outside{where}"
    return f"{text}: {found.note}" if found.note else text


def _bounds(limits: StopConditions) -> bool:
    """Say whether there is any condition that can be reached without a person's word."""
    return any(
        (
            limits.turns,
            limits.wall_ms,
            limits.tokens,
            limits.money,
            limits.failures,
            limits.memory_bytes,
        )
    )


def _turns(stops: Stops, branch: str) -> Reached:
    limit = stops.limits.turns
    return Reached(
        condition=StopCondition.TURNS, value=_count(stops.turns, branch), limit=limit, branch=branch
    )


def _price(limits: StopConditions, model: str) -> tuple[int, int] | None:
    found = next((one for one in limits.prices if fnmatchcase(model, one.model)), None)
    return None if found is None else (found.prompt, found.completion)


def _count(counts: Counts, branch: str) -> int:
    return dict(counts).get(branch, 0)


def _more(counts: Counts, branch: str, count: int) -> Counts:
    known = dict(counts)
    known[branch] = known.get(branch, 0) + count
    return tuple(known.items())
