"""The pool: who may share a connection, and which are kept."""

import asyncio
import threading
import time
from pathlib import Path

import pytest
from tests.fakes.net_front import Wire, World, a_world, page

from interlock.boundary.net.dialling import DialError, Dialled
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.pool import Pool, Way

GET = b"GET / HTTP/1.1\r\nHost: far.test\r\n\r\n"


def test_a_connection_is_shared_by_clients_one_after_the_other(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        for _ in range(5):
            wire = world.connect()
            assert wire.ask(GET)[0] == 200
            wire.close()
        assert world.far["far.test", 80].accepted == 1


def test_requests_at_once_have_a_connection_each(tmp_path: Path) -> None:
    ready = threading.Barrier(4)

    def script(wire: Wire) -> None:
        while True:
            wire.head()
            ready.wait(5)
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with a_world(tmp_path) as world:
        world.serve(script)
        wires = [world.connect() for _ in range(4)]
        for _ in range(3):
            for wire in wires:
                wire.send(GET)
            assert [wire.answer()[0] for wire in wires] == [200] * 4
        assert world.far["far.test", 80].accepted == 4


def test_other_places_never_share(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page, "far.test", 80)
        world.serve(page, "far.test", 8080)
        world.serve(page, "192.0.2.7", 80)
        world.serve(page, "far.test", 443, tls=True)
        assert world.connect().ask(GET)[0] == 200
        assert world.connect(port=8080).ask(GET.replace(b"test\r", b"test:8080\r"))[0] == 200
        assert world.connect_tls().ask(GET)[0] == 200
        # the same name by an address that the client chose is another way
        assert world.connect("192.0.2.7", 80, by_address=True).ask(GET)[0] == 200
        assert len(world.dials) == 4


def sweep(world: World, seconds: float) -> None:
    world.on_loop(lambda: world.front.pool.sweep(world.loop.time() + seconds))


def test_what_was_idle_long_is_closed(tmp_path: Path) -> None:
    ended = threading.Event()

    def script(wire: Wire) -> None:
        try:
            page(wire)
        finally:
            ended.set()

    with a_world(tmp_path) as world:
        world.serve(script)
        assert world.connect().ask(GET)[0] == 200
        sweep(world, 10)
        time.sleep(0.05)
        assert not ended.is_set()
        sweep(world, 100)
        assert ended.wait(5)
        assert world.connect().ask(GET)[0] == 200
        assert world.far["far.test", 80].accepted == 2


def test_one_that_the_far_side_closed_is_not_lent(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        for number in range(1, 4):
            assert wire.ask(b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 0\r\n\r\n")[0] == 200
            world.eventually(lambda: not world.front.pool._every)
            assert world.far["far.test", 80].accepted == number


def test_a_way_is_all_of_its_parts() -> None:
    one = Way(address="", host="a.test", port=80, tls=False, published=False)
    others = [
        one._replace(address="192.0.2.1"),
        one._replace(host="b.test"),
        one._replace(port=81),
        one._replace(tls=True),
        one._replace(published=True),
    ]
    assert len({one, *others}) == 6


class Silent:
    """A dialler that waits and then gives up, as for a host that says nothing."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.dials = 0

    async def __call__(self, plan: NetPlan, host: str, port: int, **_: object) -> Dialled:
        self.dials += 1
        await asyncio.sleep(self.seconds)
        raise DialError(f"`{host}:{port}` did not answer, try {self.dials}", "timed-out", hint="look")


@pytest.mark.parametrize(("seconds", "dials"), [(0.6, 1), (0.0, 2)])
def test_a_slow_probe_that_failed_is_not_tried_again_by_its_request(
    tmp_path: Path, seconds: float, dials: int
) -> None:
    with a_world(tmp_path, plan=NetPlan(folder="", probed=("far.test",))) as world:
        silent = world.front.pool._dialler = Silent(seconds)
        status, _, body = world.connect_tls(alpn=("h2", "http/1.1")).ask(GET)
        assert status == 504
        assert f"did not answer, try {dials} (look)".encode() in body
        assert silent.dials == dials


def test_a_probe_that_failed_is_remembered_for_a_moment_only(tmp_path: Path) -> None:
    way = Way(address="", host="far.test", port=443, tls=True, published=False)

    async def check() -> None:
        loop = asyncio.get_running_loop()
        pool = Pool(NetPlan(folder=str(tmp_path)), loop, silent)
        with pytest.raises(DialError):
            await pool.probe(way)
        with pytest.raises(DialError):
            await pool.open(way, True)
        assert silent.dials == 1
        pool.sweep(loop.time() + 10)
        with pytest.raises(DialError):
            await pool.open(way, True)
        assert silent.dials == 2
        pool.close()

    silent = Silent(0.6)
    asyncio.run(check())


@pytest.mark.parametrize("tls", [False, True])
def test_those_who_wait_for_one_dial_fail_with_it(tmp_path: Path, tls: bool) -> None:
    way = Way(address="", host="far.test", port=443, tls=tls, published=False)
    silent = Silent(0.05)

    async def check() -> None:
        pool = Pool(NetPlan(folder=str(tmp_path)), asyncio.get_running_loop(), silent)
        found = await asyncio.gather(*(pool.open(way, True) for _ in range(5)), return_exceptions=True)
        assert [str(one) for one in found] == ["`far.test:443` did not answer, try 1"] * 5
        pool.close()

    asyncio.run(check())
