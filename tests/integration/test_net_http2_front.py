"""HTTP/2 and WebSocket through the whole front: from a client's TLS to a far side's, with a gate between."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded
from tests.fakes.gate import FakeGate, parking, refusing
from tests.fakes.net_front import Far, Wire, World, a_world, page

from interlock.boundary.net.plan import NetPlan
from interlock.model.requests import Outcome

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="not run: no curl here")

PROBED = NetPlan(folder="", probed=("far.test",))


def echo_h2(wire: Wire) -> None:
    """Answer every request with its path and body, over HTTP/2."""
    h2 = H2Connection(H2Configuration(client_side=False))
    h2.initiate_connection()
    wire.sock.sendall(h2.data_to_send())
    bodies: dict[int, bytes] = {}
    paths: dict[int, bytes] = {}
    while data := wire.sock.recv(65536):
        for event in h2.receive_data(data):
            match event:
                case RequestReceived():
                    fields = {bytes(name): bytes(value) for name, value in event.headers}
                    paths[event.stream_id] = fields[b":path"] + b" " + fields[b":authority"]
                    bodies[event.stream_id] = b""
                case DataReceived():
                    bodies[event.stream_id] += event.data or b""
                    h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
                case StreamEnded():
                    h2.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/plain")])
                    answer = paths[event.stream_id] + b" %d" % len(bodies[event.stream_id])
                    h2.send_data(event.stream_id, answer, end_stream=True)
                case _:
                    pass
        wire.sock.sendall(h2.data_to_send())


def serve_h2(world: World, script: Callable[[Wire], None] = echo_h2) -> Far:
    far = world.far["far.test", 443] = Far(
        script, world.far_authority.context("far.test", ("h2", "http/1.1"))
    )
    return far


def curl(world: World, *options: str, path: str = "/a") -> str:
    world.meant_for("far.test", 443)
    trust = world.folder / "run.pem"
    trust.write_bytes(_certificate(world))
    door = f"{world.door[0]}:{world.door[1]}"
    done = subprocess.run(
        ["curl", "-sS", "--max-time", "20", "--cacert", str(trust), "--connect-to", f"::{door}", *options, f"https://far.test{path}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def _certificate(world: World) -> bytes:
    from tests.fakes import net_front

    return net_front._files["run"].certificate_pem


SAY = ("-w", "|%{http_version} %{http_code}")


def test_http2_on_both_sides(tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(b"u" * 2_000_000)
    with a_world(tmp_path, plan=PROBED) as world:
        far = serve_h2(world)
        assert curl(world, *SAY) == "/a far.test 0|2 200"
        assert curl(world, *SAY, "--data-binary", f"@{upload}") == "/a far.test 2000000|2 200"
        many = curl(world, *SAY, "-Z", path="/{" + ",".join(map(str, range(30))) + "}")
        assert many.count("|2 200") == 30
        assert far.accepted == 1  # one connection for all
        world.eventually(lambda: len(world.gate.responses) == 32)
        assert {response.outcome for _, response, _ in world.gate.responses} == {Outcome.DONE}
        assert world.gate.requests[1].protocol == "h2"
        assert (world.gate.bodies[1], world.gate.requests[1].body_size_bytes) == (2_000_000, 2_000_000)


def test_http2_is_offered_only_where_the_far_side_has_it(tmp_path: Path) -> None:
    with a_world(tmp_path, plan=PROBED) as world:
        world.serve(page, port=443, tls=True)
        assert curl(world, *SAY) == "GET /a HTTP/1.1|far.test||1.1 200"


def test_http1_goes_on_as_http2_until_it_is_known(tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(b"u" * 500_000)
    with a_world(tmp_path) as world:
        far = serve_h2(world)  # nothing is dialled to find out what it speaks
        seen = curl(
            world, *SAY, "-H", "Expect:", "-H", "Transfer-Encoding: chunked", "--data-binary", f"@{upload}"
        )
        assert seen == "/a far.test 500000|1.1 200"
        assert curl(world, *SAY) == "/a far.test 0|2 200"
        assert far.accepted == 1


def test_a_refusal_and_a_placeholder_are_answers_over_http2(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(refusing), PROBED) as world:
        serve_h2(world)
        seen = curl(world, *SAY, "-d", "x=1")
        assert seen.endswith("|2 403")
        assert "no-such-host" in seen
        assert world.gate.responses == []
    with a_world(tmp_path, FakeGate(parking, later_seconds=0.05), PROBED) as world:
        serve_h2(world)
        seen = curl(world, *SAY, "-d", "x=1")
        assert seen.endswith("|2 202")
        assert "placeholder-e1" in seen


def test_a_far_side_that_breaks_is_an_error_and_is_reported(tmp_path: Path) -> None:
    def breaks(wire: Wire) -> None:
        wire.sock.recv(65536)
        h2 = H2Connection(H2Configuration(client_side=False))
        h2.initiate_connection()
        wire.sock.sendall(h2.data_to_send())
        wire.sock.recv(65536)

    with a_world(tmp_path, plan=PROBED) as world:
        serve_h2(world, breaks)
        assert "|2 502" in curl(world, *SAY, "-d", "x=1")
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.UNKNOWN


def test_another_authority_on_the_connection_is_misdirected(tmp_path: Path) -> None:
    with a_world(tmp_path, plan=PROBED) as world:
        serve_h2(world)
        assert "|2 421" in curl(world, *SAY, "-H", "Host: other.test")
        assert world.gate.requests == []
        assert len(world.gate.away) == 1


def test_messages_of_a_websocket_are_decided(tmp_path: Path) -> None:
    pytest.importorskip("websockets", reason="not run: websockets is not installed")
    from websockets.exceptions import ConnectionClosed
    from websockets.server import ServerProtocol
    from websockets.sync.client import connect

    heard: list[object] = []

    def server(wire: Wire) -> None:
        protocol = ServerProtocol()
        while data := wire.sock.recv(65536):
            protocol.receive_data(data)
            for event in protocol.events_received():
                if hasattr(event, "headers"):
                    protocol.send_response(protocol.accept(event))  # type: ignore[arg-type]
                elif event.opcode.name == "TEXT":  # type: ignore[union-attr]
                    heard.append(bytes(event.data))  # type: ignore[union-attr]
                    protocol.send_text(b"heard")
            for piece in protocol.data_to_send():
                if piece:
                    wire.sock.sendall(piece)
            if protocol.close_expected():
                return

    with a_world(tmp_path) as world:
        world.serve(server)
        wire = world.connect()
        with connect("ws://far.test/chat", sock=wire.sock) as client:
            client.send("allowed")
            assert client.recv(timeout=10) == "heard"
            client.send("forbidden word")
            with pytest.raises(ConnectionClosed) as caught:
                client.recv(timeout=10)
            assert caught.value.rcvd is not None
            assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (1008, "the host is not allowed")
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert heard == [b"allowed"]
        assert world.gate.requests[0].url == "ws://far.test/chat"
        assert world.gate.messages[0].stream == "e1"
        assert world.gate.responses[0][1].status == 101
