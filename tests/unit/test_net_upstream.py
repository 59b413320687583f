"""The proxy between us and the world, a real one on loopback."""

import asyncio
import os
from collections.abc import Awaitable, Iterator

import pytest
from tests.fakes.certificates import PrivateAuthority
from tests.fakes.dialled import closed_port, failed, leads_to, plan, read, send_all, serving
from tests.fakes.far_places import GREETING, TunnelProxy, greet, listening, say_nothing

from interlock.boundary.net import far_tls
from interlock.boundary.net.dial import DialError, Dialled, dial
from interlock.boundary.net.upstream import applies, read_proxy


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


@pytest.mark.parametrize("kind", ["http", "https"])
@pytest.mark.parametrize("login", ["", "user:p%40ss word".replace(" ", "%20")])
@pytest.mark.parametrize("tls", [False, True])
def test_a_tunnel_through_the_proxy_carries_everything(
    private: PrivateAuthority, kind: str, login: str, tls: bool
) -> None:
    async def run() -> None:
        proxy = TunnelProxy({}, login="user:p@ss word" if login else "")
        far = serving(private.leaf("far.example"), "h2") if tls else None
        near = serving(private.leaf("127.0.0.1")) if kind == "https" else None
        async with listening(greet, secure=far) as far_port, listening(proxy.serve, secure=near) as port:
            proxy.places["far.example:9443"] = far_port
            url = f"{kind}://{login + '@' if login else ''}127.0.0.1:{port}"
            with_proxy = plan(private, upstream_proxy=url)
            dialled = await dial(
                with_proxy, "far.example", 9443, tls=tls, alpn=("h2",), resolver=leads_to("0.0.0.0")
            )
            with dialled.sock:
                assert dialled.peer == f"proxy 127.0.0.1:{port}"
                assert dialled.alpn == ("h2" if tls else "")
                assert await read(dialled) == GREETING
                payload = os.urandom(300_000)
                sent = asyncio.ensure_future(send_all(dialled, payload))
                assert await read(dialled, len(payload)) == payload
                await sent
            assert proxy.asked == ["far.example:9443"]
            await asyncio.sleep(0.05)

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["http", "https"])
def test_what_the_proxy_refuses_is_told_as_its_own_doing(private: PrivateAuthority, kind: str) -> None:
    async def run(login: str, given_login: str) -> DialError:
        proxy = TunnelProxy({}, login=login)
        near = serving(private.leaf("127.0.0.1")) if kind == "https" else None
        async with listening(proxy.serve, secure=near) as port:
            url = f"{kind}://{given_login}127.0.0.1:{port}"
            with pytest.raises(DialError) as caught:
                await dial(plan(private, upstream_proxy=url), "far.example", 443, tls=True, alpn=())
        return caught.value

    for login, given_login, word in (
        ("u:p", "", "asks for a user and password (407)"),
        ("u:p", "u:wrong@", "did not accept"),
        ("", "", "answered 403 for `far.example:443`"),
    ):
        error = asyncio.run(run(login, given_login))
        assert error.kind == "proxy"
        assert word in error.message
        assert "wrong" not in error.message + error.hint


def test_a_proxy_that_is_dead_silent_or_something_else_is_told(private: PrivateAuthority) -> None:
    def through(port: int, seconds: float = 5.0, kind: str = "http") -> Awaitable[Dialled]:
        url = f"{kind}://127.0.0.1:{port}"
        return dial(plan(private, seconds=seconds, upstream_proxy=url), "far.example", 443, tls=True, alpn=())

    async def run(on: object, seconds: float = 5.0, kind: str = "http") -> DialError:
        async with listening(on) as port:
            with pytest.raises(DialError) as caught:
                await through(port, seconds, kind)
        return caught.value

    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n\r\n")
        await reader.read(-1)

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000)
        await reader.read(-1)

    async def gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    assert failed(through(closed_port())).kind == "proxy"
    assert asyncio.run(run(say_nothing, 0.3)).kind == "timed-out"
    assert asyncio.run(run(say_nothing, 0.3, "https")).kind == "timed-out"
    for on in (odd, endless, gone):
        assert asyncio.run(run(on)).kind == "proxy"
        assert asyncio.run(run(on, kind="https")).kind == "proxy"


def test_through_the_proxy_an_address_cannot_be_checked() -> None:
    with_proxy = plan(upstream_proxy="http://127.0.0.1:1")
    error = failed(dial(with_proxy, "far.example", 443, tls=True, alpn=(), address="198.51.100.1"))
    assert error.kind == "misdirected"
    assert "proxy" in error.message


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("far.example", True),
        ("localhost", False),
        ("x.localhost", False),
        ("127.0.0.1", False),
        ("::1", False),
        ("corp.example", False),
        ("a.corp.example", False),
        ("notcorp.example", True),
        ("lan.example", False),
        ("b.lan.example", False),
        ("10.1.2.3", False),
        ("11.1.2.3", True),
        ("192.0.2.7", False),
        ("2001:db8::7", False),
        ("2001:db9::7", True),
    ],
)
def test_what_no_proxy_names_goes_directly(host: str, wanted: bool) -> None:
    names = (".corp.example", "*.lan.example", "10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "")
    assert applies(plan(upstream_proxy="http://p:1", no_proxy=names), host) is wanted
    assert applies(plan(no_proxy=names), host) is False
    assert applies(plan(upstream_proxy="http://p:1", no_proxy=("*",)), host) is False


@pytest.mark.parametrize("url", ["socks5://a:1", "http://", "http://a:port", "http://a:99999", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(DialError) as caught:
        read_proxy(url)
    assert caught.value.kind == "proxy"


def test_a_proxy_without_scheme_or_port_is_read_as_usual() -> None:
    assert (read_proxy("proxy.example:3128").host, read_proxy("proxy.example:3128").port) == (
        "proxy.example",
        3128,
    )
    assert read_proxy("https://proxy.example").port == 443
    assert read_proxy("http://[2001:db8::1]:8080/").host == "2001:db8::1"
