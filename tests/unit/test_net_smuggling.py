"""No message passes with another meaning: the smuggling corpus through the whole proxy, and random mutations of requests.

What must hold of a message: it is refused, the connection with it, and no far side sees a byte; or the far side sees
requests that independent strict readers read in one way, which is what the gate was asked about.
"""

import asyncio
from collections.abc import Awaitable, Callable
from collections.abc import Sequence as AnySequence
from typing import Protocol, TypeVar

import h11
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.boundary.smuggling import frames
from tests.boundary.smuggling.corpus import Case, Expected, load
from tests.boundary.smuggling.frames import read as read_frames
from tests.boundary.smuggling.proxy import FIRST_S, Carried, Heard, World, with_reset
from tests.boundary.smuggling.readers import Read, agrees, read_all, read_answers, read_one
from tests.boundary.smuggling.sequences import SEQUENCES, Sequence

from interlock.model.requests import NetRequest, Outcome

REQUESTS = load("framing.txt") + load("lines.txt") + load("targets.txt")
ANSWERS = load("answers.txt")
REFUSALS = (400, 403, 405, 408, 411, 413, 414, 417, 421, 431, 501, 505)


def held(case: Case, heard: Heard, world: World) -> list[Read]:
    """Check what holds of every message. Returns: what the far sides read."""
    reads: list[Read] = []
    asked = list(world.witness.requests)
    for carried in world.carried:
        for read in requests_on(bytes(carried.raw)):
            agrees(read, asked[len(reads)], carried.place)
            reads.append(read)
    left = dict(world.witness.ends)
    for at, request in enumerate(asked):
        if at >= len(reads):
            assert left[f"e{at + 1}"].outcome is Outcome.FAILED, request
    assert all(b"smuggled" not in read.target for read in reads)
    assert all("smuggled" not in request.path for request in asked)
    for name in case.without:
        assert all(name.encode() not in dict(read.fields) for read in reads)
        assert all(name not in dict(request.headers) for request in asked)
    return reads


def requests_on(raw: bytes) -> list[Read]:
    """Return what a far side read; it never said that it speaks HTTP/2, so it got nothing of a request in that."""
    if not raw.startswith(frames.PREFACE):
        return read_all(raw)
    at = len(frames.PREFACE)
    while at < len(raw):
        assert raw[at + 3] in (4, 7, 8), raw[at:]  # SETTINGS, GOAWAY, WINDOW_UPDATE
        at += 9 + int.from_bytes(raw[at : at + 3], "big")
    assert at == len(raw)
    return []


def meant(read: Read, expected: Expected) -> None:
    assert read.method == expected.method.encode()
    assert read.target == expected.target.encode()
    assert read.host == expected.host.encode()
    assert read.body == expected.body


def refused(heard: Heard, rest: bytes, status: int) -> None:
    assert heard.closed, f"the connection stays open: {heard.raw[:200]!r}"
    found = int(rest.split(b" ", 2)[1]) if rest.startswith(b"HTTP/1.") else 0
    assert found in ((status,) if status else (0, *REFUSALS)), rest[:300]
    if found:
        read_answers(rest, (b"GET",), ended=True)


def after(raw: bytes, answers: int) -> bytes:
    """Return what came behind the first answers of the far side, each of which ends in `ok`, none for HEAD."""
    at = 0
    for _ in range(answers):
        at = raw.index(b"\r\n\r\n", at) + 4
        while raw[at:].startswith(b"HTTP/1.1 100"):
            at = raw.index(b"\r\n\r\n", at) + 4
        at += 2 if raw[at : at + 2] == b"ok" else 0
    return raw[at:]


async def through(case: Case, piece: int = 0) -> None:
    async with World() as world:
        word = case.expected[-1].word
        heard = await world.speak(
            case.raw,
            case.place,
            piece=piece,
            ends=word in ("refuse", "cut"),
            may_end=word == "either",
            first_s=0.4 if word == "nothing" else FIRST_S,
        )
        reads = held(case, heard, world)
        rest = heard.raw
        passed = [one for one in case.expected if one.word in ("pass", "either")]
        either = passed and passed[0].word == "either" and not reads
        if not either:
            assert len(reads) == len(passed), [(read.method, read.target) for read in reads]
            for read, expected in zip(reads, passed, strict=True):
                meant(read, expected)
            finals = rest.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
            assert finals.count(b"HTTP/1.1 200 OK") == len(passed)
            rest = after(finals, len(passed))
        last = case.expected[-1]
        if either:
            refused(heard, rest, 0)
        elif last.word == "refuse":
            refused(heard, rest, last.status)
        elif last.word == "failed":
            assert heard.status == last.status
        elif last.word == "cut":
            assert heard.closed
            assert not world.witness.requests
        elif last.word == "nothing":
            assert not heard.raw
            assert not world.witness.requests
        else:
            assert rest == b"", rest


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


async def every(cases: AnySequence[T], check: Callable[[T], Awaitable[None]]) -> dict[str, str]:
    """Run many at once. Returns: what did not hold, by name."""
    found = await asyncio.gather(*[check(case) for case in cases], return_exceptions=True)
    return {
        case.name: f"{type(error).__name__}: {error}"
        for case, error in zip(cases, found, strict=True)
        if error is not None
    }


@pytest.fixture(scope="module")
def faults() -> dict[str, str]:
    found: dict[str, str] = {}
    for at in range(0, len(REQUESTS), 24):
        found |= asyncio.run(every(REQUESTS[at : at + 24], through))
    return found


@pytest.mark.parametrize("name", [case.name for case in REQUESTS])
def test_a_request_is_refused_or_has_one_meaning(name: str, faults: dict[str, str]) -> None:
    assert faults.get(name) is None


# what a far side answers


class Far:
    """A far side that says a case's bytes once, on the first connection, and `second` to all else."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._first = True

    async def __call__(
        self, carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        said, self._first = not self._first, False
        while data := await reader.read(65536):
            carried.raw += data
            if not carried.raw.endswith((b"\r\n\r\n", b"whole body")):
                continue
            if said:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecond")
                continue
            said = True
            writer.write(self._case.raw)
            await writer.drain()
            if self._case.reset:
                await asyncio.sleep(0.02)
                with_reset(writer)
                return
            if not self._case.stays:
                return


async def answered(case: Case) -> None:
    async with World(Far(case)) as world:
        body = b"content-length: 14\r\n\r\nthe whole body" if case.method == "POST" else b"\r\n"
        first = b"%b / HTTP/1.1\r\nhost: target.test\r\n%b" % (case.method.encode(), body)
        second = b"GET /second HTTP/1.1\r\nhost: target.test\r\n\r\n"
        heard = await world.speak(first, then=second)
        raw = heard.raw + heard.later
        assert b"smuggled" not in raw
        assert b"set-cookie" not in raw.lower()
        assert b"alt-svc" not in raw.lower()
        expected = case.expected[0]
        methods = (case.method.encode(), b"GET")
        assert len(world.witness.ends) == len(world.witness.requests)
        if expected.word == "broken":
            assert heard.closed
            assert raw.count(b"HTTP/1.1") <= 1
            if raw:
                with pytest.raises((AssertionError, h11.RemoteProtocolError)):
                    read_answers(raw, methods, ended=not heard.reset)
            assert world.witness.ends[0][1].outcome is Outcome.UNKNOWN
            return
        found = read_answers(raw, methods, ended=True)
        if expected.word == "refuse" or (expected.word == "either" and found[0][0] == 502):
            assert found[0][0] == 502
            assert world.witness.ends[0][1].outcome is not Outcome.DONE
        else:
            assert found[0] == (expected.status, expected.body)
            assert world.witness.ends[0][1].outcome is Outcome.DONE
        if len(found) > 1 or not heard.closed:
            assert found[1] == (200, b"second")


@pytest.fixture(scope="module")
def wrong_answers() -> dict[str, str]:
    found: dict[str, str] = {}
    for at in range(0, len(ANSWERS), 24):
        found |= asyncio.run(every(ANSWERS[at : at + 24], answered))
    return found


@pytest.mark.parametrize("name", [case.name for case in ANSWERS])
def test_an_answer_is_refused_or_has_one_meaning(name: str, wrong_answers: dict[str, str]) -> None:
    assert wrong_answers.get(name) is None


# HTTP/2


async def framed(case: Sequence) -> None:
    async with World() as world:
        heard = await world.speak(case.raw)
        told = read_frames(heard.raw + heard.later)
        reads: list[Read] = []
        asked = {(request.method, request.path): request for request in world.witness.requests}
        for carried in world.carried:
            for read in requests_on(bytes(carried.raw)):
                agrees(
                    read, asked[read.method.decode(), read.target.decode().partition("?")[0]], carried.place
                )
                reads.append(read)
        assert all(b"smuggled" not in read.target for read in reads)
        assert all(b"smuggled" not in value for read in reads for _, value in read.fields)
        assert all(name.encode() not in dict(read.fields) for name in case.without for read in reads)
        found = sorted((read.method, read.target, read.host, read.body) for read in reads)
        wanted = sorted(
            (method.encode(), target.encode(), host.encode(), body)
            for method, target, host, body in case.passes
        )
        assert found == wanted or (case.optional and not found)
        if len(found) < len(case.passes) or not case.passes:
            for _ in range(
                100
            ):  # what was being dialled for is told when it is known that nobody waits for it
                if len(world.witness.requests) == len(world.witness.ends):
                    break
                await asyncio.sleep(0.01)
            assert len(world.witness.requests) == len(world.witness.ends)
            silent = case.name in SILENT
            refusal = told.goaway or told.resets or {400, 405, 417, 421, 431} & set(told.statuses.values())
            assert refusal or silent or heard.closed
        else:
            assert sum(status == 200 for status in told.statuses.values()) == len(found)


SILENT = ("continuation-never", "cut-body", "reset-body", "data-after-reset")
"""Sequences that only wait, or end themselves."""


@pytest.fixture(scope="module")
def wrong_sequences() -> dict[str, str]:
    found: dict[str, str] = {}
    for at in range(0, len(SEQUENCES), 24):
        found |= asyncio.run(every(SEQUENCES[at : at + 24], framed))
    return found


@pytest.mark.parametrize("name", [case.name for case in SEQUENCES])
def test_an_http2_sequence_is_refused_or_has_one_meaning(name: str, wrong_sequences: dict[str, str]) -> None:
    assert wrong_sequences.get(name) is None


# within TLS


FRONTED = {
    "host": b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "port": b"GET / HTTP/1.1\r\nHost: target.test:8443\r\n\r\n",
    "absolute": b"GET https://evil.test/ HTTP/1.1\r\nHost: target.test\r\n\r\n",
    "absolute plain": b"GET http://target.test/ HTTP/1.1\r\nHost: target.test\r\n\r\n",
    "connect": b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: target.test\r\nHost: evil.test\r\n\r\n",
    "http2": frames.opening(frames.head(1, frames.get(scheme="https", authority="evil.test"))),
    "http2 host": frames.opening(frames.head(1, frames.get("/", ("host", "evil.test"), scheme="https"))),
    "http2 scheme": frames.opening(frames.head(1, frames.get(scheme="http"))),
}


@pytest.mark.parametrize("name", FRONTED)
def test_within_tls_no_request_names_another_host_than_the_handshake(name: str) -> None:
    raw = FRONTED[name]

    async def check() -> None:
        async with World() as world:
            reader, writer = await world.secure("h2" if name.startswith("http2") else "http/1.1")
            writer.write(raw)
            came = b""
            while some := await asyncio.wait_for(reader.read(65536), 5):
                came += some
                if name.startswith("http2") and (told := read_frames(came)).statuses:
                    assert set(told.statuses.values()) <= {400, 421}
                    break
            writer.transport.abort()
            if not name.startswith("http2"):
                assert int(came.split(b" ")[1]) in (400, 405, 421)
            assert not world.witness.requests
            assert not world.carried

    asyncio.run(check())


# random mutations


SEEDS = [
    b"GET /a/b?c=d HTTP/1.1\r\nHost: target.test\r\nAccept: */*\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: target.test\r\nContent-Length: 11\r\n\r\nhello world",
    b"POST /a HTTP/1.1\r\nHost: target.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nA: b\r\n\r\n",
    b"GET http://target.test/./x HTTP/1.1\r\nHost: target.test:80\r\nConnection: keep-alive, x-a\r\nX-A: 1\r\n\r\n",
    b"PUT /1 HTTP/1.1\r\nHost: target.test\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\nHost: target.test\r\n\r\n",
]
PIECES = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b"\x0b", b":", b",", b";", b"0", b"1", b"-", b"+", b"0x", b"\xe9", b"/", b"\\", b"..",
    b"%2e", b"%00", b"#", b"@", b"?", b"Content-Length: 3\r\n", b"Content-Length: 30\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity\r\n", b"Host: evil.test\r\n", b"0\r\n\r\n", b"\r\n\r\n", b"GET /smuggle HTTP/1.1\r\nHost: target.test\r\n\r\n",
    b"HTTP/1.1", b"HTTP/1.0", b"chunked", b"Connection: close\r\n", b"Connection: content-length\r\n", b"Expect: 100-continue\r\n",
    b"Upgrade: websocket\r\n", b"evil.test", b"http://evil.test",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    raw = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(raw)))
        match draw(st.sampled_from(("insert", "replace", "delete", "copy", "byte"))):
            case "insert":
                raw = raw[:at] + draw(st.sampled_from(PIECES)) + raw[at:]
            case "replace":
                piece = draw(st.sampled_from(PIECES))
                raw = raw[:at] + piece + raw[at + len(piece) :]
            case "delete":
                raw = raw[:at] + raw[at + draw(st.integers(1, 6)) :]
            case "copy":
                lines = raw.split(b"\r\n")
                line = draw(st.sampled_from(lines))
                raw = b"\r\n".join([*lines[:1], line, *lines[1:]])
            case _:
                raw = raw[:at] + bytes((draw(st.integers(0, 255)),)) + raw[at + 1 :]
    return raw


async def any_of(raws: list[bytes]) -> None:
    """Send mutated requests, each on a connection of its own; whatever passes is what the gate was asked."""
    async with World() as world:
        heard = await asyncio.gather(*[world.speak(raw, first_s=0.4) for raw in raws])
        asked = {f"e{at + 1}": request for at, request in enumerate(world.witness.requests)}
        for effect_id, response in world.witness.ends:
            if response.outcome is Outcome.FAILED:
                del asked[effect_id]
        left = list(asked.values())
        for carried in world.carried:
            for read in read_all(bytes(carried.raw)):
                request = next(one for one in left if same(read, one, carried.place))
                left.remove(request)
        assert not left, left
        for one in heard:
            read_some(one.raw + one.later)


def same(read: Read, request: NetRequest, place: str) -> bool:
    try:
        agrees(read, request, place)
    except AssertionError:
        return False
    return True


def read_some(raw: bytes) -> None:
    """Check that what the agent got is a row of whole answers."""
    while raw:
        (_, rest) = read_one(raw)
        raw = rest


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(mutated(), min_size=8, max_size=8))
def test_whatever_passes_of_random_mutations_is_what_the_gate_was_asked(raws: list[bytes]) -> None:
    asyncio.run(any_of(raws))


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(REQUESTS) + len(ANSWERS) >= 80
    assert len(SEQUENCES) >= 25
    assert len({case.name for case in SEQUENCES}) == len(SEQUENCES)
