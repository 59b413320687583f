"""A playbook: `>> event` is given to the core, `<< command` is what it must answer, in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.nodes import NodeKind
from interlock.monitor import State, step


@dataclass(frozen=True)
class Wrote:
    """Stands for an `Append` of a node of this kind and verdict."""

    kind: NodeKind
    verdict: str = ""


class Playbook:
    def __init__(self, state: State | None = None) -> None:
        self.state = state or State()
        self._given: deque[cmd.Command] = deque()
        self.nodes: list[cmd.Append] = []

    def __rshift__(self, event: ev.Event) -> Playbook:
        assert not self._given, f"not expected: {self._given[0]}"
        self.state, commands = step(self.state, event)
        self._given.extend(commands)
        return self

    def __lshift__(self, expected: cmd.Command | Wrote | type) -> Playbook:
        assert self._given, f"expected {expected}, and nothing more came"
        command = self._given.popleft()
        if isinstance(expected, Wrote):
            assert isinstance(command, cmd.Append), f"expected {expected}, came {command}"
            assert (command.node.kind, command.node.verdict) == (expected.kind, expected.verdict)
            self.nodes.append(command)
        elif isinstance(expected, type):
            assert isinstance(command, expected), f"expected {expected.__name__}, came {command}"
        else:
            assert command == expected
        return self

    def done(self) -> State:
        assert not self._given, f"not expected: {list(self._given)}"
        return self.state
