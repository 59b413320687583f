"""What counts towards a stop, event by event, and the node that says that one came."""

from interlock.model import events as ev
from interlock.monitor.state import State
from interlock.monitor.writing import Commands


def before(state: State, event: ev.Event) -> State:
    """Return the state with an event counted, before anything is decided by it."""
    return state


def after(state: State, event: ev.Event, commands: Commands) -> tuple[State, Commands]:
    """Return the state and the commands with what an event's outcome counts, and the node of a stop that it brought."""
    return state, commands
