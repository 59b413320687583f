"""The nodes that the fold makes of events, as items of a ledger that is written by hand."""

from collections.abc import Iterable

from tests.vectors.forge import Item

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.monitor import State, step


def folded(events: Iterable[ev.Event]) -> list[Item]:
    """Return the appended nodes of a run of events, in order."""
    state = State()
    items: list[Item] = []
    for event in events:
        state, commands = step(state, event)
        items += [
            Item(
                kind=one.node.kind.value,
                parent=one.node.parent,
                actor=one.node.actor,
                verdict=one.node.verdict,
                payload=dict(one.node.payload),
            )
            for one in commands
            if isinstance(one, cmd.Append)
        ]
    return items
