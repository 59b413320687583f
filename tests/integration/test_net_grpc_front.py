"""grpcio through the whole front: TLS ended and made anew, each call proposed, refusals read as statuses."""

import datetime
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.fakes import net_front
from tests.fakes.gate import FakeGate, passing, refusing
from tests.fakes.net_front import World, a_world

from interlock.boundary.net.plan import NetPlan
from interlock.model.requests import Outcome

grpc = pytest.importorskip("grpc", reason="not run: grpcio is not installed")

PROBED = NetPlan(folder="", probed=("far.test",))


def leaf() -> tuple[bytes, bytes]:
    """Return key and certificate of the far side's name, signed by the far authority of `net_front`."""
    files = net_front._files["far"]
    root = x509.load_pem_x509_certificate(files.certificate_pem)
    signer = serialization.load_pem_private_key(files.key_pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "far.test")]))
        .issuer_name(root.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("far.test")]), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False)
        .sign(signer, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    return (
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()),
        made.public_bytes(serialization.Encoding.PEM),
    )


class Calls(grpc.GenericRpcHandler):  # type: ignore[misc, name-defined]
    def service(self, details: Any) -> Any:
        kind = details.method.rpartition("/")[2]
        if kind == "unary":
            return grpc.unary_unary_rpc_method_handler(lambda request, _: request[::-1])
        if kind == "down":
            return grpc.unary_stream_rpc_method_handler(
                lambda request, _: (request + b"%d" % at for at in range(9))
            )
        if kind == "both":
            return grpc.stream_stream_rpc_method_handler(
                lambda requests, _: (one.upper() for one in requests)
            )
        if kind == "up":
            return grpc.stream_unary_rpc_method_handler(lambda requests, _: b"|".join(requests))
        return None


class Reached:
    """A far side that is already listening elsewhere, in the shape that a world keeps."""

    def __init__(self, port: int) -> None:
        self.port = port

    def close(self) -> None:
        pass


@pytest.fixture
def far_server(tmp_path: Path) -> Iterator[int]:
    net_front.one_authority("far", tmp_path)
    net_front.one_authority("run", tmp_path)
    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(Calls(),))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([leaf()]))
    server.start()
    yield port
    server.stop(None).wait()


def channel(world: World, port: int) -> Any:
    world.far["far.test", 443] = Reached(port)  # type: ignore[assignment]
    world.meant_for("far.test", 443)
    return grpc.secure_channel(
        f"127.0.0.1:{world.door[1]}",
        grpc.ssl_channel_credentials(net_front._files["run"].certificate_pem),
        options=(
            ("grpc.ssl_target_name_override", "far.test"),
            ("grpc.default_authority", "far.test"),
            ("grpc.use_local_subchannel_pool", 1),
        ),
    )


@pytest.mark.parametrize("plan", [PROBED, NetPlan(folder="")], ids=["probed", "not probed"])
def test_a_unary_call_is_decided_and_answered(tmp_path: Path, far_server: int, plan: NetPlan) -> None:
    with a_world(tmp_path, plan=plan) as world, channel(world, far_server) as made:
        assert made.unary_unary("/s/unary")(b"abc", timeout=10) == b"cba"
        assert made.unary_unary("/s/unary")(b"z" * 300_000, timeout=10) == b"z" * 300_000
        assert list(made.unary_stream("/s/down")(b"a", timeout=10)) == [b"a%d" % at for at in range(9)]
        with pytest.raises(grpc.RpcError) as caught:
            made.unary_unary("/s/none")(b"", timeout=10)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        world.eventually(lambda: len(world.gate.responses) == 4)
        request = world.gate.requests[0]
        assert (request.method, request.url, request.protocol) == ("POST", "https://far.test/s/unary", "h2")
        assert (request.body_size_bytes, world.gate.bodies[:2]) == (8, [8, 300_005])
        assert {response.outcome for _, response, _ in world.gate.responses} == {Outcome.DONE}


def test_a_refused_call_is_permission_denied(tmp_path: Path, far_server: int) -> None:
    with a_world(tmp_path, FakeGate(refusing), PROBED) as world, channel(world, far_server) as made:
        with pytest.raises(grpc.RpcError) as caught:
            made.unary_unary("/s/unary")(b"abc", timeout=10)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "the host is not allowed" in caught.value.details()


def test_a_far_side_that_cannot_be_had_is_unavailable(tmp_path: Path, far_server: int) -> None:
    with a_world(tmp_path, FakeGate(passing), PROBED) as world, channel(world, far_server) as made:
        assert made.unary_unary("/s/unary")(b"abc", timeout=10) == b"cba"
        world.on_loop(world.front.pool.close)  # the connection goes, and nobody listens any more
        del world.far["far.test", 443]
        with pytest.raises(grpc.RpcError) as caught:
            made.unary_unary("/s/unary")(b"abc", timeout=10)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_each_message_of_a_call_that_stays_open_is_decided(tmp_path: Path, far_server: int) -> None:
    with a_world(tmp_path, plan=PROBED) as world, channel(world, far_server) as made:
        heard = threading.Event()

        def slowly(*rest: bytes) -> Iterator[bytes]:
            yield b"first"
            assert heard.wait(10)
            yield from rest

        replies = made.stream_stream("/s/both")(slowly(b"second", b"x" * 200_000), timeout=20)
        assert next(replies) == b"FIRST"  # while the request is still open
        heard.set()
        assert list(replies) == [b"SECOND", b"X" * 200_000]
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.requests[0].body_size_bytes == -1
        assert [message.size_bytes for message in world.gate.messages] == [10, 11, 200_005]
        assert {message.stream for message in world.gate.messages} == {"e1"}
        heard.clear()
        replies = made.stream_stream("/s/both")(slowly(b"forbidden", b"never"), timeout=20)
        assert next(replies) == b"FIRST"
        heard.set()
        with pytest.raises(grpc.RpcError) as caught:
            next(replies)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "the host is not allowed" in caught.value.details()
        world.eventually(lambda: len(world.gate.responses) == 2)
        assert "never" not in [message.text for message in world.gate.messages]


def test_a_body_that_is_whole_at_once_is_decided_with_its_call(tmp_path: Path, far_server: int) -> None:
    with a_world(tmp_path, plan=PROBED) as world, channel(world, far_server) as made:
        assert made.stream_unary("/s/up")(iter([b"1", b"2"]), timeout=20) == b"1|2"
        assert world.gate.requests[0].body_size_bytes == 12
        assert world.gate.messages == []


@pytest.fixture
def plain_server() -> Iterator[int]:
    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(Calls(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait()


def plain_channel(world: World, port: int) -> Any:
    world.far["far.test", 80] = Reached(port)  # type: ignore[assignment]
    world.meant_for("far.test", 80)
    return grpc.insecure_channel(
        f"127.0.0.1:{world.door[1]}",
        options=(("grpc.default_authority", "far.test"), ("grpc.use_local_subchannel_pool", 1)),
    )


def test_calls_without_tls_share_a_connection_that_speaks_http2(tmp_path: Path, plain_server: int) -> None:
    with (
        a_world(tmp_path) as world,
        plain_channel(world, plain_server) as made,
        plain_channel(world, plain_server) as other,
    ):
        calls = [one.unary_unary("/s/unary").future(b"abc", timeout=10) for one in (made, other) * 5]
        assert [call.result() for call in calls] == [b"cba"] * 10
        assert list(made.unary_stream("/s/down")(b"a", timeout=10)) == [b"a%d" % at for at in range(9)]
        assert list(made.stream_stream("/s/both")(iter([b"a", b"b"]), timeout=10)) == [b"A", b"B"]
        world.eventually(lambda: len(world.gate.responses) == 12)
        assert {response.outcome for _, response, _ in world.gate.responses} == {Outcome.DONE}
        assert {request.url.partition("/s/")[0] for request in world.gate.requests} == {"http://far.test"}
        assert len(world.dials) == 1


def test_a_call_without_tls_is_refused_like_any_other(tmp_path: Path, plain_server: int) -> None:
    with a_world(tmp_path, FakeGate(refusing)) as world, plain_channel(world, plain_server) as made:
        with pytest.raises(grpc.RpcError) as caught:
            made.unary_unary("/s/unary")(b"abc", timeout=10)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert world.dials == []
