"""Replay: fold the ledger's event nodes again and compare every node that follows from them.

The decision is a pure function of the recorded trajectory and the policy, so a verdict that was changed, left
out or invented shows here even if whoever did it could sign (DESIGN §2, promise 5). Recovery reads a run's
state by the same fold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from interlock.model import commands as cmd
from interlock.model.errors import IntegrityError, InterlockError
from interlock.model.nodes import Node
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.monitor import State, event_from_payload, is_event, outcome_of, step
from interlock.verify.report import ReadNode


class ReplayMismatch(IntegrityError):
    """A recorded node is not what the fold gives.

    Takes: `seq`, the first such node.
    """

    code = "replay-mismatch"

    def __init__(self, seq: int, message: str) -> None:
        super().__init__(f"node {seq}: {message}")
        self.seq = seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One node of the ledger with the state of the fold after it.

    Takes: `pending`, derived nodes that the fold gives and the ledger does not hold yet.
    """

    node: ReadNode
    state: State
    pending: tuple[Node, ...]


def replay(nodes: Iterable[ReadNode]) -> Iterator[Replayed]:
    """Fold the nodes of a ledger in order.

    Raises: ReplayMismatch at the first node that is not what the fold gives, or whose payload is gone.
    """
    state = State()
    pending: deque[Node] = deque()
    for node in nodes:
        if node.payload is None:
            raise ReplayMismatch(node.seq, "its payload was removed, so what follows cannot be recomputed")
        if not pending:
            if not is_event(node.payload):
                raise ReplayMismatch(node.seq, "nothing that happened leads to it")
            try:
                event = event_from_payload(node.payload)
                state, commands = step(state, event)
            except InterlockError as error:
                raise ReplayMismatch(node.seq, error.message) from error
            pending.extend(item.node for item in commands if isinstance(item, cmd.Append))
        expected = pending.popleft()
        if difference := _difference(expected, node):
            raise ReplayMismatch(node.seq, f"its {difference} is not what the policy and the trajectory give")
        yield Replayed(node=node, state=state, pending=tuple(pending))


def ended_as(last: Replayed) -> str | None:
    """Return what a run came to, None where its last node is not the end of it."""
    is_end = last.state.phase is Phase.CLOSED and not last.pending
    return outcome_of(last.state) if is_end else None


def _difference(expected: Node, node: ReadNode) -> str:
    if expected.seq != node.seq:
        return "position"
    if expected.kind.value != node.kind:
        return "kind"
    if expected.parent != node.parent:
        return "parent"
    if expected.actor != node.actor:
        return "actor"
    if expected.verdict != node.verdict:
        return "verdict"
    if expected.branches != tuple(node.branches):
        return "branches"
    if not _same(expected.payload, node.payload) and not _same(
        _unformed(expected.payload, node.payload), node.payload
    ):
        return "payload"
    return ""


def _unformed(expected: object, recorded: object) -> object:
    """Return what is expected as an older ledger wrote it: without the form of a derivation where it has none.

    Its re-check then takes any form of the value's type (`verify.derivations`).
    """
    if isinstance(expected, Mapping) and isinstance(recorded, Mapping):
        formless = "form" in expected and "form" not in recorded and "rule" in expected
        kept = {key: value for key, value in expected.items() if not (formless and key == "form")}
        return {
            key: _unformed(value, recorded.get(key)) if key in ("derivations", "premises") else value
            for key, value in kept.items()
        }
    if isinstance(expected, list) and isinstance(recorded, list) and len(expected) == len(recorded):
        return [_unformed(one, other) for one, other in zip(expected, recorded, strict=True)]
    return expected


def _same(left: object, right: object) -> bool:
    """Compare JSON values without taking `True` for `1`."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and left == right
