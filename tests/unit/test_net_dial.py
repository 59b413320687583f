"""Connections to the far side, over real sockets of the loopback: which addresses are dialled, and what fails."""

import asyncio
import errno
import socket
import time
from collections.abc import Sequence

import pytest
from tests.fakes.dialled import closed_port, failed, leads_to, plan, read
from tests.fakes.far_places import GREETING, greet, listening

from interlock.boundary.net import addresses
from interlock.boundary.net import dial as dial_module
from interlock.boundary.net.dial import dial


def test_a_plain_connection_to_a_literal_passes() -> None:
    async def run() -> None:
        async with listening(greet) as port:
            dialled = await dial(plan(), "127.0.0.1", port, tls=False, alpn=())
            with dialled.sock:
                assert dialled.sock.getblocking() is False
                assert (dialled.alpn, dialled.peer) == ("", "127.0.0.1")
                assert dialled.sock.getpeername() == ("127.0.0.1", port)
                assert await read(dialled) == GREETING

    asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [
        "127.0.0.1",
        "127.8.9.1",
        "::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::1",
        "2002:a9fe:a9fe::1",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
        "224.0.0.1",
        "255.255.255.255",
        "ff02::1",
        "198.18.0.1",
        "198.19.255.254",
    ],
)
def test_a_name_that_leads_here_or_nowhere_is_refused(answer: str) -> None:
    for answers in ((answer,), ("198.51.100.1", answer)):
        error = failed(dial(plan(), "rebind.example", 9, tls=False, alpn=(), resolver=leads_to(*answers)))
        assert error.kind == "local-address"
        assert "`rebind.example`" in error.message
        assert error.hint


def test_a_name_that_leads_to_this_machines_own_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"\x7f\0\0\1" in addresses.own()
    monkeypatch.setattr(addresses, "own", lambda: frozenset((bytes((198, 51, 100, 9)),)))
    error = failed(dial(plan(), "me.example", 9, tls=False, alpn=(), resolver=leads_to("198.51.100.9")))
    assert error.kind == "local-address"
    assert "this machine" in error.message
    for address in (
        "10.1.2.3",
        "192.168.1.1",
        "172.16.0.1",
        "fd12::1",
        "100.64.0.1",
        "8.8.8.8",
        "2001:4860::8",
    ):
        assert addresses.local(address) == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "224.0.0.1", "198.18.3.4", "255.255.255.255", "ff02::1"])
def test_a_literal_that_is_no_place_is_refused_even_if_it_was_named(host: str) -> None:
    assert failed(dial(plan(), host, 9, tls=False, alpn=())).kind == "local-address"


@pytest.mark.parametrize(
    "host", ["", "A.example", "a.example.", "2001:DB8::1", "[::1]", "a\0.example", "caf\u00e9.example"]
)
def test_a_host_that_is_not_canonical_is_not_dialled(host: str) -> None:
    assert (
        failed(dial(plan(), host, 9, tls=False, alpn=(), resolver=leads_to("8.8.8.8"))).kind == "unknown-name"
    )


def test_a_published_host_may_be_anywhere_and_its_name_is_looked_up_here() -> None:
    async def run() -> None:
        async with listening(greet) as port:
            dialled = await dial(
                plan(upstream_proxy="http://192.0.2.1:1"),
                "localhost",
                port,
                tls=False,
                alpn=(),
                published=True,
            )
            with dialled.sock:
                assert await read(dialled) == GREETING

    asyncio.run(run())


def test_localhost_that_was_not_published_is_refused() -> None:
    assert failed(dial(plan(), "localhost", 9, tls=False, alpn=())).kind == "local-address"


def test_the_address_that_the_client_dialled_must_be_the_hosts() -> None:
    async def run() -> None:
        async with listening(greet) as port:
            kwargs = {"tls": False, "alpn": (), "published": True}
            here = leads_to("127.0.0.2", "127.0.0.1")
            dialled = await dial(plan(), "a.example", port, address="127.0.0.1", resolver=here, **kwargs)  # type: ignore[arg-type]
            with dialled.sock:
                assert dialled.peer == "127.0.0.1"
            dialled = await dial(plan(), "127.0.0.1", port, tls=False, alpn=(), address="::ffff:127.0.0.1")
            dialled.sock.close()

    asyncio.run(run())
    error = failed(
        dial(
            plan(),
            "a.example",
            9,
            tls=False,
            alpn=(),
            address="198.51.100.1",
            resolver=leads_to("198.51.100.2"),
        )
    )
    assert error.kind == "misdirected"
    assert "198.51.100.1" in error.message
    assert failed(dial(plan(), "127.0.0.1", 9, tls=False, alpn=(), address="127.0.0.2")).kind == "misdirected"


def test_a_name_without_an_address_and_a_resolver_that_is_away_are_told_apart() -> None:
    async def unknown(_host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no")

    async def away(_host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "later")

    for resolver, word in (
        (unknown, "knows no address"),
        (leads_to(), "knows no address"),
        (away, "cannot be reached"),
    ):
        error = failed(dial(plan(), "a.example", 9, tls=False, alpn=(), resolver=resolver))
        assert error.kind == "unknown-name"
        assert word in error.message


def test_a_refused_connection_says_so() -> None:
    error = failed(dial(plan(), "127.0.0.1", closed_port(), tls=False, alpn=()))
    assert error.kind == "refused"
    assert "`127.0.0.1`" in error.message


def test_the_next_address_is_tried_when_one_fails() -> None:
    async def run() -> None:
        async with listening(greet) as port:
            begun = time.monotonic()
            dialled = await dial(
                plan(),
                "a.example",
                port,
                tls=False,
                alpn=(),
                published=True,
                resolver=leads_to("127.0.0.9", "::1", "127.0.0.8", "127.0.0.1"),
            )
            with dialled.sock:
                assert dialled.peer == "127.0.0.1"
            assert time.monotonic() - begun < 2

    asyncio.run(run())
    error = failed(
        dial(
            plan(),
            "a.example",
            closed_port(),
            tls=False,
            alpn=(),
            published=True,
            resolver=leads_to("127.0.0.9", "127.0.0.8"),
        )
    )
    assert error.kind == "refused"


def test_a_silent_address_does_not_hold_the_others_up(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = dial_module._connect

    async def slow_first(address: str, port: int) -> tuple[socket.socket, str]:
        if address == "127.0.0.9":
            await asyncio.sleep(60)
        return await connect(address, port)

    monkeypatch.setattr(dial_module, "_connect", slow_first)

    async def run() -> None:
        async with listening(greet) as port:
            begun = time.monotonic()
            there = leads_to("127.0.0.9", "127.0.0.1")
            dialled = await dial(
                plan(), "a.example", port, tls=False, alpn=(), published=True, resolver=there
            )
            dialled.sock.close()
            assert dial_module.STAGGER_SECONDS - 0.05 <= time.monotonic() - begun < 3

    asyncio.run(run())


def test_every_answer_is_tried_in_turns_of_the_families() -> None:
    assert dial_module._interleaved(
        ["2001:db8::1", "2001:db8::2", "198.51.100.1", "198.51.100.2", "192.0.2.3"]
    ) == [
        "2001:db8::1",
        "198.51.100.1",
        "2001:db8::2",
        "198.51.100.2",
        "192.0.2.3",
    ]


def test_a_name_whose_resolver_hangs_is_given_up_in_time() -> None:
    async def hangs(_host: str, _port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return ()

    error = failed(dial(plan(seconds=0.2), "a.example", 9, tls=False, alpn=(), resolver=hangs))
    assert error.kind == "timed-out"
    assert "0.2 s" in error.message


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EHOSTUNREACH, "unreachable"),
        (errno.ENETUNREACH, "unreachable"),
        (errno.ETIMEDOUT, "timed-out"),
        (errno.ECONNRESET, "refused"),
        (errno.EACCES, "unreachable"),
    ],
)
def test_each_failure_of_the_network_has_its_kind(code: int, kind: str) -> None:
    assert dial_module._unreached("a.example", 9, [OSError(code, "")]).kind == kind
