"""The broker between clients inside and an agent: real unix sockets on both sides, a gate that keeps its word."""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.gate import Unaudited
from tests.property.test_signing_requests import sign_request, text, to_sign

from interlock.boundary.net.gate import Body, Passage, Passed, Refused
from interlock.boundary.net.plan import Signing
from interlock.boundary.signing import broker as room
from interlock.boundary.signing.broker import Broker
from interlock.model.requests import NetMessage, NetRequest, NetResponse, Outcome
from interlock.runtime.traffic import OVER

KEY = text(b"ssh-ed25519") + text(b"k" * 32)
GIT = sign_request(KEY, to_sign(b"git", b"", b"sha256", b"d" * 32))
SIGNED = b"\x0e" + text(b"signature")
LIST = b"\x0c" + struct.pack("!I", 1) + text(KEY) + text(b"me")


class Word(Unaudited):
    """A gate. Takes: `passes`, its word for all that is proposed."""

    def __init__(self, passes: bool = True) -> None:
        self.passes = passes
        self.proposed: list[NetRequest] = []
        self.answers: list[NetResponse] = []
        self.turned: list[str] = []

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        self.proposed.append(request)
        return Passed(effect_id="e1") if self.passes else Refused(effect_id="e1", exception=OVER)

    def propose_message(self, message: NetMessage) -> Passage:
        raise AssertionError

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        self.answers.append(response)

    def turned_away(self, host: str, port: int, reason: str) -> None:
        self.turned.append(reason)


class Stage:
    """An agent, a broker before it, and clients. Takes: `reply`, what the agent says; None to say nothing."""

    def __init__(self, folder: Path, gate: Word, keys: frozenset[bytes] | None = None) -> None:
        self.agent = str(folder / "agent")
        self.inside = str(folder / "inside")
        self.gate = gate
        self.keys = keys
        self.asked: list[bytes] = []
        self.reply: Callable[[bytes], bytes | None] = lambda asked: LIST if asked == b"\x0b" else SIGNED
        self.visits: list[asyncio.Task[Any]] = []
        self.busy = self.most = 0

    def play(self, scene: Callable[["Stage"], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            server = await asyncio.start_unix_server(self._be_agent, self.agent)
            door = socket.socket(socket.AF_UNIX)
            door.bind(self.inside)
            door.listen()
            door.setblocking(False)
            plan = Signing(socket=self.inside, agent=self.agent, namespaces=("git",), keys=self.keys)
            broker = Broker((door,), plan, self.gate, asyncio.get_running_loop())
            try:
                await scene(self)
            finally:
                await broker.close()
                door.close()
                server.close()
                await asyncio.gather(*self.visits)

        asyncio.run(asyncio.wait_for(whole(), 20))

    async def _be_agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.current_task()
        assert visit is not None
        self.visits.append(visit)
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            (size,) = struct.unpack("!I", await reader.readexactly(4))
            self.asked.append(await reader.readexactly(size))
            said = self.reply(self.asked[-1])
            if said is None:
                await reader.read()
            else:
                await asyncio.sleep(0.01)
                writer.write(text(said))
        finally:
            self.busy -= 1
            await shut(writer)

    async def client(self, *requests: bytes) -> list[bytes]:
        """Put requests one after the other; the answers, `b""` where the connection ended."""
        reader, writer = await asyncio.open_unix_connection(self.inside)
        answers = []
        for one in requests:
            writer.write(text(one))
            answers.append(await read(reader))
        await shut(writer)
        return answers


async def shut(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def read(reader: asyncio.StreamReader) -> bytes:
    try:
        (size,) = struct.unpack("!I", await reader.readexactly(4))
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return b""


def test_what_passes_is_signed_and_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Word())

    async def scene(stage: Stage) -> None:
        assert await stage.client(b"\x0b", GIT) == [LIST.replace(text(b"me"), text(b"")), SIGNED]

    stage.play(scene)
    (request,) = stage.gate.proposed
    assert (request.method, request.scheme, request.host, request.port) == (
        "SIGN",
        "ssh-agent",
        "ssh-agent",
        0,
    )
    assert request.path.startswith("/git/SHA256:")
    assert request.url == f"ssh-agent://ssh-agent{request.path}"
    assert request.headers == (("signed-hash", "sha256:" + "64" * 32),)
    assert [one.outcome for one in stage.gate.answers] == [Outcome.DONE]
    assert stage.asked == [b"\x0b", GIT]


def test_what_the_gate_refuses_never_reaches_the_agent(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Word(passes=False))

    async def scene(stage: Stage) -> None:
        assert await stage.client(GIT) == [b"\x05"]

    stage.play(scene)
    assert (stage.asked, len(stage.gate.proposed), stage.gate.answers) == ([], 1, [])


def test_what_is_not_allowed_is_neither_proposed_nor_forwarded(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Word(), keys=frozenset({b"another"}))
    login = sign_request(KEY, text(b"session") + b"\x32" + text(b"root"))

    async def scene(stage: Stage) -> None:
        tried = [GIT, login, b"\x11" + KEY, b"\x13", b"\x1b" + text(b"x")]
        assert await stage.client(*tried) == [b"\x05"] * 5

    stage.play(scene)
    assert (stage.asked, stage.gate.proposed) == ([], [])
    assert [reason.split()[1] for reason in stage.gate.turned] == ["signature", "signature", *["request"] * 3]


def test_a_length_out_of_bounds_ends_the_connection(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Word())

    async def scene(stage: Stage) -> None:
        for size in (0, 16 * 1024 + 1, 1 << 31):
            reader, writer = await asyncio.open_unix_connection(stage.inside)
            writer.write(struct.pack("!I", size))
            assert await read(reader) == b"\x05"
            assert await reader.read() == b""
            await shut(writer)

    stage.play(scene)
    assert stage.asked == []


def test_slow_clients_are_left_and_hinder_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(room, "CONNECTIONS", 3)
    stage = Stage(tmp_path, Word())

    async def scene(stage: Stage) -> None:
        slow = [await asyncio.open_unix_connection(stage.inside) for _ in range(2)]
        for _, writer in slow:
            writer.write(b"\0")
        assert await stage.client(GIT) == [SIGNED]
        more = [await asyncio.open_unix_connection(stage.inside) for _ in range(3)]
        await asyncio.sleep(0.05)
        assert await more[2][0].read() == b""  # one more than there may be is turned away
        for reader, _ in slow:
            assert await reader.read() == b""
        for _, writer in (*slow, *more):
            await shut(writer)

    stage.play(scene)


def test_one_request_at_a_time_reaches_the_agent(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Word())

    async def scene(stage: Stage) -> None:
        assert await asyncio.gather(*(stage.client(GIT) for _ in range(6))) == [[SIGNED]] * 6

    stage.play(scene)
    assert stage.most == 1


def test_an_agent_that_is_gone_silent_or_odd_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "SIGN_SECONDS", 0.2)
    stage = Stage(tmp_path, Word())
    said: list[bytes | None] = [None, b"\x05", b"\x0c\0\0\0\0", b"\x0e" + text(b"x") + b"more"]
    stage.reply = lambda asked: said.pop(0)

    async def scene(stage: Stage) -> None:
        assert await stage.client(*[GIT] * 4) == [b"\x05"] * 4
        os.rename(stage.agent, stage.agent + ".gone")
        assert await stage.client(GIT) == [b"\x05"]
        Path(stage.agent).write_text("no socket")
        assert await stage.client(b"\x0b") == [b"\x05"]

    stage.play(scene)
    assert [one.outcome for one in stage.gate.answers] == [Outcome.FAILED] * 5
    assert "did not answer in time" in stage.gate.answers[0].detail
    assert "cannot be reached" in stage.gate.answers[-1].detail
