"""The front on loopback: what it takes, what it turns away, and what comes of a request."""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable
from pathlib import Path

import pytest
from tests.fakes.gate import FakeGate, parking, passing, refusing
from tests.fakes.net_front import Wire, World, a_world, client_context, one_authority, page

from interlock.boundary.net.dialling import Dialled
from interlock.boundary.net.doors import Doors
from interlock.boundary.net.front import Front
from interlock.boundary.net.gate import Body, Passage
from interlock.boundary.net.names import Names
from interlock.boundary.net.parked import load
from interlock.boundary.net.plan import NetPlan, OpaqueRoute, Published
from interlock.model.requests import Credential, NetRequest, Outcome

GET = b"GET /a?b=c HTTP/1.1\r\nHost: far.test\r\nX-One: 1\r\n\r\n"


@pytest.mark.parametrize("uv", [False, True])
def test_a_passed_request_is_answered_and_reported(tmp_path: Path, uv: bool) -> None:
    with a_world(tmp_path, uv=uv) as world:
        world.serve(page)
        wire = world.connect()
        for _ in range(3):
            status, fields, body = wire.ask(GET)
            assert (status, body) == (200, b"GET /a?b=c HTTP/1.1|far.test|")
            assert fields["content-type"] == "text/plain"
        wire.close()
        world.eventually(lambda: len(world.gate.responses) == 3)
        assert world.far["far.test", 80].accepted == 1
        request = world.gate.requests[0]
        assert (request.method, request.url) == ("GET", "http://far.test/a?b=c")
        effect_id, response, whole = world.gate.responses[0]
        assert (effect_id, response.outcome, response.status) == ("e1", Outcome.DONE, 200)
        assert whole == b"GET /a?b=c HTTP/1.1|far.test|"


@pytest.mark.parametrize("uv", [False, True])
def test_tls_is_ended_and_made_anew(tmp_path: Path, uv: bool) -> None:
    with a_world(tmp_path, uv=uv) as world:
        world.serve(page, port=443, tls=True)
        wire = world.connect_tls()
        for _ in range(3):
            assert wire.ask(GET)[2] == b"GET /a?b=c HTTP/1.1|far.test|"
        wire.close()
        assert world.gate.requests[0].url == "https://far.test/a?b=c"
        assert world.far["far.test", 443].accepted == 1


def test_a_refused_request_never_leaves(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(refusing)) as world:
        world.serve(page)
        wire = world.connect()
        for _ in range(2):
            status, fields, body = wire.ask(GET)
            assert status == 403
            assert fields["content-type"] == "application/problem+json"
            assert b"no-such-host" in body
        wire.close()
        assert world.dials == []
        assert world.gate.responses == []


def test_a_server_name_unlike_the_address_is_turned_away(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page, port=443, tls=True)
        with pytest.raises((ConnectionError, ssl.SSLError, EOFError)):
            world.connect_tls(sni="evil.test")
        world.eventually(lambda: len(world.gate.away) == 1)
        assert world.gate.away[0] == (
            "far.test",
            443,
            "server name differs from the address that was asked for",
        )
        wire = world.connect_tls(sni="")
        assert wire.ask(GET)[0] == 200
        wire.close()


def test_domain_fronting_is_misdirected(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page, port=443, tls=True)
        wire = world.connect_tls()
        assert wire.ask(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")[0] == 421
        wire.close()
        assert world.dials == []


def test_an_address_may_be_dialled_with_and_without_a_name(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page, host="192.0.2.7", port=443, tls=True)
        world.serve(page, host="far.test", port=443, tls=True)
        wire = world.connect_tls("192.0.2.7", by_address=True, sni="")
        assert wire.ask(b"GET / HTTP/1.1\r\nHost: 192.0.2.7\r\n\r\n")[0] == 200
        wire.close()
        wire = world.connect_tls("192.0.2.7", by_address=True, sni="far.test")
        assert wire.ask(b"GET / HTTP/1.1\r\nHost: far.test\r\n\r\n")[0] == 200
        wire.close()
        assert world.dials == [("192.0.2.7", 443, True, "192.0.2.7"), ("far.test", 443, True, "192.0.2.7")]
        assert [r.address for r in world.gate.requests] == ["192.0.2.7", "192.0.2.7"]
        wire = world.connect("192.0.2.7", by_address=True)
        assert wire.ask(b"GET / HTTP/1.1\r\nHost: name.test\r\n\r\n")[0] == 502
        wire.close()
        assert world.dials[-1] == ("name.test", 80, False, "192.0.2.7")


def test_an_unknown_placeholder_and_the_door_itself_are_refused(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        known = world.names.address_of("far.test")[0]
        unknown = known.rsplit(".", 1)[0] + ".250"
        for goes_to in ((unknown, 80), None, ("0.0.0.0", 80)):
            world.goes_to = goes_to
            with pytest.raises((ConnectionError, ssl.SSLError, EOFError)):
                wire = world.dial_door(world.door)
                wire.ask(GET)
        assert len(world.gate.away) == 3
        assert world.gate.requests == []


def test_names_are_answered_over_datagrams_and_tcp(tmp_path: Path) -> None:
    query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03far\x04test\x00\x00\x01\x00\x01"
    with a_world(tmp_path) as world:
        address = socket.inet_aton(world.names.address_of("far.test")[0])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(5)
            sock.sendto(query, world.datagrams)
            assert sock.recv(512).endswith(address)
        wire = world.connect("192.0.2.53", 53, by_address=True)
        for _ in range(2):
            wire.send(len(query).to_bytes(2, "big") + query)
            size = int.from_bytes(wire.exactly(2), "big")
            assert wire.exactly(size).endswith(address)
        wire.close()
        assert world.gate.requests == []


def opaque_plan() -> NetPlan:
    return NetPlan(
        folder="",
        opaque=(OpaqueRoute(host="ssh.test", port=22), OpaqueRoute(host="*.db.test", port=5432)),
        published=(
            Published(port=1, host="127.0.0.1", host_port=11434),
            Published(port=2, host="127.0.0.1", host_port=5432, opaque=True),
        ),
    )


def echo(wire: Wire) -> None:
    wire.send(b"SSH-2.0-far\r\n")
    data = wire.rest()
    wire.send(data[::-1])


def test_an_opaque_route_passes_bytes_with_each_end(tmp_path: Path) -> None:
    with a_world(tmp_path, plan=opaque_plan()) as world:
        world.serve(echo, "ssh.test", 22)
        wire = world.connect("ssh.test", 22)
        assert wire.until(b"\r\n") == b"SSH-2.0-far\r\n"
        wire.send(b"abc" * 100_000)
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.rest() == b"cba" * 100_000
        wire.close()
        world.eventually(lambda: len(world.gate.responses) == 1)
        request = world.gate.requests[0]
        assert (request.method, request.scheme, request.protocol, request.host) == (
            "CONNECT",
            "tcp",
            "opaque",
            "ssh.test",
        )
        _, response, _ = world.gate.responses[0]
        assert (response.outcome, response.size_bytes) == (Outcome.DONE, 300_013)
        assert response.detail == "300000 bytes were sent"


def test_a_refused_or_dead_opaque_route_is_reset(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(refusing), opaque_plan()) as world:
        with pytest.raises(ConnectionResetError):
            world.connect("x.db.test", 5432).rest()
        assert world.dials == []
        world.gate.rule = passing
        with pytest.raises(ConnectionResetError):
            world.connect("x.db.test", 5432).rest()
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.FAILED


def test_published_ports_are_http_or_opaque(tmp_path: Path) -> None:
    with a_world(tmp_path, plan=opaque_plan()) as world:
        world.serve(page, "127.0.0.1", 11434)
        world.serve(echo, "127.0.0.1", 5432)
        wire = world.dial_door(world.published_at[1])
        assert (
            wire.ask(b"GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n")[2] == b"GET / HTTP/1.1|127.0.0.1:11434|"
        )
        wire.close()
        wire = world.dial_door(world.published_at[2])
        assert wire.until(b"\r\n") == b"SSH-2.0-far\r\n"
        wire.close()
        assert [r.published for r in world.gate.requests] == [True, True]


def test_connect_opens_a_connection_that_is_read_like_any_other(tmp_path: Path) -> None:
    with a_world(tmp_path, plan=opaque_plan()) as world:
        world.serve(page, "far.test", 443, tls=True)
        world.serve(echo, "ssh.test", 22)
        wire = world.connect("proxy.test", 3128)
        wire.send(b"CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\n\r\n")
        assert wire.until(b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        wire.sock = client_context().wrap_socket(wire.sock, server_hostname="far.test")
        assert wire.ask(GET)[0] == 200
        wire.close()
        assert [r.url for r in world.gate.requests] == ["https://far.test/a?b=c"]
        wire = world.connect("proxy.test", 3128)
        wire.send(b"CONNECT ssh.test:22 HTTP/1.1\r\nHost: ssh.test:22\r\n\r\n")
        wire.until(b"\r\n\r\n")
        assert wire.until(b"\r\n") == b"SSH-2.0-far\r\n"
        wire.close()
        world.serve(page, "plain.test", 80)
        wire = world.connect("proxy.test", 3128)
        wire.send(b"CONNECT plain.test:80 HTTP/1.1\r\nHost: plain.test:80\r\n\r\n")
        wire.until(b"\r\n\r\n")
        assert wire.ask(b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n")[0] == 200
        wire.close()
        assert ("proxy.test", 3128) not in [dial[:2] for dial in world.dials]


def test_bytes_sent_before_a_connect_is_answered_end_it(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        wire = world.connect("proxy.test", 3128)
        wire.send(b"CONNECT far.test:80 HTTP/1.1\r\nHost: far.test:80\r\n\r\n" + GET)
        with pytest.raises((ConnectionError, EOFError)):
            wire.answer()
            wire.answer()
        wire.close()
        assert world.gate.requests == []


def test_a_url_as_target_goes_where_it_says(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        wire = world.connect("proxy.test", 3128)
        status, _, body = wire.ask(
            b"GET http://far.test/x HTTP/1.1\r\nHost: far.test\r\nProxy-Authorization: a\r\n\r\n"
        )
        assert (status, body) == (200, b"GET /x HTTP/1.1|far.test|")
        wire.close()
        assert world.gate.requests[0].host == "far.test"
        wire = world.connect("192.0.2.9", 80, by_address=True)
        assert wire.ask(b"GET http://far.test/x HTTP/1.1\r\nHost: far.test\r\n\r\n")[0] == 200
        assert world.gate.requests[1].address == ""


def test_a_placeholder_in_a_request_is_seen_wherever_it_stands(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        world.front.tokens["placeholder-e9"] = "e9"
        wire = world.connect()
        wire.ask(b"GET /a?x=placeholder-e9 HTTP/1.1\r\nHost: far.test\r\n\r\n")
        wire.ask(b"GET / HTTP/1.1\r\nHost: far.test\r\nX: placeholder-e9\r\n\r\n")
        body = b"\xff" * 262_140 + b"placeholder-e9" + b"\xff" * 9
        wire.ask(b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        wire.ask(GET)
        wire.close()
        assert [r.placeholders for r in world.gate.requests] == [("e9",), ("e9",), ("e9",), ()]


def test_a_parked_request_is_kept_and_answered_with_a_placeholder(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(parking)) as world:
        wire = world.connect()
        status, _, body = wire.ask(
            b"POST /pay HTTP/1.1\r\nHost: far.test\r\nContent-Length: 3\r\nX-A: 1\r\n\r\nabc"
        )
        wire.close()
        assert status == 202
        assert b"placeholder-e1" in body
        assert world.dials == []
        parked = load(world.front.parked_folder, "e1")
        assert (parked.head.method, parked.head.target, parked.head.headers) == (
            "POST",
            "/pay",
            ((b"x-a", b"1"),),
        )
        assert Path(parked.body_path).read_bytes() == b"abc"


def test_the_end_of_the_front_breaks_off_what_is_open(tmp_path: Path) -> None:
    arrived: list[bool] = []

    def script(wire: Wire) -> None:
        wire.head()
        arrived.append(True)
        wire.rest()

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(GET)
        world.eventually(lambda: bool(arrived))
        world.on_loop(world.front.end)
        with pytest.raises(ConnectionError):
            wire.rest()
        wire.close()
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.UNKNOWN


def test_a_client_that_does_not_trust_us_is_reported(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        wire = world.connect(port=443)
        with pytest.raises(ssl.SSLError):
            ssl.create_default_context().wrap_socket(wire.sock, server_hostname="far.test")
        wire.close()
        world.eventually(lambda: len(world.gate.away) == 1)
        assert world.gate.away[0][2].startswith("the TLS handshake failed")


@pytest.mark.parametrize("cut", [1, 4, 30, 200])
def test_a_hello_in_pieces_is_read(tmp_path: Path, cut: int) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context().wrap_bio(incoming, outgoing, server_hostname="far.test")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    with a_world(tmp_path) as world:
        wire = world.connect(port=443)
        for at in range(0, len(hello), max(cut, len(hello) // 20)):
            wire.send(hello[at : at + max(cut, len(hello) // 20)])
            time.sleep(0.005)
        assert wire.exactly(1) == b"\x16"
        wire.close()


def test_a_key_that_was_refused_first_does_not_make_the_real_one_foreign(tmp_path: Path) -> None:
    def rule(request: NetRequest, effect_id: str) -> Passage:
        return (refusing if request.path == "/stolen" else passing)(request, effect_id)

    with a_world(tmp_path, FakeGate(rule)) as world:
        world.serve(page)
        for path, key in (("stolen", "a"), ("mine", "b"), ("stolen", "a"), ("mine", "b")):
            ask = f"GET /{path} HTTP/1.1\r\nHost: far.test\r\nAuthorization: Bearer {key * 20}\r\n\r\n"
            assert world.connect().ask(ask.encode())[0] == (403 if path == "stolen" else 200)
        found = [request.credential for request in world.gate.requests]
        assert found == [Credential.OWN, Credential.OWN, Credential.FOREIGN, Credential.OWN]


# faults of our own


class Broken(FakeGate):
    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        if self.later_seconds is None:
            raise ZeroDivisionError
        return self._break()

    async def _break(self) -> Passage:
        raise ZeroDivisionError


async def _no_dial(*_: object, **__: object) -> Dialled:
    raise ZeroDivisionError


def as_in_a_run(world: World) -> None:
    """Let the front hear of faults itself, as on a loop where nobody else does."""
    world.on_loop(lambda: world.loop.set_exception_handler(world.front._faulted))


@pytest.mark.parametrize("uv", [False, True])
@pytest.mark.parametrize("later", [None, 0.01])
def test_a_fault_of_ours_is_told_and_not_printed(
    tmp_path: Path, later: float | None, uv: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with a_world(tmp_path, Broken(passing, later), uv=uv) as world:
        as_in_a_run(world)
        wire = world.connect()
        wire.send(GET)
        if later is None:
            with pytest.raises((EOFError, ConnectionError)):
                wire.answer()
        else:
            assert wire.answer()[0] == 503
        told = ("far.test", 80, "the boundary failed on it: ZeroDivisionError")
        world.eventually(lambda: told in world.gate.away)
    assert "Error" not in "".join(capfd.readouterr())


def test_a_dial_with_a_fault_leaves_nobody_waiting(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with a_world(tmp_path) as world:
        as_in_a_run(world)
        world.front.pool._dialler = _no_dial
        assert world.connect().ask(GET)[0] == 502
        world.eventually(lambda: len(world.gate.away) == 1)
        assert world.gate.away == [("far.test", 80, "the boundary failed on it: ZeroDivisionError")]
        assert [response.outcome for _, response, _ in world.gate.responses] == [Outcome.FAILED]
        world.connect(port=443).send(b"\x16\x03\x01")  # and one that is cut off while it is told apart
    assert "Error" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("uv", [False, True])
def test_a_front_hears_of_faults_where_nobody_does(tmp_path: Path, uv: bool) -> None:
    import uvloop

    loop = uvloop.new_event_loop() if uv else asyncio.new_event_loop()
    gate = FakeGate()
    door = socket.create_server(("127.0.0.1", 0))
    door.setblocking(False)
    plan = NetPlan(folder=str(tmp_path))
    front = Front(Doors(tcp=(door,)), plan, gate, one_authority("run", tmp_path), Names(), loop)
    loop.call_exception_handler({"message": "what", "exception": KeyError("secret")})
    loop.call_exception_handler({"message": "a task was lost"})
    front.close()
    assert gate.away == [
        ("", 0, "the boundary failed on it: KeyError"),
        ("", 0, "the boundary failed on it: a task was lost"),
    ]
