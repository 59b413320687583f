"""A gate that fails, at the network boundary: nothing leaves, and nobody is left waiting."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable

import pytest
from tests.boundary.smuggling.frames import get, head, opening, read
from tests.boundary.smuggling.proxy import Witness, World, answer_each
from tests.boundary.smuggling.readers import read_all
from tests.boundary.smuggling.strain import ASK_WS, GET, POST, accepting, until

from interlock.boundary.net.gate import Body, Passage, Passed
from interlock.model.errors import BoundaryError
from interlock.model.requests import NetMessage, NetRequest, NetResponse, Outcome

# a gate that fails


class Failing(Witness):
    """A gate whose decision fails in one of several ways."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        self.requests.append(request)
        match self.how:
            case "raises ours":
                raise BoundaryError("the gate is broken", hint="none")
            case "raises":
                raise ValueError("odd")
            case "raises later":
                return self._later(ValueError("odd"))
            case "raises ours later":
                return self._later(BoundaryError("the gate is broken", hint="none"))
            case "cancelled":
                return self._later(asyncio.CancelledError())
            case "nonsense":
                return "yes"  # type: ignore[return-value]
            case "nothing":
                return None  # type: ignore[return-value]
            case _:
                return self._nonsense()

    async def _later(self, error: BaseException) -> Passage:
        await asyncio.sleep(0.01)
        raise error

    async def _nonsense(self) -> Passage:
        await asyncio.sleep(0.01)
        return True  # type: ignore[return-value]


@pytest.mark.parametrize(
    "how",
    [
        "raises ours",
        "raises",
        "raises later",
        "raises ours later",
        "cancelled",
        "nonsense",
        "nothing",
        "nonsense later",
    ],
)
@pytest.mark.parametrize("protocol", ["http1", "http1 body", "http2", "websocket"])
def test_a_gate_that_fails_lets_nothing_out_and_leaves_nobody_waiting(how: str, protocol: str) -> None:
    raw = {
        "http1": GET,
        "http1 body": POST % 3 + b"abc",
        "http2": opening(head(1, get())),
        "websocket": ASK_WS,
    }[protocol]

    async def check() -> None:
        async with World(accepting() if protocol == "websocket" else answer_each, gate=Failing(how)) as world:
            sock = world.connect()
            loop = world.front.loop
            await loop.sock_sendall(sock, raw)
            came = bytearray()
            try:
                while True:
                    some = await asyncio.wait_for(loop.sock_recv(sock, 65536), 3)
                    came.extend(some)
                    if not some:
                        break
                    if protocol == "http2":
                        told = read(bytes(came))
                        if told.statuses or told.resets or told.goaway is not None:
                            break
                    elif b"\r\n\r\n" in came:
                        break
            except ConnectionError:
                pass
            finally:
                sock.close()
            if protocol == "http2":
                told = read(bytes(came))
                assert told.statuses.get(1, 503) >= 500
            elif came:
                assert came.startswith(b"HTTP/1.1 5"), came
            await asyncio.sleep(0.02)
            assert not world.carried
            world.failures.clear()  # the loop may well say that the gate failed

    asyncio.run(check())


class Deaf(Witness):
    """A gate that passes and then fails to take note of the answer."""

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        raise ValueError("odd")


def test_a_gate_that_cannot_take_note_of_an_answer_breaks_no_other_connection() -> None:
    async def check() -> None:
        gate = Deaf()
        async with World(gate=gate) as world:
            sock = world.connect()
            await world.front.loop.sock_sendall(sock, GET)
            with contextlib.suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(world.front.loop.sock_recv(sock, 4096), 1)
            sock.close()
            again = world.connect()
            await world.front.loop.sock_sendall(again, GET)
            await until(lambda: len(read_all(world.raw)) == 2)
            again.close()
            world.failures.clear()

    asyncio.run(check())


class Slow(Witness):
    """A gate that takes its time: the agent is gone by then."""

    def __init__(self) -> None:
        super().__init__()
        self.may_decide = asyncio.Event()

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        self.requests.append(request)
        return self._decided()

    async def _decided(self) -> Passage:
        await self.may_decide.wait()
        return Passed(effect_id="e1")

    def propose_message(self, message: NetMessage) -> Passage | Awaitable[Passage]:
        raise AssertionError("no message")


def test_a_request_whose_agent_left_before_the_decision_is_never_sent() -> None:
    async def check() -> None:
        gate = Slow()
        async with World(gate=gate) as world:
            sock = world.connect()
            await world.front.loop.sock_sendall(sock, POST % 3 + b"abc")
            await until(lambda: gate.requests)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
            await asyncio.sleep(0.1)  # what the kernel has told is read by then
            gate.may_decide.set()
            await until(lambda: gate.ends)
            assert gate.ends[0][1].outcome is Outcome.FAILED
            assert not world.carried

    asyncio.run(check())
