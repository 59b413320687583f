"""A fault anywhere in the network boundary ends one connection, and nothing leaves by it."""

import contextlib
import time
from collections.abc import Awaitable
from pathlib import Path

import pytest
from tests.fakes.gate import FakeGate, parking, passing
from tests.fakes.net_front import World, a_world, page

from interlock.boundary.net.gate import Body, Passage
from interlock.model.errors import StuckError
from interlock.model.requests import NetRequest, Outcome

GET = b"GET / HTTP/1.1\r\nHost: far.test\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 3\r\n\r\nabc"


class FaultyGate(FakeGate):
    def __init__(self, fault: BaseException, later_seconds: float | None = None) -> None:
        super().__init__(passing, later_seconds)
        self.fault: BaseException | None = fault

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        if self.fault is None:
            return super().propose(request, body)
        if self.later_seconds is None:
            raise self.fault
        return self._fail()

    async def _fail(self) -> Passage:
        assert self.fault is not None
        raise self.fault


def still_works(world: World, gate: FaultyGate) -> None:
    gate.fault = None
    assert world.connect().ask(GET)[0] == 200
    world.faults.clear()


@pytest.mark.parametrize("later", [None, 0.01])
def test_a_gate_that_cannot_decide_refuses(tmp_path: Path, later: float | None) -> None:
    gate = FaultyGate(StuckError("the ledger is full"), later)
    with a_world(tmp_path, gate) as world:
        world.serve(page)
        assert world.connect().ask(GET)[0] == 503
        assert world.dials == []
        still_works(world, gate)


@pytest.mark.parametrize("later", [None, 0.01])
def test_a_gate_with_a_fault_ends_the_connection(tmp_path: Path, later: float | None) -> None:
    gate = FaultyGate(ValueError("a fault"), later)
    with a_world(tmp_path, gate) as world:
        world.serve(page)
        with contextlib.suppress(ConnectionError, EOFError):
            assert world.connect().ask(GET)[0] == 503
        assert world.dials == []
        world.eventually(lambda: len(world.faults) == 1)
        still_works(world, gate)


def test_a_request_that_cannot_be_kept_is_not_parked_in_silence(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(parking)) as world:
        (tmp_path / "run" / "parked").write_text("no folder")
        assert world.connect().ask(POST)[0] == 507
        assert world.dials == []
        assert world.gate.responses[0][1].outcome is Outcome.FAILED


def test_a_body_that_cannot_be_spooled_is_refused(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        (tmp_path / "run").rmdir()
        size = 2_000_000
        wire = world.connect()
        wire.send(b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: %d\r\n\r\n" % size)
        with_time = time.monotonic() + 5
        try:
            while time.monotonic() < with_time:
                wire.send(b"a" * 100_000)
        except OSError:
            pass
        assert wire.answer()[0] in {503, 507}
        assert world.gate.requests == []
        (tmp_path / "run").mkdir()


def test_the_end_of_the_run_leaves_no_decision_open(tmp_path: Path) -> None:
    gate = FakeGate(passing, 30.0)
    with a_world(tmp_path, gate) as world:
        world.serve(page)
        world.connect().send(POST)
        world.eventually(lambda: len(gate.requests) == 1)
    assert world.dials == []
    assert gate.responses == []
