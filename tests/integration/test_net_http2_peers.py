"""Real programs through both HTTP/2 sides over loopback sockets: curl, nghttp, h2load; HTTP/1 on either end."""

import asyncio
import contextlib
import datetime
import ipaddress
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.fakes.net_links import Exchanged
from tests.fakes.net_served import forwarding, go, served

from interlock.boundary.net.sides import AnswerHead, ClientSide, RequestHead


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"not run: no {program} here")


async def run(*command: str) -> str:
    made = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out, _ = await asyncio.wait_for(made.communicate(), 60)
    assert made.returncode == 0, out.decode()
    return out.decode()


def echo(exchange: Exchanged) -> None:
    assert exchange.client is not None
    size = exchange.head.target.rpartition("/")[2]
    body = b"x" * int(size) if size.isdigit() else bytes(exchange.body)
    if exchange.head.method == "HEAD":
        body = b""
    exchange.client.answer(
        AnswerHead(status=200, headers=((b"content-type", b"text/plain"),), length=len(body))
    )
    if body:
        exchange.client.data(body)
    exchange.client.end(())


def whole(client: ClientSide, head: RequestHead) -> Exchanged:
    return Exchanged(client, head, echo)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return str(path)


@needs("curl")
def test_curl_over_tls_and_in_the_clear(certificate: str, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2"])
    upload = tmp_path / "upload"
    upload.write_bytes(b"u" * 3_000_000)

    async def work() -> None:
        async with served(whole, tls=context) as one:
            url = f"https://127.0.0.1:{one.port}"
            form = "%{http_version} %{size_download} %{http_code}"
            common = ("curl", "-sS", "--cacert", certificate, "-o", "/dev/null", "-w", form)
            assert await run(*common, f"{url}/5000000") == "2 5000000 200"
            assert await run(*common, "-T", str(upload), f"{url}/up/load") == "2 3000000 200"
        async with served(whole) as one:
            url = f"http://127.0.0.1:{one.port}"
            clear = ("curl", "-sS", "--http2-prior-knowledge", "-o", "/dev/null", "-w", form)
            assert await run(*clear, f"{url}/5000000") == "2 5000000 200"
            assert await run(*clear, "--data-binary", f"@{upload}", f"{url}/up") == "2 3000000 200"

    go(work())


@needs("nghttp")
@needs("nghttpd")
def test_nghttp_to_nghttpd_through_both_sides(tmp_path: Path) -> None:
    for at in range(40):
        (tmp_path / f"{at}").write_bytes(b"z" * (at * 20_000))
    (tmp_path / "up").write_bytes(b"p" * 400_000)

    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        daemon = subprocess.Popen(
            ["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", str(tmp_path), "--echo-upload", str(port)],
            stdout=subprocess.DEVNULL,
        )
        try:
            await _listens(port)
            begin, end = forwarding(port)
            async with served(begin) as one:
                url = f"http://127.0.0.1:{one.port}"
                seen = await run("nghttp", "-ns", *[f"{url}/{at}" for at in range(40)])
                assert seen.count(" 200 ") == 40
                seen = await run("nghttp", "-d", str(tmp_path / "up"), f"{url}/echo")
                assert seen.count("p") >= 400_000
                # trailers of a request go through
                seen = await run(
                    "nghttp", "-nv", "--trailer=check: 1", "-d", str(tmp_path / "up"), f"{url}/echo"
                )
                assert "recv HEADERS" in seen
                end()
        finally:
            daemon.terminate()
            daemon.wait()

    go(work())


@needs("h2load")
def test_many_streams_at_once() -> None:
    async def work() -> None:
        async with served(whole) as far, contextlib.AsyncExitStack() as stack:
            begin, end = forwarding(far.port)
            one = await stack.enter_async_context(served(begin))
            seen = await run(
                "h2load", "-n", "2000", "-c", "4", "-m", "100", f"http://127.0.0.1:{one.port}/1000"
            )
            assert "2000 succeeded" in seen
            end()

    go(work())


@needs("curl")
@pytest.mark.parametrize(("from_h1", "to_h1"), [(True, False), (False, True), (True, True)])
def test_either_protocol_is_translated_into_the_other(from_h1: bool, to_h1: bool, tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(b"u" * 700_000)

    async def work() -> None:
        async with served(whole, http1=to_h1) as far, contextlib.AsyncExitStack() as stack:
            begin, end = forwarding(far.port, h2=not to_h1)
            one = await stack.enter_async_context(served(begin, http1=from_h1))
            url = f"http://127.0.0.1:{one.port}"
            common = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download}"]
            if not from_h1:
                common.append("--http2-prior-knowledge")
            assert await run(*common, f"{url}/12345") == "200 12345"
            assert (
                await run(*common, "-H", "Expect:", "--data-binary", f"@{upload}", f"{url}/up")
                == "200 700000"
            )
            chunked = ("-H", "Expect:", "-H", "Transfer-Encoding: chunked", "--data-binary", f"@{upload}")
            assert await run(*common, *chunked, f"{url}/up") == "200 700000"
            assert await run(*common, "-I", f"{url}/7") == "200 0"
            end()

    go(work())


async def _listens(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)
        else:
            return
    raise AssertionError("nothing listens")
