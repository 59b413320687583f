"""HTTP as the standards have it, through the whole proxy: HTTP/1 wire vectors, and HTTP/2 by the sections of RFC 9113."""

import asyncio

import pytest
from tests.boundary.smuggling.conformance2 import RULES, Rule
from tests.boundary.smuggling.frames import data, get, head, opening, read, settings, window
from tests.boundary.smuggling.proxy import Carried, World, saying
from tests.boundary.smuggling.readers import read_all, read_answers

HOST = b"host: target.test\r\n"

# HTTP/1, requests

WHOLE = {
    "no body": b"GET /a?b HTTP/1.1\r\nHost: target.test\r\nAccept: x\r\n\r\n",
    "counted": b"POST /a HTTP/1.1\r\nHost: target.test\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"POST /a HTTP/1.1\r\nHost: target.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
    "two": b"PUT /a HTTP/1.1\r\nHost: target.test\r\nContent-Length: 2\r\n\r\nhiGET /b HTTP/1.1\r\nHost: target.test\r\n\r\n",
    "expecting": b"POST /a HTTP/1.1\r\nHost: target.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_request_reads_the_same_however_it_is_cut(name: str) -> None:
    async def check() -> None:
        found = set()
        for piece in (0, 1, 2, 3, 5, 17):
            async with World() as world:
                heard = await world.speak(WHOLE[name], piece=piece)
                assert b" 400 " not in heard.raw
                found.add(world.raw)
                assert len(read_all(world.raw)) == (2 if name == "two" else 1)
        assert len(found) == 1

    asyncio.run(check())


PERSISTENCE = [
    (b"1.1", b"", True),
    (b"1.1", b"connection: close\r\n", False),
    (b"1.1", b"connection: Close\r\n", False),
    (b"1.1", b"connection: keep-alive\r\n", True),
    (b"1.1", b"connection: keep-alive, close\r\n", False),
    (b"1.1", b"connection: x\r\nconnection: close\r\n", False),
    (b"1.0", b"", False),
    (b"1.0", b"connection: keep-alive\r\n", True),
    (b"1.0", b"connection: Keep-Alive\r\n", True),
    (b"1.0", b"connection: keep-alive, close\r\n", False),
]


@pytest.mark.parametrize(("version", "fields", "stays"), PERSISTENCE)
def test_a_connection_persists_as_its_version_and_fields_say(
    version: bytes, fields: bytes, stays: bool
) -> None:
    async def check() -> None:
        async with World() as world:
            heard = await world.speak(b"GET / HTTP/%b\r\n%b%b\r\n" % (version, HOST, fields))
            assert heard.raw.endswith(b"ok")
            assert heard.closed is not stays
            assert (b"connection: close" in heard.raw) is not stays

    asyncio.run(check())


# HTTP/1, answers: what a far side says, and what an agent must then read

COUNTED = b"HTTP/1.1 %b\r\ncontent-length: 3\r\n\r\nabc"
CHUNKS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n2;x\r\nbc\r\n0\r\nx: y\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nabc"
ANSWERS: list[tuple[bytes, bytes, bytes, int, bytes, bytes, bytes]] = [
    # version, method, what the far side says, status, body, what must stand in the head, what must not
    (b"1.1", b"GET", COUNTED % b"200 OK", 200, b"abc", b"content-length: 3", b"transfer-encoding"),
    (b"1.1", b"GET", COUNTED % b"404 Not Found", 404, b"abc", b"content-length: 3", b"transfer-encoding"),
    (b"1.1", b"GET", COUNTED % b"599 x", 599, b"abc", b"content-length: 3", b"transfer-encoding"),
    (b"1.1", b"GET", CHUNKS, 200, b"abc", b"transfer-encoding: chunked", b"content-length"),
    (b"1.1", b"GET", UNTIL_CLOSE, 200, b"abc", b"transfer-encoding: chunked", b"content-length"),
    (b"1.1", b"GET", b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", b"204", b"transfer-encoding"),
    (b"1.1", b"GET", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\n", 304, b"", b"content-length: 3", b"transfer-encoding"),
    (b"1.1", b"GET", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, b"", b"content-length: 0", b"transfer-encoding"),
    (b"1.1", b"HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", 200, b"", b"content-length: 3", b"transfer-encoding"),
    (b"1.1", b"HEAD", b"HTTP/1.1 200 OK\r\n\r\n", 200, b"", b"200", b"content-length: 0"),
    (b"1.1", b"HEAD", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", 200, b"", b"200", b"content-length: 0"),
    (b"1.1", b"POST", COUNTED % b"201 Created", 201, b"abc", b"content-length: 3", b"transfer-encoding"),
    (b"1.0", b"GET", COUNTED % b"200 OK", 200, b"abc", b"content-length: 3", b"transfer-encoding"),
    (b"1.0", b"GET", CHUNKS, 200, b"abc", b"connection: close", b"transfer-encoding"),
    (b"1.0", b"GET", UNTIL_CLOSE, 200, b"abc", b"connection: close", b"transfer-encoding"),
    (b"1.0", b"HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", 200, b"", b"content-length: 3", b"transfer-encoding"),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(ANSWERS)))
@pytest.mark.parametrize("cut", [0, 1])
def test_an_answer_keeps_its_meaning_in_the_frame_that_the_client_knows(row: int, cut: int) -> None:
    version, method, said, status, body, has, lacks = ANSWERS[row]
    parts = [said[at : at + 1] for at in range(len(said))] if cut else [said]

    async def check() -> None:
        async with World(saying(*parts)) as world:
            heard = await world.speak(
                b"%b / HTTP/%b\r\n%bcontent-length: 0\r\n\r\n" % (method, version, HOST)
            )
            assert read_answers(heard.raw, (method,), ended=True) == [(status, body)]
            top = heard.raw.partition(b"\r\n\r\n")[0]
            assert top.startswith(b"HTTP/1.1 ")
            assert has in top
            assert lacks not in top

    asyncio.run(check())


def test_a_client_that_waits_for_100_gets_it_before_its_body_is_read() -> None:
    async def check() -> None:
        async with World() as world:
            sock = world.connect()
            loop = world.front.loop
            await loop.sock_sendall(
                sock, b"POST / HTTP/1.1\r\n%bexpect: 100-continue\r\ncontent-length: 3\r\n\r\n" % HOST
            )
            assert await loop.sock_recv(sock, 1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert not world.witness.requests
            await loop.sock_sendall(sock, b"abc")
            assert (await loop.sock_recv(sock, 1000)).endswith(b"ok")
            assert read_all(world.raw)[0].body == b"abc"
            sock.close()

    asyncio.run(check())


def test_interim_answers_go_on_to_a_client_that_knows_them() -> None:
    said = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + COUNTED % b"200 OK"

    async def check(version: bytes) -> bytes:
        async with World(saying(said)) as world:
            return (await world.speak(b"GET / HTTP/%b\r\n%b\r\n" % (version, HOST))).raw

    assert asyncio.run(check(b"1.1")).startswith(b"HTTP/1.1 103 ")
    assert asyncio.run(check(b"1.0")).startswith(b"HTTP/1.1 200 ")


def test_far_connections_are_used_again_only_after_answers_that_allow_it() -> None:
    async def check(field: bytes) -> int:
        said = b"HTTP/1.1 200 OK\r\n%bcontent-length: 2\r\n\r\nok" % field

        async def answers(
            carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            while chunk := await reader.read(65536):
                carried.raw += chunk
                writer.write(said)

        async with World(answers) as world:
            request = b"GET / HTTP/1.1\r\n%b\r\n" % HOST
            heard = await world.speak(request, then=request)
            assert heard.raw.count(b"200 OK") == 2
            return len(world.carried)

    assert asyncio.run(check(b"")) == 1
    assert asyncio.run(check(b"connection: keep-alive\r\n")) == 1
    assert asyncio.run(check(b"connection: close\r\n")) == 2


# HTTP/2


async def follows(rule: Rule) -> None:
    async with World() as world:
        heard = await world.speak(rule.raw)
        told = read(heard.raw + heard.later)
        assert told.largest <= 16384
        if rule.answers:
            assert told.goaway in (None, 0)
            assert {number: told.statuses.get(number) for number in rule.answers} == dict.fromkeys(
                rule.answers, 200
            )
            assert told.acks >= 1
            assert set(rule.pongs) <= set(told.pongs)
            return
        refused = 400 <= told.statuses.get(rule.number, 0) < 500
        if rule.stream and (told.resets.get(rule.number) in rule.stream or refused):
            return
        assert told.goaway in rule.connection, told
        assert heard.closed


async def all_follow() -> list[str]:
    found: list[str] = []
    for at in range(0, len(RULES), 16):
        part = RULES[at : at + 16]
        errors = await asyncio.gather(*[follows(rule) for rule in part], return_exceptions=True)
        found += ["" if error is None else f"{type(error).__name__}: {error}" for error in errors]
    return found


@pytest.fixture(scope="module")
def broken_rules() -> list[str]:
    return asyncio.run(all_follow())


@pytest.mark.parametrize("at", range(len(RULES)), ids=[f"{rule.section} {rule.says}" for rule in RULES])
def test_http2_follows_the_rule(at: int, broken_rules: list[str]) -> None:
    assert broken_rules[at] == ""


def test_http2_answers_wait_for_the_clients_window() -> None:
    """RFC 9113 §6.9: no byte of DATA beyond the window, and the rest as it opens."""

    async def check() -> None:
        async with World() as world:
            sock = world.connect()
            loop = world.front.loop
            raw = bytearray()

            async def until(size: int) -> None:
                while len(read(bytes(raw)).bodies.get(1, b"")) < size:
                    raw.extend(await asyncio.wait_for(loop.sock_recv(sock, 65536), 5))

            await loop.sock_sendall(sock, opening(settings((4, 1)), head(1, get())))
            await until(1)
            await asyncio.sleep(0.05)
            assert read(bytes(raw)).bodies[1] == b"o"
            await loop.sock_sendall(
                sock, settings((4, 0)) + window(1, 1)
            )  # the window is now nothing: 1 - 1 - 1 + 1
            await asyncio.sleep(0.05)
            assert read(bytes(raw)).bodies[1] == b"o"
            await loop.sock_sendall(sock, window(1, 1))
            await until(2)
            assert read(bytes(raw)).bodies[1] == b"ok"
            sock.close()

    asyncio.run(check())


def test_http2_gives_its_window_back_for_what_it_took() -> None:
    """RFC 9113 §6.9: a body larger than every window arrives whole."""

    async def check() -> None:
        async with World() as world:
            sock = world.connect()
            loop = world.front.loop
            block = bytes(16384)
            total = 12 * 1024 * 1024 // len(block)
            await loop.sock_sendall(sock, opening(head(1, get(method="POST"), end=False)))
            raw = bytearray()
            room, stream_room = 65535, 65535

            async def more() -> None:
                nonlocal room, stream_room
                raw.extend(await asyncio.wait_for(loop.sock_recv(sock, 65536), 10))
                at = 0
                while len(raw) - at >= 9 and len(raw) - at >= 9 + int.from_bytes(raw[at : at + 3], "big"):
                    size = int.from_bytes(raw[at : at + 3], "big")
                    payload = raw[at + 9 : at + 9 + size]
                    number = int.from_bytes(raw[at + 5 : at + 9], "big")
                    if raw[at + 3] == 8 and number == 0:
                        room += int.from_bytes(payload, "big")
                    elif raw[at + 3] == 8:
                        stream_room += int.from_bytes(payload, "big")
                    elif raw[at + 3] == 4 and not raw[at + 4] & 1:
                        for pair in range(0, size, 6):
                            if payload[pair : pair + 2] == b"\0\4":
                                stream_room += int.from_bytes(payload[pair + 2 : pair + 6], "big") - 65535
                    at += 9 + size
                del raw[:at]

            for sent in range(total):
                while min(room, stream_room) < len(block):
                    await more()
                room -= len(block)
                stream_room -= len(block)
                await loop.sock_sendall(sock, data(1, block, end=sent == total - 1))
            while not world.witness.ends:
                await asyncio.sleep(0.01)
            assert world.witness.requests[0].body_size_bytes == total * len(block)
            sock.close()

    asyncio.run(check())


def test_there_are_as_many_http2_rules_as_promised() -> None:
    assert len(RULES) >= 40
