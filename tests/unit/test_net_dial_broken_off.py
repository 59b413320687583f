"""A dial that is broken off at any moment, once or twice, leaves no socket behind."""

import asyncio
import contextlib
import gc
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.fakes.certificates import PrivateAuthority
from tests.fakes.dialled import leads_to, plan, serving
from tests.fakes.far_places import TunnelProxy, greet, listening
from tests.fakes.net_front import Wire, a_world

from interlock.boundary.net import far_tls
from interlock.boundary.net.dial import dial
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.pool import Pool, Way

STEPS = [*range(8), *range(8, 40, 4)]
"""After how many turns of the loop it is broken off; from eight on a turn takes half a millisecond."""


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> PrivateAuthority:
    return PrivateAuthority(tmp_path_factory.mktemp("private"))


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    yield
    far_tls._contexts.clear()
    far_tls._latest.clear()


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Fail where a socket is collected that nobody closed."""
    gc.collect()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    left = [str(one.message) for one in seen if issubclass(one.category, ResourceWarning)]
    assert left == []


@contextlib.asynccontextmanager
async def reached(
    private: PrivateAuthority, way: str
) -> AsyncIterator[tuple[NetPlan, str, int, tuple[str, ...]]]:
    """A far side, and how it is dialled: plan, host, port, addresses."""
    if way in ("plain", "two"):
        async with listening(greet) as port:
            there = ("127.0.0.1",) if way == "plain" else ("127.0.0.1", "127.0.0.2", "::1")
            yield plan(), "a.example", port, there
    elif way == "tls":
        async with listening(greet, secure=serving(private.leaf("a.example"))) as port:
            yield plan(private), "a.example", port, ("127.0.0.1",)
    else:
        proxy = TunnelProxy({})
        near = serving(private.leaf("127.0.0.1")) if way == "https proxy" else None
        async with listening(greet) as far, listening(proxy.serve, secure=near) as port:
            proxy.places["a.example:9443"] = far
            url = f"{way.split(maxsplit=1)[0]}://127.0.0.1:{port}"
            yield plan(private, upstream_proxy=url), "a.example", 9443, ("127.0.0.1",)


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("way", ["plain", "two", "tls", "http proxy", "https proxy"])
def test_no_socket_is_left(private: PrivateAuthority, way: str, twice: bool) -> None:
    async def run() -> None:
        async with reached(private, way) as (planned, host, port, there):
            for steps in STEPS:
                dialling = asyncio.ensure_future(
                    dial(
                        planned, host, port, tls=way == "tls", alpn=(), published="proxy" not in way,
                        resolver=leads_to(*there),
                    )
                )  # fmt: skip
                for turn in range(steps):
                    await asyncio.sleep(0 if turn < 8 else 0.0005)
                dialling.cancel()
                if twice:
                    await asyncio.sleep(0)
                    dialling.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    (await dialling).sock.close()
            await asyncio.sleep(0.05)

    with nothing_left():
        asyncio.run(run())


def loops() -> list[asyncio.AbstractEventLoop]:
    import uvloop

    return [asyncio.new_event_loop(), uvloop.new_event_loop()]


@pytest.mark.parametrize("alpn", ["h2", "http/1.1"])
def test_a_pool_that_closes_leaves_none_of_those_that_it_dialled(
    private: PrivateAuthority, alpn: str
) -> None:
    secure = serving(private.leaf("127.0.0.1"), alpn)

    async def run(loop: asyncio.AbstractEventLoop) -> None:
        async with listening(greet, secure=secure) as port:
            for steps in (0, 2, 6, 20, 200):
                pool = Pool(plan(private), loop)
                way = Way(address="", host="127.0.0.1", port=port, tls=True, published=True)
                opening = asyncio.ensure_future(pool.open(way, True))
                for turn in range(steps):
                    await asyncio.sleep(0 if turn < 8 else 0.0005)
                # As a front does that ends.
                opening.cancel()
                pool.close()
                await asyncio.wait([opening])
                pool.close()
                await asyncio.sleep(0)

    for loop in loops():
        with nothing_left():
            loop.run_until_complete(run(loop))
            loop.close()


@pytest.mark.parametrize("uv", [False, True], ids=["asyncio", "uvloop"])
def test_a_front_that_ends_while_it_dials_leaves_none(tmp_path: Path, uv: bool) -> None:
    def silent(wire: Wire) -> None:
        while wire.more():
            pass

    for wait_seconds in (0.0, 0.005, 0.05):
        with nothing_left(), a_world(tmp_path, uv=uv) as world:
            world.serve(silent, port=443, tls=True)
            world.serve(silent)
            world.connect().send(b"GET / HTTP/1.1\r\nHost: far.test\r\n\r\n")
            world.connect_tls().send(b"GET / HTTP/1.1\r\nHost: far.test\r\n\r\n")
            time.sleep(wait_seconds)
