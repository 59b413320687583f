"""The pool: who may share a connection, and which are kept."""

import threading
import time
from pathlib import Path

from tests.fakes.net_front import Wire, World, a_world, page

from interlock.boundary.net.pool import Way

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
