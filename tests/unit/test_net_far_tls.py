"""TLS to the far side, with a private authority and certificates that are wrong in one way."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.certificates import PrivateAuthority
from tests.fakes.dialled import leads_to, plan, read, serving
from tests.fakes.far_places import GREETING, greet, listening, say_nothing

from interlock.boundary.net import far_tls
from interlock.boundary.net.dial import DialError, dial


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


@pytest.mark.parametrize("host", ["127.0.0.1", "a.example"])
def test_tls_is_verified_for_a_name_and_for_a_literal(private: PrivateAuthority, host: str) -> None:
    async def run() -> None:
        secure = serving(private.leaf("a.example", "127.0.0.1"), "h2", "http/1.1")
        async with listening(greet, secure=secure) as port:
            for offered, wanted in ((("h2", "http/1.1"), "h2"), (("http/1.1",), "http/1.1"), ((), "")):
                dialled = await dial(
                    plan(private),
                    host,
                    port,
                    tls=True,
                    alpn=offered,
                    published=True,
                    resolver=leads_to("127.0.0.1"),
                )
                with dialled.sock:
                    assert isinstance(dialled.sock, ssl.SSLSocket)
                    assert dialled.sock.getblocking() is False
                    assert dialled.alpn == wanted
                    assert await read(dialled) == GREETING

    asyncio.run(run())


@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("expired", "has expired"),
        ("early", "not valid yet"),
        ("other", "for another name"),
        ("self", "self-signed"),
        ("unknown", "does not trust"),
    ],
)
def test_a_wrong_certificate_is_refused_and_named(private: PrivateAuthority, what: str, word: str) -> None:
    leaf = {
        "expired": lambda: private.leaf("127.0.0.1", days=(-9, -2)),
        "early": lambda: private.leaf("127.0.0.1", days=(2, 9)),
        "other": lambda: private.leaf("b.example", "127.0.0.2"),
        "self": lambda: private.leaf("127.0.0.1", self_signed=True),
        "unknown": lambda: private.leaf("127.0.0.1"),
    }[what]()

    async def run() -> DialError:
        async with listening(greet, secure=serving(leaf)) as port:
            with pytest.raises(DialError) as caught:
                await dial(plan(None if what == "unknown" else private), "127.0.0.1", port, tls=True, alpn=())
        return caught.value

    error = asyncio.run(run())
    assert error.kind == "certificate"
    assert word in error.message
    assert ("SSL_CERT_FILE" in error.hint) is (what in ("self", "unknown"))


def test_the_hosts_own_variable_names_a_private_authority(
    private: PrivateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", private.trust_file)

    async def run() -> None:
        async with listening(greet, secure=serving(private.leaf("127.0.0.1"))) as port:
            (await dial(plan(), "127.0.0.1", port, tls=True, alpn=())).sock.close()

    asyncio.run(run())


def test_a_trust_file_that_cannot_be_read_is_named(tmp_path: Path, private: PrivateAuthority) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")

    async def run(path: str) -> DialError:
        async with listening(greet, secure=serving(private.leaf("127.0.0.1"))) as port:
            with pytest.raises(DialError) as caught:
                await dial(plan(trust_file=path), "127.0.0.1", port, tls=True, alpn=())
        return caught.value

    for path in (str(empty), "/nonexistent/trust.pem"):
        error = asyncio.run(run(path))
        assert error.kind == "certificate"
        assert f"`{path}`" in error.message


def test_old_tls_is_not_spoken(private: PrivateAuthority) -> None:
    assert far_tls.context("", ()).minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_handshake_that_is_never_answered_ends_in_time() -> None:
    async def run() -> DialError:
        async with listening(say_nothing) as port:
            with pytest.raises(DialError) as caught:
                await dial(plan(seconds=0.3), "127.0.0.1", port, tls=True, alpn=())
        return caught.value

    assert asyncio.run(run()).kind == "timed-out"


def test_a_far_side_without_tls_and_one_that_hangs_up_are_told() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    async def run(on: object) -> DialError:
        async with listening(on) as port:
            with pytest.raises(DialError) as caught:
                await dial(plan(), "127.0.0.1", port, tls=True, alpn=())
        return caught.value

    plain = asyncio.run(run(greet))
    assert (plain.kind, "does not speak TLS" in plain.message) == ("tls", True)
    gone = asyncio.run(run(hang_up))
    assert (gone.kind, "closed the connection" in gone.message) == ("tls", True)


def test_a_second_connection_beside_the_first_resumes_its_session(private: PrivateAuthority) -> None:
    async def run(newest: ssl.TLSVersion) -> bool:
        secure = serving(private.leaf("127.0.0.1"), maximum_version=newest)
        async with listening(greet, secure=secure) as port:
            first = await dial(plan(private), "127.0.0.1", port, tls=True, alpn=())
            with first.sock:
                await read(first)  # a ticket comes with the first bytes
                second = await dial(plan(private), "127.0.0.1", port, tls=True, alpn=())
                with second.sock:
                    assert await read(second) == GREETING
                    assert isinstance(second.sock, ssl.SSLSocket)
                    return bool(second.sock.session_reused)

    assert asyncio.run(run(ssl.TLSVersion.TLSv1_3))
    assert asyncio.run(run(ssl.TLSVersion.TLSv1_2))


def test_giving_up_leaves_no_socket_open(private: PrivateAuthority) -> None:
    async def run() -> None:
        async with listening(say_nothing) as port:
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(3):
                task = asyncio.ensure_future(dial(plan(private), "127.0.0.1", port, tls=True, alpn=()))
                await asyncio.sleep(0.05)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await asyncio.sleep(0.05)
            assert len(os.listdir("/proc/self/fd")) <= before + 1

    asyncio.run(run())


def test_it_works_on_the_fast_loop_too(private: PrivateAuthority) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def run() -> None:
        async with listening(greet, secure=serving(private.leaf("127.0.0.1"))) as port:
            dialled = await dial(plan(private), "127.0.0.1", port, tls=True, alpn=())
            with dialled.sock:
                assert await read(dialled) == GREETING

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
