"""Redacted at the boundary: exactly the named bytes are replaced, the length is right, or nothing leaves."""

import asyncio
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from tests.fakes.gate import FakeGate
from tests.fakes.net_front import Wire, World, a_world
from tests.integration.test_net_http2_front import PROBED, curl, echo_h2, serve_h2
from tests.unit.test_net_parked import head, park, spool

from interlock.boundary.net.gate import Passage, Passed
from interlock.boundary.net.parked import load, send_parked
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.redacting import NotRedacted, redacted_parked, redacted_request
from interlock.model.errors import IntegrityError
from interlock.model.redactions import BODY, QUERY, Cut, Redaction, cut_of, with_cuts
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.runtime.sending import Sender

BODY_TEXT = b"a secret-1 and secret-1 b"
LEFT = b"a [redacted] and secret-1 b"


def of(
    raw: bytes = BODY_TEXT, query: bytes = b"", spans: tuple[tuple[int, int], ...] = ((2, 10),)
) -> Redaction:
    cuts = tuple(cut_of(BODY, raw, start, end, "[redacted]") for start, end in spans)
    left = with_cuts(raw, cuts)
    asked = (cut_of(QUERY, query, 2, len(query), "%5Bredacted%5D"),) if query else ()
    return Redaction(
        cuts=(*asked, *cuts), body_digest=sha256(left).hexdigest() if left else "", body_size_bytes=len(left)
    )


def gate(redaction: Redaction) -> FakeGate:
    def rule(_request: NetRequest, effect_id: str) -> Passage:
        return Passed(effect_id=effect_id, redaction=redaction)

    return FakeGate(rule)


def post(world: World, target: str = "/pay", body: bytes = BODY_TEXT, more: bytes = b"") -> tuple[int, bytes]:
    wire = world.connect()
    length = b"content-length: %d\r\n" % len(body) if b"chunked" not in more else b""
    sent = b"%x\r\n%b\r\n0\r\nx-t: 1\r\n\r\n" % (len(body), body) if b"chunked" in more else body
    status, _fields, said = wire.ask(
        b"POST %b HTTP/1.1\r\nHost: far.test\r\n%b%b\r\n%b" % (target.encode(), length, more, sent)
    )
    wire.close()
    return status, said


def recorder(seen: list[tuple[str, dict[str, str], bytes]]) -> object:
    def script(wire: Wire) -> None:
        line, fields = wire.head()
        seen.append((line, fields, wire.body(fields)))
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    return script


def test_a_body_arrives_cut_and_of_the_right_length(tmp_path: Path) -> None:
    seen: list[tuple[str, dict[str, str], bytes]] = []
    with a_world(tmp_path, gate(of())) as world:
        world.serve(recorder(seen))  # type: ignore[arg-type]
        assert post(world)[0] == 200
    ((line, fields, body),) = seen
    assert (line, body, fields["content-length"]) == ("POST /pay HTTP/1.1", LEFT, str(len(LEFT)))


def test_a_body_in_chunks_and_a_query_arrive_cut(tmp_path: Path) -> None:
    seen: list[tuple[str, dict[str, str], bytes]] = []
    with a_world(tmp_path, gate(of(query=b"k=secret-1"))) as world:
        world.serve(recorder(seen))  # type: ignore[arg-type]
        wire = world.connect()
        chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY_TEXT), BODY_TEXT)
        asked = (
            b"POST /p?k=secret-1 HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked
        )
        assert wire.ask(asked)[0] == 200
        wire.close()
    ((line, _fields, body),) = seen
    assert (line, body) == ("POST /p?k=%5Bredacted%5D HTTP/1.1", LEFT)


@pytest.mark.skipif(shutil.which("curl") is None, reason="not run: no curl here")
def test_http2_carries_the_cut_body(tmp_path: Path) -> None:
    with a_world(tmp_path, gate(of()), plan=PROBED) as world:
        serve_h2(world, echo_h2)
        said = curl(world, "-w", "|%{http_version} %{http_code}", "--data-binary", BODY_TEXT.decode())
        assert said == f"/a far.test {len(LEFT)}|2 200"
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.requests[0].protocol == "h2"


OTHER = Cut(part=BODY, start=2, end=10, digest="ab" * 32, put="x")


@pytest.mark.parametrize(
    "wrong",
    [
        replace(of(), body_digest="ab" * 32),
        replace(of(), body_size_bytes=3),
        replace(of(), cuts=(OTHER,)),
        replace(of(), cuts=(replace(of().cuts[0], end=900),)),
        replace(of(), cuts=(of().cuts[0], of().cuts[0])),
        of(query=b"k=secret-1"),
    ],
)
def test_what_is_not_what_was_decided_on_never_leaves(tmp_path: Path, wrong: Redaction) -> None:
    with a_world(tmp_path, gate(wrong)) as world:
        world.serve(recorder([]))  # type: ignore[arg-type]
        status, said = post(world)
        assert status == 503
        assert b"secret" not in said
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.FAILED
        assert world.dials == []


def test_one_with_trailers_never_leaves(tmp_path: Path) -> None:
    with a_world(tmp_path, gate(of())) as world:
        world.serve(recorder([]))  # type: ignore[arg-type]
        assert post(world, more=b"transfer-encoding: chunked\r\ntrailer: x-t\r\n")[0] == 503
        assert world.dials == []


def test_the_spool_stays_the_callers(tmp_path: Path) -> None:
    plan = NetPlan(folder=str(tmp_path))
    old = spool(tmp_path, BODY_TEXT)
    made_head, made = redacted_request(head(length=len(BODY_TEXT)), old, (), of(), plan)
    assert made is not None
    assert (made_head.length, b"".join(made.chunks()), made.digest) == (
        len(LEFT),
        LEFT,
        sha256(LEFT).hexdigest(),
    )
    assert b"".join(old.chunks()) == BODY_TEXT
    with pytest.raises(NotRedacted):
        redacted_request(head(upgrade="websocket"), old, (), of(), plan)


def test_a_parked_request_is_sent_cut_and_kept_whole(tmp_path: Path) -> None:
    folder = park(tmp_path, BODY_TEXT)
    kept = redacted_parked(load(folder, "e1"), of())
    seen: list[tuple[str, dict[str, str], bytes]] = []
    with a_world(tmp_path) as world:
        world.serve(recorder(seen))  # type: ignore[arg-type]
        sending = send_parked(world.plan, kept, "key", pool=world.front.pool)
        response = asyncio.run_coroutine_threadsafe(sending, world.loop).result(10)
    assert response.outcome is Outcome.DONE
    ((_line, fields, body),) = seen
    assert (body, fields["content-length"]) == (LEFT, str(len(LEFT)))
    assert Path(load(folder, "e1").body_path).read_bytes() == BODY_TEXT


def test_a_parked_request_that_is_another_is_not_sent(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError):
        redacted_parked(load(park(tmp_path, b"another body, of another time"), "e1"), of())
    other = tmp_path / "t"
    other.mkdir()
    with pytest.raises(IntegrityError):
        redacted_parked(load(park(other, BODY_TEXT, ((b"x-t", b"2"),)), "e1"), of())


def test_an_attempt_after_one_that_was_cut_off_sends_what_was_cut(tmp_path: Path) -> None:
    """A mark says that an attempt began before the fall; the next one is by choice, and has the cuts as well."""
    park(tmp_path, BODY_TEXT)
    (tmp_path / "parked" / "e1.began").touch()
    seen: list[tuple[str, dict[str, str], bytes]] = []
    request = NetRequest(method="POST", scheme="http", host="far.test", port=80, path="/pay")
    with a_world(tmp_path) as world:
        world.serve(recorder(seen))  # type: ignore[arg-type]
        sender = Sender(replace(world.plan, folder=str(tmp_path)), lambda _request: False)
        sender.pool = world.front.pool

        def send(attempt: int, redaction: Redaction) -> NetResponse:
            sending = sender.send("e1", request, attempt, redaction)
            return asyncio.run_coroutine_threadsafe(sending, world.loop).result(10)

        assert send(1, of()).outcome is Outcome.UNKNOWN
        assert send(2, of()).outcome is Outcome.DONE
        wrong = send(3, replace(of(), body_digest="ab" * 32))
        assert (wrong.outcome, "not sent" in wrong.detail) == (Outcome.FAILED, True)
    assert [body for _line, _fields, body in seen] == [LEFT]
    assert not (tmp_path / "parked" / "e1.began.3").exists()
