"""`interlock run` in this process, with a clock around each stage; started by staged.py.

A child of its own, so that imports and the interpreter's start are what a user pays. What is imported late
is charged to the stage that asks for it.
"""

from __future__ import annotations

import sys
import time
from types import FunctionType

entered_ns = time.monotonic_ns()


class Clock:
    """Stages that may nest: each is charged only for what no inner stage is charged for."""

    def __init__(self) -> None:
        self.spent_ns: dict[str, int] = {}
        self._open: list[str] = ["rest"]
        self._since_ns = time.monotonic_ns()

    def _charge(self) -> None:
        now_ns = time.monotonic_ns()
        stage = self._open[-1]
        self.spent_ns[stage] = self.spent_ns.get(stage, 0) + now_ns - self._since_ns
        self._since_ns = now_ns

    def wrap(self, owner: object, name: str, stage: str) -> None:
        """Put the clock around a function of a module or class."""
        inner = getattr(owner, name)

        def timed(*values: object, **named: object) -> object:
            self._charge()
            self._open.append(stage)
            try:
                return inner(*values, **named)
            finally:
                self._charge()
                self._open.pop()

        # A class method is bound already: it must not get the class a second time.
        bound = isinstance(owner, type) and not isinstance(inner, FunctionType)
        setattr(owner, name, staticmethod(timed) if bound else timed)

    def wrap_iterator(self, owner: object, name: str, stage: str) -> None:
        """Put the clock around a function that yields: all of it is made at the first call."""
        inner = getattr(owner, name)
        setattr(owner, name, lambda *values, **named: iter(list(inner(*values, **named))))
        self.wrap(owner, name, stage)

    def stop(self) -> dict[str, int]:
        """Return what each stage was charged."""
        self._charge()
        return self.spent_ns


def _clock_late_stages(clock: Clock) -> None:
    from interlock import staging
    from interlock.evidence import LedgerWriter
    from interlock.runtime import keys, performer

    clock.wrap(keys, "make_keys", "folder")
    clock.wrap(performer.Performer, "feed", "decide")
    clock.wrap_iterator(staging, "list_changes", "list")
    for name in ("plan", "prepare"):
        clock.wrap(staging, name, "intent")
    clock.wrap(staging, "apply", "merge")
    for name in ("create", "append", "barrier", "seal"):
        clock.wrap(LedgerWriter, name, "ledger")
    clock.wrap(performer, "remove_stage", "clean-up")


def _measure(began_ns: int, command: list[str]) -> None:
    before_ns = time.monotonic_ns()
    import interlock.cli
    import interlock.cli.run
    import interlock.runtime.launch
    from interlock import boundary
    from interlock.runtime import folders, policies, standing

    imported_ns = time.monotonic_ns()
    clock = Clock()
    clock.wrap(policies, "find_policy", "policy")
    clock.wrap(folders, "create", "folder")
    clock.wrap(folders, "describe", "folder")
    clock.wrap(boundary, "start", "boundary up")
    clock.wrap(boundary.Sandbox, "run", "command")
    clock.wrap(boundary.Sandbox, "close", "boundary down")
    import_late = standing._import_the_rest

    def import_and_clock() -> None:
        import_late()
        _clock_late_stages(clock)

    standing._import_the_rest = import_and_clock
    clock.wrap(standing, "_import_the_rest", "imports while it mounts")
    status = interlock.cli.main(["run", "--", *command])
    if status:
        sys.exit(status)
    spent_ns = clock.stop()
    import json

    rest_ns = spent_ns.pop("rest")
    stages_ns = {
        "python": entered_ns - began_ns,
        "imports": imported_ns - before_ns,
        **spent_ns,
        "rest": rest_ns,
    }
    told = {
        "stages_ms": {name: spent / 1e6 for name, spent in stages_ns.items()},
        "ended_ns": time.monotonic_ns(),
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    _measure(int(sys.argv[1]), sys.argv[2:])
