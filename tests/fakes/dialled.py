"""What the tests of dialling share: plans, resolvers that lead anywhere, and reading from what was dialled."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence

import pytest
from tests.fakes.certificates import PrivateAuthority
from tests.fakes.far_places import GREETING

from interlock.boundary.net.dial import DialError, Dialled
from interlock.boundary.net.plan import NetLimits, NetPlan
from interlock.model.requests import Outcome


def serving(leaf: str, *alpn: str, **changes: object) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    for name, value in changes.items():
        setattr(context, name, value)
    return context


def plan(private: PrivateAuthority | None = None, *, seconds: float = 5.0, **changes: object) -> NetPlan:
    trust = private.trust_file if private is not None else ""
    values: dict[str, object] = {"folder": "/nowhere", "trust_file": trust}
    values["limits"] = NetLimits(connect_seconds=seconds)
    return NetPlan(**(values | changes))  # type: ignore[arg-type]


def leads_to(*answers: str) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return answers

    return resolve


async def read(dialled: Dialled, size: int = len(GREETING)) -> bytes:
    data = b""
    async with asyncio.timeout(5):
        while len(data) < size:
            try:
                chunk = dialled.sock.recv(size - len(data))
            except (BlockingIOError, ssl.SSLWantReadError):
                await asyncio.sleep(0.001)
                continue
            if not chunk:
                break
            data += chunk
    return data


def failed(attempt: Awaitable[Dialled]) -> DialError:
    async def run() -> DialError:
        with pytest.raises(DialError) as caught:
            (await attempt).sock.close()
        return caught.value

    error = asyncio.run(run())
    assert error.outcome is Outcome.FAILED
    assert error.message[:1] in "`abcdefghijklmnopqrstuvwxyz"
    assert not error.message.endswith(".")
    return error


async def send_all(dialled: Dialled, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[dialled.sock.send(view[:16384]) :]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            await asyncio.sleep(0.001)


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
