"""What fails in the audit of a model's traffic refuses, and is never taken for a word that lets pass."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from tests.fakes.audited_core import Core, held, result

from interlock.boundary.net.gate import Parked, Passage
from interlock.model import events as ev
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.runtime import auditing


class Odd(Core):
    """A core whose word on a call is none that there is. Takes: `word`."""

    def __init__(self, word: Any) -> None:
        super().__init__()
        self.word = word

    def put(self, call: ToolCall) -> tuple[str, Passage | Awaitable[Passage]]:
        effect_id, _passage = super().put(call)
        return effect_id, self.word


def test_a_call_that_was_neither_passed_nor_refused_is_refused() -> None:
    core = Odd(Parked(effect_id="e2", token="t"))
    (told,) = core.judged(core.asks(), held("c1", "look"))
    assert told is not None
    assert told.violated_rule == "lens.fault"


def test_a_word_that_never_comes_since_its_part_broke_refuses_the_whole_answer() -> None:
    async def check() -> None:
        broken: asyncio.Future[Passage] = asyncio.get_running_loop().create_future()
        broken.set_exception(ValueError("odd"))
        core = Odd(broken)
        verdicts = await core.auditing.judge(core.asks(), (held("c1", "look"), held("c2", "look", at=2)))  # type: ignore[misc]
        assert [one.rationale.endswith("ValueError") for one in verdicts] == [True, True]
        # What had been let through is told as not made.
        assert {one.effect_id for one in core.of(ev.ToolReturned)} == {"e2", "e3"}

    asyncio.run(check())


def test_an_oracle_that_breaks_lets_no_call_pass() -> None:
    async def check() -> None:
        core = Core(says=None)
        exchange = core.asks()
        waiting = core.auditing.judge(exchange, (held("c1", "send", to="x@y.test"),))
        assert isinstance(waiting, Awaitable)
        core.feed(ev.OracleAnswered(oracle="human", answers=(), fault="broke", asked=("e2",)))
        (told,) = await waiting
        assert told is not None

    asyncio.run(check())


def test_an_exchange_that_is_not_known_passes_no_call() -> None:
    (told,) = Core().judged("e9", held("c1", "look"))
    assert told is not None


def test_past_the_bound_of_open_calls_none_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "MAX_OPEN", 2)
    core = Core()
    for number in range(2):
        exchange = core.asks()
        assert core.judged(exchange, held(f"c{number}", "look", at=number)) == (None,)
        core.ends(exchange)
    (told,) = core.judged(core.asks(), held("c9", "look"))
    assert told is not None
    assert "too many calls are open" in told.rationale
    core.ends(core.asks(result("c0", "done")))
    assert core.judged(core.asks(), held("c9", "look")) == (None,)


def test_after_the_run_no_call_passes() -> None:
    core = Core(says=Decision.RELEASE)
    exchange = core.asks()
    core.feed(ev.CommandExited(code=0, signal=0, ended_at_ns="9"))
    with pytest.raises(Exception, match="cannot come"):
        core.judged(exchange, held("c1", "look"))
