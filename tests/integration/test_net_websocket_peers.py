"""The `websockets` library as client and as server, with our relay between them over loopback sockets."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.fakes.net_gate import Decide, MemoryGate, passed, refused
from tests.fakes.net_links import Exchanged, Surroundings

from interlock.boundary.net.http1_client import Http1Client
from interlock.boundary.net.http1_far import Http1Far, Switched
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, RequestHead
from interlock.boundary.net.websocket import Relay, accept, offer
from interlock.model.requests import NetResponse, Outcome

pytest.importorskip("websockets", reason="not run: websockets is not installed")

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol


class Upgrade(Exchanged):
    """An exchange that joins both ends once the far side has switched."""

    def __init__(self, client: Http1Client, head: RequestHead, port: int, between: "Between") -> None:
        super().__init__(client, head, lambda _exchange: None)
        self._between = between
        self._http1 = client
        loop = asyncio.get_running_loop()
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setblocking(False)
        far = Http1Far(SocketLink(loop, sock), between.setting)
        self._sent = offer(head) if head.upgrade else head
        far.on_switched = self._switched
        far.begin(self._sent, self, body=False)

    def came_head(self, head: AnswerHead) -> None:
        assert self.client is not None
        self.client.answer(head)

    def came_data(self, chunk: bytes) -> None:
        assert self.client is not None
        self.client.data(chunk)

    def came_end(self, trailers: Any) -> None:
        assert self.client is not None
        self.client.end(trailers)

    def _switched(self, switched: Switched) -> None:
        answer = accept(self._sent, switched.answer, self.head)
        assert answer is not None
        self._http1.switch(answer)
        rest = self._http1.give_up()
        Relay(
            self._http1.link, switched.link, rest, switched.rest, self._sent, switched.answer, "e1",
            self._between, self._between.ended.append,
        )  # fmt: skip


class Between:
    """Our side on a loopback port, before a server on another."""

    def __init__(self, far_port: int, decide: Decide) -> None:
        self.loop = asyncio.get_running_loop()
        self.gate: MemoryGate = MemoryGate(decide)
        self.tokens: dict[str, str] = {}
        self.ended: list[NetResponse] = []
        self.setting = Surroundings(self.loop, self._begin)
        self.plan = self.setting.plan
        self._far_port = far_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._place = Place(host="127.0.0.1", port=self.port, tls=False)
        self._links: list[SocketLink] = []
        self._task = self.loop.create_task(self._serve())

    def _begin(self, client: ClientSide, head: RequestHead) -> Exchanged:
        assert isinstance(client, Http1Client)
        return Upgrade(client, head, self._far_port, self)

    async def _serve(self) -> None:
        while True:
            sock, _ = await self.loop.sock_accept(self._listener)
            sock.setblocking(False)
            link = SocketLink(self.loop, sock)
            self._links.append(link)
            Http1Client(link, self._place, self.setting, lambda _client, _head: None)

    async def end(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._listener.close()
        for link in self._links:
            link.abort()
        await asyncio.sleep(0.05)

    async def over(self) -> NetResponse:
        for _ in range(500):
            if self.ended:
                return self.ended[0]
            await asyncio.sleep(0.01)
        raise AssertionError("the relay has not ended")


@contextlib.asynccontextmanager
async def between(handler: Any, decide: Decide = passed, **options: Any) -> AsyncIterator[Between]:
    async with serve(handler, "127.0.0.1", 0, **options) as server:
        made = Between(next(iter(server.sockets)).getsockname()[1], decide)
        try:
            yield made
        finally:
            await made.end()


async def echo(connection: Any) -> None:
    async for message in connection:
        await connection.send(message)


def go(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


def test_messages_of_all_sizes_echo_with_subprotocol_and_pings() -> None:
    async def work() -> None:
        async with between(echo, subprotocols=["b"], max_size=1 << 24) as one:
            async with connect(
                f"ws://127.0.0.1:{one.port}/x",
                subprotocols=[Subprotocol("a"), Subprotocol("b")],
                max_size=1 << 24,
            ) as client:
                assert client.subprotocol == "b"
                assert client.protocol.extensions == []
                for size in (0, 1, 125, 126, 65535, 65536, 3_000_000):
                    await client.send(b"x" * size)
                    assert await client.recv() == b"x" * size
                await client.send("grün")
                assert await client.recv() == "grün"
                await client.send(["par", "ts"])  # fragments
                assert await client.recv() == "parts"
                await (await client.ping(b"hello"))
            end = await one.over()
            assert (end.outcome, end.status) == (Outcome.DONE, 101)
            assert len(one.gate.messages) == 9

    go(work())


def test_a_refused_message_is_read_as_1008_with_its_reason() -> None:
    seen: list[Any] = []

    async def keep(connection: Any) -> None:
        async for message in connection:
            seen.append(message)

    async def work() -> None:
        decide: Decide = lambda m: refused("secrets stay here") if m.text == "secret" else passed(m)  # noqa: E731
        async with between(keep, decide) as one:
            async with connect(f"ws://127.0.0.1:{one.port}/") as client:
                await client.send("fine")
                await client.send("secret")
                await client.send("later")
                with pytest.raises(ConnectionClosed) as caught:
                    await client.recv()
                assert caught.value.rcvd is not None
                assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (1008, "secrets stay here")
            await one.over()
        assert seen == ["fine"]

    go(work())


def test_the_server_s_close_reaches_the_client() -> None:
    async def closes(connection: Any) -> None:
        await connection.send("bye")
        await connection.close(4321, "enough")

    async def work() -> None:
        async with between(closes) as one:
            async with connect(f"ws://127.0.0.1:{one.port}/") as client:
                assert await client.recv() == "bye"
                with pytest.raises(ConnectionClosed) as caught:
                    await client.recv()
                assert caught.value.rcvd is not None
                assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (4321, "enough")
            assert (await one.over()).size_bytes == 3

    go(work())


def test_a_server_that_vanishes_is_1006_to_the_client() -> None:
    async def vanishes(connection: Any) -> None:
        await connection.recv()
        connection.transport.abort()

    async def work() -> None:
        async with between(vanishes) as one:
            async with connect(f"ws://127.0.0.1:{one.port}/") as client:
                await client.send("x")
                with pytest.raises(ConnectionClosed) as caught:
                    await client.recv()
                assert caught.value.rcvd is None
            assert (await one.over()).outcome is Outcome.UNKNOWN

    go(work())


def test_an_answer_that_is_no_switch_is_an_ordinary_one() -> None:
    async def work() -> None:
        refuse = lambda connection, _request: connection.respond(418, "no tea\n")  # noqa: E731
        async with between(echo, process_request=refuse) as one:
            with pytest.raises(InvalidStatus) as caught:
                await connect(f"ws://127.0.0.1:{one.port}/")
            assert caught.value.response.status_code == 418
            assert caught.value.response.body == b"no tea\n"

    go(work())


def test_a_flood_of_inbound_data_waits_for_a_slow_client() -> None:
    async def floods(connection: Any) -> None:
        for _ in range(200):
            await connection.send(b"z" * 100_000)

    async def work() -> None:
        async with between(floods) as one:
            async with connect(f"ws://127.0.0.1:{one.port}/", max_queue=1) as client:
                await asyncio.sleep(0.3)
                total = 0
                while total < 20_000_000:
                    total += len(await client.recv())
            end = await one.over()
            assert end.size_bytes == 20_000_000

    go(work())
