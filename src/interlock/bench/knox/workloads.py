"""The thirteen workloads: how flows become bundles, and in which order the agents of a bundle act."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.bench.knox.flows import OF_A_BRANCH, Call, Flow, Kind, Trigger
from interlock.model.records import changed, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Takes: `tasks` in a bundle, over `agents`; `interleaved`, whether one agent's tasks take turns."""

    name: str
    tasks: int
    agents: int
    interleaved: bool = False


WORKLOADS: tuple[Workload, ...] = (
    Workload(name="ST-SA", tasks=1, agents=1),
    *(Workload(name=f"MT-SA seq {t}", tasks=t, agents=1) for t in (2, 4, 6)),
    *(Workload(name=f"MT-SA int {t}", tasks=t, agents=1, interleaved=True) for t in (2, 4, 6)),
    *(
        Workload(name=f"MT-MA {t},{m}", tasks=t, agents=m)
        for t, m in ((2, 2), (4, 2), (4, 4), (6, 2), (6, 4), (6, 6))
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One thing that an agent does for a flow: a turn of its model, a call, or what stops it.

    Takes: exactly one of `turn`, `call` and `trigger`; `step`, the id of the plan's step that the call is, `""` for one
    that is not planned; `decides`, whether the flow is blocked or allowed by what becomes of it.
    """

    flow: Flow
    call: Call | None = None
    trigger: Trigger | None = None
    step: str = ""
    decides: bool = False

    @property
    def turn(self) -> bool:
        """Say whether it is a turn of the agent's model."""
        return self.call is None and self.trigger is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The flows of one run. Takes: `branches`, of each agent its name and its moves in order."""

    flows: tuple[Flow, ...]
    branches: tuple[tuple[str, tuple[Move, ...]], ...]

    def in_turns(self) -> tuple[tuple[str, Move], ...]:
        """Return all moves as the agents make them beside each other: each in turn."""
        longest = max(len(moves) for _name, moves in self.branches)
        return tuple(
            (name, moves[at]) for at in range(longest) for name, moves in self.branches if at < len(moves)
        )


def bundles(flows: Sequence[Flow], workload: Workload) -> tuple[Bundle, ...]:
    """Return the bundles of a workload; what is left over is left out."""
    size = workload.tasks
    return tuple(
        _bundle(tuple(flows[at : at + size]), workload) for at in range(0, len(flows) - size + 1, size)
    )


def _bundle(flows: tuple[Flow, ...], workload: Workload) -> Bundle:
    if workload.agents > 1:
        # What stops all of a run would stop the other agents too.
        flows = tuple(_of_a_branch(flow) for flow in flows)
    names = [""] if workload.agents == 1 else [f"agent-{number}" for number in range(1, workload.agents + 1)]
    shares = [flows[at :: workload.agents] for at in range(workload.agents)]
    return Bundle(
        flows=flows,
        branches=tuple(
            (name, _moves(share, interleaved=workload.interleaved))
            for name, share in zip(names, shares, strict=True)
        ),
    )


def _of_a_branch(flow: Flow) -> Flow:
    if flow.trigger is None or flow.trigger in OF_A_BRANCH:
        return flow
    return changed(flow, trigger=Trigger.TURNS if flow.trigger is Trigger.TOKENS else Trigger.EXTERNAL)


def _moves(flows: Sequence[Flow], *, interleaved: bool) -> tuple[Move, ...]:
    """Return what one agent does. Holds: nothing that is to go on comes after a stop in the same branch."""
    parts = [_moves_of(flow) for flow in flows]
    before = [part for part, _after in parts]
    if interleaved:
        longest = max(map(len, before), default=0)
        first = [part[at] for at in range(longest) for part in before if at < len(part)]
        return (*first, *(move for _part, after in parts for move in after))
    ordered = sorted(parts, key=lambda part: bool(part[1]))
    return tuple(move for part, after in ordered for move in (*part, *after))


def _moves_of(flow: Flow) -> tuple[tuple[Move, ...], tuple[Move, ...]]:
    """Return a flow's moves: until it is stopped, and from there on."""
    steps = [
        Move(flow=flow, call=call, step=f"f{flow.number}-{at}") for at, call in enumerate(flow.planned, 1)
    ]
    if flow.kind is Kind.STOP:
        turn = Move(flow=flow)
        if flow.trigger is None:
            return (turn, steps[0], turn, changed(steps[1], decides=True)), ()
        stop = Move(flow=flow, trigger=flow.trigger)
        return (turn, steps[0]), (stop, changed(steps[1], decides=True))
    if flow.deviation is not None:
        return (steps[0], Move(flow=flow, call=flow.deviation, decides=True), *steps[1:]), ()
    return (*steps[:-1], changed(steps[-1], decides=True)), ()
