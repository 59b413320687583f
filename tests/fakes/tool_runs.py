"""A run of tool calls through the real fold, under one policy file; its oracle refuses all that it is asked about."""

from __future__ import annotations

import json

from interlock.bench.folding import Fate, Folding, Judged
from interlock.model.tools import ToolCall


class ToolRun:
    """Calls of one run. Takes: `roles`, the policy; `task`."""

    def __init__(self, roles: str, task: str) -> None:
        self.fold = Folding(roles, task, oracle=lambda _item: False)
        self._judged: Judged | None = None

    def fate(self, tool: str, gives: object = "", *, failed: bool = False, **arguments: object) -> Fate:
        """Make a call. Takes: `gives`, what the tool answers where the call is made: prose, or a JSON value."""
        text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        judged = self._judged = self.fold.call(ToolCall(call="c", tool=tool, arguments=text))
        if judged.fate.left:
            prose = isinstance(gives, str)
            structured = None if prose else json.dumps(gives)
            self.fold.returned(judged, text=str(gives), structured=structured, failed=failed)
        return judged.fate

    @property
    def judged(self) -> Judged:
        """Return what became of the last call."""
        assert self._judged is not None
        return self._judged

    @property
    def rules(self) -> list[str]:
        """Return the rules by which the last call's values were vouched for."""
        return [each.rule for each in self.judged.item.verdict.derivations]

    @property
    def reason(self) -> str:
        """Return why the last call was decided as it was."""
        return self.judged.item.verdict.reason
