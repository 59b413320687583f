"""`interlock run` in this process, with a clock around what a request costs; started by proxy.py.

Takes `clock` or `alone`, the requests to leave out at first, those to count, then Interlock's own words. With `clock`
it prints what each stage took, as JSON; with `alone` a gate that answers at once stands in, so that nothing is decided
or recorded and what is left is the proxy.
"""

from __future__ import annotations

import json
import sys

from benchmarks.stages import Clock


def _clock_requests(clock: Clock, before: int, count: int) -> None:
    from interlock.evidence import LedgerWriter
    from interlock.runtime import performer
    from interlock.runtime.traffic import Traffic

    clock.wrap(performer, "step", "decision")
    clock.wrap(performer.Performer, "feed", "performing")
    for name in ("append", "sign", "harden", "barrier"):
        clock.wrap(LedgerWriter, name, "ledger")
    seen = 0
    inner = Traffic.propose

    def propose(self: Traffic, *words: object) -> object:
        nonlocal seen
        seen += 1
        if seen == before + 1:
            clock.stop()
            clock.spent_ns.clear()
        elif seen == before + count + 1:
            print(
                json.dumps({stage: spent / 1e3 / count for stage, spent in clock.stop().items()}), flush=True
            )
        return inner(self, *words)  # type: ignore[arg-type]

    Traffic.propose = propose  # type: ignore[method-assign,assignment]
    for name in ("propose", "answered"):
        clock.wrap(Traffic, name, "gate")


def _answer_at_once() -> None:
    from interlock.boundary.net.gate import Passed
    from interlock.runtime.traffic import Traffic

    passed = Passed(effect_id="e1")
    Traffic.propose = lambda *_: passed  # type: ignore[method-assign]
    Traffic.answered = lambda *_: None  # type: ignore[method-assign]


def main() -> int:
    """Run. Returns: Interlock's exit status."""
    import interlock.cli
    from interlock.runtime import standing

    how, before, count, *words = sys.argv[1:]
    if how == "alone":
        _answer_at_once()
    else:
        import_late = standing._import_the_rest

        def import_and_clock() -> None:
            import_late()
            _clock_requests(Clock(), int(before), int(count))

        standing._import_the_rest = import_and_clock
    status: int = interlock.cli.main(words)
    return status


if __name__ == "__main__":
    sys.exit(main())
