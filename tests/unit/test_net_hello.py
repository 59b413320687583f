"""A TLS client's first message, whole, in parts, and broken."""

import contextlib
import random
import ssl
import struct
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.boundary.net.hello import MAX_HELLO_BYTES, Hello, HelloError, read_hello


def made_by_library(name: str | None, *alpn: str, newest: bool = True) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if not newest:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if alpn:
        context.set_alpn_protocols(list(alpn))
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def extension(kind: int, body: bytes) -> bytes:
    return struct.pack("!HH", kind, len(body)) + body


def server_name(*names: bytes, kind: int = 0) -> bytes:
    listed = b"".join(bytes((kind,)) + struct.pack("!H", len(name)) + name for name in names)
    return extension(0, struct.pack("!H", len(listed)) + listed)


def protocols(*names: bytes) -> bytes:
    listed = b"".join(bytes((len(name),)) + name for name in names)
    return extension(16, struct.pack("!H", len(listed)) + listed)


def message(extensions: bytes | None, *, version: int = 0x0303, tail: bytes = b"") -> bytes:
    body = struct.pack("!H", version) + bytes(32) + b"\0" + b"\0\4\x13\x01\xca\xca" + b"\1\0"
    if extensions is not None:
        body += struct.pack("!H", len(extensions)) + extensions
    body += tail
    return b"\1" + len(body).to_bytes(3, "big") + body


def records(handshake: bytes, size: int = 16384, *, kind: int = 22, version: int = 0x0301) -> bytes:
    parts = [handshake[at : at + size] for at in range(0, len(handshake), size)]
    return b"".join(struct.pack("!BHH", kind, version, len(part)) + part for part in parts)


@pytest.mark.parametrize("newest", [True, False])
def test_a_real_hello_is_read_at_every_split_point(newest: bool) -> None:
    data = made_by_library("Example.COM", "h2", "http/1.1", newest=newest)
    for end in range(len(data)):
        assert read_hello(data[:end]) is None, end
    wanted = Hello(sni="example.com", alpn=("h2", "http/1.1"))
    assert read_hello(data) == wanted
    assert read_hello(data + records(b"\x01early", kind=23)) == wanted


def test_a_hello_without_a_name_or_to_an_address_has_none() -> None:
    assert read_hello(made_by_library(None)) == Hello(sni="", alpn=())
    assert read_hello(made_by_library("192.0.2.7")) == Hello(sni="", alpn=())
    assert read_hello(records(message(None))) == Hello(sni="", alpn=())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 50, 100])
def test_a_hello_may_come_in_many_records(size: int) -> None:
    data = records(message(server_name(b"a.example") + protocols(b"h2")), size)
    assert all(read_hello(data[:end]) is None for end in range(len(data)))
    assert read_hello(data) == Hello(sni="a.example", alpn=("h2",))


def test_grease_and_encrypted_hellos_are_passed_over() -> None:
    extensions = (
        extension(0x0A0A, b"")
        + server_name(b"outer.example")
        + extension(0xFE0D, b"\0" * 64)
        + protocols(b"\x0a\x0a", b"h2")
        + extension(0xFAFA, b"\0")
    )
    assert read_hello(records(message(extensions))) == Hello(sni="outer.example", alpn=("\n\n", "h2"))


@pytest.mark.parametrize(
    "name",
    [
        b"192.0.2.7",
        b"2001:db8::1",
        b"[2001:db8::1]",
        b"127.1",
        b"0x7f000001",
        b"2130706433",
        b"a.example\0.evil.example",
        b"a..example",
        b".example",
        b"",
        b".",
        b"a.example..",
        b"ex\xc3\xa4mple.example",
        b"ex ample.example",
        b"*.example",
        b"a/b.example",
        b"a:443",
        b"user@a.example",
        b"-a.example",
        b"x" * 64 + b".example",
        b"a." * 127 + b"example",
        b"xn--a.example",
    ],
)
def test_a_name_that_is_no_host_name_is_refused(name: bytes) -> None:
    with pytest.raises(HelloError):
        read_hello(records(message(server_name(name))))


def test_a_name_is_made_canonical() -> None:
    assert read_hello(records(message(server_name(b"WWW.Xn--MNCHEN-3YA.Example.")))) == Hello(
        sni="www.xn--mnchen-3ya.example", alpn=()
    )


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("http", b"GET / HTTP/1.1\r\n"),
        ("ssh", b"SSH-2.0-x\r\n"),
        ("an old hello", b"\x80\x2e\x01\x00\x02"),
        ("an alert", records(b"\x02\x28", kind=21)),
        ("an odd version", records(message(None), version=0x0201)),
        ("an empty record", records(message(None))[:5][:3] + b"\0\0"),
        ("a long record", b"\x16\x03\x01\x40\x01"),
        ("another message", records(b"\x02" + message(None)[1:])),
        ("too long", records(b"\1" + (MAX_HELLO_BYTES + 1).to_bytes(3, "big"))),
        ("one extension twice", records(message(extension(5, b"") + extension(5, b"")))),
        ("two server names", records(message(server_name(b"a.example", b"b.example")))),
        (
            "two server name extensions",
            records(message(server_name(b"a.example") + server_name(b"b.example"))),
        ),
        ("another kind of name", records(message(server_name(b"a.example", kind=1)))),
        ("an empty list of names", records(message(extension(0, b"\0\0")))),
        ("an empty server name extension", records(message(extension(0, b"")))),
        ("an empty list of protocols", records(message(extension(16, b"\0\0")))),
        ("a protocol without a name", records(message(protocols(b"h2", b"")))),
        ("bytes after the extensions", records(message(b"", tail=b"x"))),
        ("bytes after the hello", records(message(b"") + b"x")),
        ("an extension that is too long", records(message(struct.pack("!HH", 5, 9) + b"x"))),
        ("version 4", records(message(b"", version=0x0403))),
    ],
)
def test_what_cannot_be_read_in_one_way_is_refused(what: str, data: bytes) -> None:
    with pytest.raises(HelloError):
        read_hello(data)


@given(st.binary(max_size=400))
def test_random_bytes_never_crash_it(data: bytes) -> None:
    with contextlib.suppress(HelloError):
        assert read_hello(data) is None


_REAL = made_by_library("example.com", "h2")


@settings(max_examples=300)
@given(st.integers(0, len(_REAL) - 1), st.integers(0, 255), st.integers(0, len(_REAL)))
def test_a_changed_hello_never_crashes_it(at: int, byte: int, end: int) -> None:
    data = _REAL[:at] + bytes((byte,)) + _REAL[at + 1 :]
    try:
        whole = read_hello(data)
        part = read_hello(data[:end])
    except HelloError:
        return
    assert part is None or part == whole


@given(st.lists(st.integers(1, 200), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_any_division_into_records_reads_alike(sizes: list[int], chance: random.Random) -> None:
    handshake = message(server_name(b"a.example") + protocols(b"h2", b"http/1.1") + extension(21, bytes(300)))
    data, at = b"", 0
    while at < len(handshake):
        size = chance.choice(sizes)
        data += records(handshake[at : at + size])
        at += size
    assert read_hello(data) == Hello(sni="a.example", alpn=("h2", "http/1.1"))


def test_the_library_of_another_language_is_read(tmp_path: object) -> None:
    import shutil
    import socket

    if shutil.which("curl") is None:
        pytest.skip("not run: curl is not installed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        curl = subprocess.Popen(
            [
                "curl",
                "-s",
                "--noproxy",
                "*",
                "--resolve",
                f"a.example:{port}:127.0.0.1",
                f"https://a.example:{port}/",
            ]
        )
        server.settimeout(10)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(10)
            data = b""
            while (hello := read_hello(data)) is None:
                data += connection.recv(100)
        curl.wait(10)
    assert hello.sni == "a.example"
    assert "http/1.1" in hello.alpn
