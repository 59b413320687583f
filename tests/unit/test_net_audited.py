"""An audited exchange at the boundary: what passes, what is asked again, and what becomes of it when anybody breaks off."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from tests.fakes import model_answers
from tests.fakes.gate import EXCEPTION, FakeGate, refusing
from tests.fakes.model_answers import Call, Part, Text
from tests.fakes.net_front import Wire, a_world
from tests.fakes.raw_provider import anthropic, called, said, streamed, whole

from interlock.boundary.lens.outcomes import Facts
from interlock.boundary.net.gate import Passed, Refused, Verdicts
from interlock.boundary.net.plan import NetLimits, NetPlan
from interlock.model.actions import HeldCall
from interlock.model.requests import NetResponse, Outcome

REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "stream": True,
    "messages": [{"role": "user", "content": "go on"}],
}
TEXT = anthropic(said("hello there"))
CALLS = anthropic(said("I write."), called("write", "c1", path="a"), called("write", "c2", path="b"))
MENDED = anthropic(said("I do it otherwise."))
QUICK = NetPlan(folder="", limits=NetLimits(quiet_seconds=0.05))


class AuditGate(FakeGate):
    """Audits every exchange. Takes: `refuses`, ids of calls; `waits_s`, None to decide within the call."""

    def __init__(self, *refuses: str, waits_s: float | None = None) -> None:
        super().__init__()
        self.refuses = refuses
        self.waits_s = waits_s
        self.judged: list[tuple[str, tuple[HeldCall, ...]]] = []
        self.told_before: list[int] = []
        self.heard_of: list[tuple[str, Facts]] = []
        self.cancelled = 0

    def audits(self, _effect_id: str) -> bool:
        return True

    def heard(self, effect_id: str, facts: Facts) -> None:
        assert len(self.responses) == len(self.heard_of)  # before it is told of the answer
        self.heard_of.append((effect_id, facts))

    def judge(self, effect_id: str, calls: tuple[HeldCall, ...]) -> Verdicts | Awaitable[Verdicts]:
        self.judged.append((effect_id, calls))
        self.told_before.append(len(self.responses))
        verdicts = tuple(EXCEPTION if call.call_id in self.refuses else None for call in calls)
        return verdicts if self.waits_s is None else asyncio.ensure_future(self._asked(verdicts))

    async def _asked(self, verdicts: Verdicts) -> Verdicts:
        try:
            await asyncio.sleep(self.waits_s or 0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return verdicts


class RefusingAll(AuditGate):
    """Refuses each call."""

    def judge(self, effect_id: str, calls: tuple[HeldCall, ...]) -> Verdicts | Awaitable[Verdicts]:
        self.judged.append((effect_id, calls))
        return (EXCEPTION,) * len(calls)


def post(body: bytes | None = None, *fields: str) -> bytes:
    data = json.dumps(REQUEST).encode() if body is None else body
    lines = ["POST /v1/messages HTTP/1.1", "host: far.test", f"content-length: {len(data)}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class Provider:
    """Answers each request with the next of some answers; `None` in one breaks it off."""

    def __init__(self, *answers: list[bytes | None] | Iterator[bytes]) -> None:
        self._answers = iter(answers)
        self.requests: list[tuple[dict[str, str], bytes]] = []

    def __call__(self, wire: Wire) -> None:
        while True:
            _line, fields = wire.head()
            self.requests.append((fields, wire.body(fields)))
            for part in next(self._answers):
                if part is None:
                    return
                wire.send(part)


def sse(parts: list[bytes], *, cut: int | None = None) -> list[bytes | None]:
    """Return an answer of events. Takes: `cut`, after so many parts it is broken off."""
    found: list[bytes | None] = [*streamed(parts)]
    return found if cut is None else [*found[: cut + 1], None]


def asked(
    tmp_path: Path, gate: FakeGate, *answers: list[bytes | None] | Iterator[bytes], plan: NetPlan | None = None,
    request: bytes | None = None,
) -> tuple[tuple[int, dict[str, str], bytes], Provider]:  # fmt: skip
    provider = Provider(*answers)
    with a_world(tmp_path, gate, plan) as world:
        world.serve(provider)
        answer = world.connect().ask(post() if request is None else request)
        world.eventually(lambda: len(gate.responses) == len(provider.requests))
    return answer, provider


def test_text_passes_as_it_is_and_is_asked_for_uncompressed(tmp_path: Path) -> None:
    gate = AuditGate()
    (status, fields, body), provider = asked(
        tmp_path, gate, sse(TEXT), request=post(None, "accept-encoding: gzip, br")
    )
    assert (status, fields["transfer-encoding"], body) == (200, "chunked", b"".join(TEXT))
    assert provider.requests[0][0]["accept-encoding"] == "identity"
    assert gate.judged == []


def test_text_passes_while_the_answer_goes_on(tmp_path: Path) -> None:
    gate = AuditGate()

    def slowly(wire: Wire) -> None:
        _line, fields = wire.head()
        wire.body(fields)
        for part in itertools.islice(streamed(CALLS), 5):  # head, start, block, and two of text
            wire.send(part)
        release.recv(1)

    release, done = socket.socketpair()
    with a_world(tmp_path, gate) as world:
        world.serve(slowly)
        wire = world.connect()
        wire.send(post())
        wire.until(b'"I wr')
        done.close()
        with pytest.raises((ConnectionError, EOFError)):
            wire.until(b"never")
    release.close()


def test_calls_that_are_vouched_for_pass_as_they_are(tmp_path: Path) -> None:
    gate = AuditGate()
    (status, _fields, body), _provider = asked(tmp_path, gate, sse(CALLS))
    assert (status, body) == (200, b"".join(CALLS))
    ((effect_id, calls),) = gate.judged
    assert (effect_id, [call.call_id for call in calls]) == ("e1", ["c1", "c2"])
    assert gate.told_before == [0]  # judged before the exchange is said to have ended


@pytest.mark.parametrize("waits_s", [None, 0.05])
def test_a_refused_call_is_asked_again_in_its_place(tmp_path: Path, waits_s: float | None) -> None:
    gate = AuditGate("c2", waits_s=waits_s)
    request = post(None, "idempotency-key: once", "x-api-key: k")
    (status, _fields, body), provider = asked(tmp_path, gate, sse(CALLS), sse(MENDED), request=request)
    assert status == 200
    told = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]
    assert b"tool_use" not in body
    texts = [one["delta"]["text"] for one in told if one["type"] == "content_block_delta"]
    assert "".join(texts) == "I write.I do it otherwise."
    kinds = [one["type"] for one in told]
    assert (kinds.count("message_start"), kinds.count("message_stop")) == (1, 1)
    again_fields, again = provider.requests[1]
    assert "idempotency-key" not in again_fields
    assert [(one, facts.completion_tokens, facts.whole) for one, facts in gate.heard_of] == [
        ("e1", 5, True),
        ("e2", 5, True),
    ]
    results = json.loads(again)["messages"][-1]["content"]
    assert [one["tool_use_id"] for one in results] == ["c1", "c2"]
    assert [one[0] for one in gate.responses] == ["e1", "e2"]
    assert [one.body_digest != "" for one in gate.requests] == [True, True]


def test_corrections_that_are_spent_end_with_a_text(tmp_path: Path) -> None:
    gate = AuditGate("c1", "c2")
    (status, _fields, body), provider = asked(tmp_path, gate, sse(CALLS), sse(CALLS))
    assert (status, len(provider.requests)) == (200, 2)
    assert b"the host is not allowed" in body
    assert b"tool_use" not in body


def test_a_policy_without_corrections_asks_nothing_again(tmp_path: Path) -> None:
    gate = AuditGate("c1")
    (_status, _fields, body), provider = asked(
        tmp_path, gate, sse(CALLS), plan=NetPlan(folder="", asks_again=0)
    )
    assert len(provider.requests) == 1
    assert b"the host is not allowed" in body
    assert b"tool_use" not in body


def test_a_request_whose_key_signs_its_body_is_not_asked_again(tmp_path: Path) -> None:
    gate = AuditGate("c1")
    request = post(None, "authorization: AWS4-HMAC-SHA256 Credential=AKIA/x, Signature=1")
    (_status, _fields, body), provider = asked(tmp_path, gate, sse(CALLS), request=request)
    assert len(provider.requests) == 1
    assert b"tool_use" not in body


def message(*blocks: dict[str, Any]) -> bytes:
    return json.dumps(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [*blocks],
            "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    ).encode()  # fmt: skip


def test_a_whole_answer_keeps_or_changes_its_length(tmp_path: Path) -> None:
    calls = whole(message(called("write", "c1", path="a")))
    (_status, fields, body), _provider = asked(tmp_path, AuditGate(), iter((calls,)))
    assert body == calls.partition(b"\r\n\r\n")[2]
    assert fields["content-length"] == str(len(body))
    mended = whole(message(said("otherwise")))
    (_status, fields, body), _provider = asked(tmp_path, AuditGate("c1"), iter((calls,)), iter((mended,)))
    assert fields["content-length"] == str(len(body))
    assert json.loads(body)["content"] == [said("otherwise")]


ERRORS = {
    "429": whole(b"slow down", "text/plain", status="429 Too Many", more="retry-after: 3\r\n"),
    "500": whole(b"broken", "text/plain", status="500 Broken"),
    "529": whole(b'{"type": "error"}', status="529 Overloaded"),
    "400": whole(b"what?", "text/plain", status="400 Bad Request"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_the_provider_pass_as_they_are(tmp_path: Path, name: str) -> None:
    gate = AuditGate()
    (status, fields, body), _provider = asked(tmp_path, gate, iter((ERRORS[name],)))
    assert (str(status), body) == (name, ERRORS[name].partition(b"\r\n\r\n")[2])
    assert fields.get("retry-after") == ("3" if name == "429" else None)
    assert gate.judged == []


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_on_the_second_ask(tmp_path: Path, name: str) -> None:
    """An agent that got nothing yet is told of an error after which it would ask again; any other ends with a text."""
    calls = whole(message(called("write", "c1", path="a")))
    (status, fields, body), _provider = asked(
        tmp_path, AuditGate("c1"), iter((calls,)), iter((ERRORS[name],))
    )
    if name == "400":
        assert status == 200
        assert b"the host is not allowed" in body
    else:
        assert (str(status), body) == (name, ERRORS[name].partition(b"\r\n\r\n")[2])
        assert fields.get("retry-after") == ("3" if name == "429" else None)
    (status, _fields, body), _provider = asked(tmp_path, AuditGate("c1"), sse(CALLS), iter((ERRORS[name],)))
    assert status == 200  # events were under way
    assert b"the host is not allowed" in body


def test_a_second_answer_that_breaks_off(tmp_path: Path) -> None:
    """Before any of it passed, the first answer ends; after that the agent sees its connection break."""
    broken: list[bytes | None] = [None]
    (status, _fields, body), _provider = asked(tmp_path, AuditGate("c1"), sse(CALLS), broken)
    assert status == 200
    assert b"the host is not allowed" in body
    gate = AuditGate("c1")
    provider = Provider(sse(CALLS), sse(MENDED, cut=4))
    with a_world(tmp_path, gate) as world:
        world.serve(provider)
        wire = world.connect()
        wire.send(post())
        with pytest.raises((ConnectionError, EOFError)):
            wire.until(b"never")
        world.eventually(lambda: len(gate.responses) == 2)
    assert [one[1].outcome for one in gate.responses] == [Outcome.DONE, Outcome.UNKNOWN]


def test_a_second_ask_that_is_refused_ends_with_a_text(tmp_path: Path) -> None:
    gate = AuditGate("c1")
    gate.rule = lambda request, effect_id: (
        Passed(effect_id=effect_id) if effect_id == "e1" else refusing(request, effect_id)
    )
    (status, _fields, body), provider = asked(tmp_path, gate, sse(CALLS))
    assert (status, len(provider.requests)) == (200, 1)
    assert b"the host is not allowed" in body
    assert isinstance(gate.rule(gate.requests[1], "e2"), Refused)


SILENT = NetPlan(folder="", limits=NetLimits(quiet_seconds=0.05, idle_seconds=0.4))


def hanging(*parts: list[bytes]) -> tuple[Callable[[Wire], None], list[bytes]]:
    """Return a provider that answers with some parts each, and after the last says nothing more; and what it was sent."""
    bodies: list[bytes] = []

    def script(wire: Wire) -> None:
        for some in parts:
            _line, fields = wire.head()
            bodies.append(wire.body(fields))
            for part in some:
                wire.send(part)
        while wire.more():
            pass

    return script, bodies


def test_a_provider_that_falls_silent_within_a_call_is_given_up(tmp_path: Path) -> None:
    at = next(number for number, part in enumerate(CALLS) if b"tool_use" in part)
    script, _bodies = hanging([*streamed(CALLS)][: at + 3])
    gate = AuditGate()
    with a_world(tmp_path, gate, SILENT) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(post())
        with pytest.raises((ConnectionError, EOFError)):
            wire.until(b"never")
        world.eventually(lambda: bool(gate.responses))
        assert b": waiting" in wire.buffer
        assert b"tool_use" not in wire.buffer
    assert gate.judged == []
    response = gate.responses[0][1]
    assert (response.outcome, "said nothing" in response.detail) == (Outcome.UNKNOWN, True)


@pytest.mark.parametrize("begun", [0, 1, 4], ids=["no head", "a head", "some text"])
def test_a_provider_that_falls_silent_when_it_is_asked_again_is_given_up(tmp_path: Path, begun: int) -> None:
    script, bodies = hanging([*streamed(CALLS)], [*streamed(MENDED)][:begun])
    gate = AuditGate("c1")
    with a_world(tmp_path, gate, SILENT) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(post())
        if begun == 4:
            with pytest.raises((ConnectionError, EOFError)):
                wire.until(b"never")
        else:
            assert b"the host is not allowed" in wire.until(b"message_stop")
        world.eventually(lambda: len(gate.responses) == 2)
    assert len(bodies) == 2
    assert [one[1].outcome for one in gate.responses] == [Outcome.DONE, Outcome.UNKNOWN]


ENCODED: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}


@pytest.mark.parametrize("encoding", ENCODED)
def test_an_answer_that_is_compressed_all_the_same_is_read(tmp_path: Path, encoding: str) -> None:
    data = ENCODED[encoding](b"".join(CALLS))
    answer = whole(data, "text/event-stream", more=f"content-encoding: {encoding}\r\n")
    gate = AuditGate()
    (_status, fields, body), _provider = asked(tmp_path, gate, iter((answer,)))
    assert body == b"".join(CALLS)
    assert "content-encoding" not in fields
    assert len(gate.judged) == 1


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "br", "rot13"])
def test_an_answer_that_cannot_be_decompressed_does_not_pass(tmp_path: Path, encoding: str) -> None:
    answer = whole(b"".join(CALLS), more=f"content-encoding: {encoding}\r\n")
    gate = AuditGate()
    (status, _fields, body), _provider = asked(tmp_path, gate, iter((answer,)))
    assert status == 502
    assert b"cannot be read" in body
    assert gate.responses[0][1].outcome is Outcome.UNKNOWN


def test_an_answer_that_breaks_off_at_a_call_shows_none_of_it(tmp_path: Path) -> None:
    gate = AuditGate()
    at = next(number for number, part in enumerate(CALLS) if b"tool_use" in part)
    with a_world(tmp_path, gate) as world:
        world.serve(Provider(sse(CALLS, cut=at + 2)))
        wire = world.connect()
        wire.send(post())
        with pytest.raises((ConnectionError, EOFError)):
            wire.until(b"never")
        assert b"tool_use" not in wire.buffer
        world.eventually(lambda: len(gate.responses) == 1)
    assert gate.judged == []


def test_half_a_call_in_an_answer_that_ends_is_refused(tmp_path: Path) -> None:
    at = next(number for number, part in enumerate(CALLS) if b"input_json_delta" in part)
    gate = AuditGate()
    (status, _fields, body), _provider = asked(tmp_path, gate, sse(CALLS[: at + 1]), sse(MENDED))
    assert status == 200
    assert b"tool_use" not in body
    assert [call.fault != "" for call in gate.judged[0][1]] == [True]


def test_a_call_of_1000_deltas_passes_whole(tmp_path: Path) -> None:
    call = anthropic(called("write", "c1", text="x" * 3000), cuts=1000)
    gate = AuditGate()
    (_status, _fields, body), _provider = asked(tmp_path, gate, sse(call))
    assert body == b"".join(call)
    assert json.loads(gate.judged[0][1][0].arguments) == {"text": "x" * 3000}


def test_an_agent_is_kept_alive_while_somebody_is_asked(tmp_path: Path) -> None:
    gate = AuditGate(waits_s=0.4)
    (_status, _fields, body), _provider = asked(tmp_path, gate, sse(CALLS), plan=QUICK)
    parts = body.split(b"\n\n")
    own = [part for part in parts if part.startswith((b":", b"event: ping"))]
    assert own
    assert b"\n\n".join(part for part in parts if part not in own) == b"".join(CALLS)


def test_an_agent_that_is_gone_is_asked_about_no_more(tmp_path: Path) -> None:
    gate = AuditGate("c1", waits_s=60)
    provider = Provider(sse(CALLS))
    with a_world(tmp_path, gate) as world:
        world.serve(provider)
        wire = world.connect()
        wire.send(post())
        world.eventually(lambda: bool(gate.judged))
        wire.close()
        world.eventually(lambda: bool(gate.responses))
        world.eventually(lambda: gate.cancelled == 1)
    assert len(provider.requests) == 1
    assert gate.responses[0][1].outcome is Outcome.DONE  # the provider's answer was whole


def test_an_agent_that_is_gone_in_the_second_answer_breaks_it_off(tmp_path: Path) -> None:
    gate = AuditGate("c1")
    second = [*streamed(MENDED)][:4]

    def script(wire: Wire) -> None:
        _line, fields = wire.head()
        wire.body(fields)
        for part in streamed(CALLS):
            wire.send(part)
        _line, fields = wire.head()
        wire.body(fields)
        for part in second:
            wire.send(part)
        while wire.more():
            pass

    with a_world(tmp_path, gate) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(post())
        wire.until(b"I do it")
        # A client that closes its direction alone may still read: this one resets the connection.
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()
        world.eventually(lambda: len(gate.responses) == 2)
    assert [one[1].outcome for one in gate.responses] == [Outcome.DONE, Outcome.UNKNOWN]


def test_what_cannot_be_audited_does_not_leave(tmp_path: Path) -> None:
    gate = AuditGate()
    provider = Provider()
    with a_world(tmp_path, gate) as world:
        world.serve(provider)
        wire = world.connect()
        status, _fields, body = wire.ask(b"GET /v1/realtime HTTP/1.1\r\nhost: far.test\r\n\r\n")
        assert status == 501
        assert b"cannot be read" in body
    assert provider.requests == []
    assert gate.responses[0][1].outcome is Outcome.FAILED


def test_the_next_request_on_the_connection_is_served(tmp_path: Path) -> None:
    gate = AuditGate("c1")
    provider = Provider(sse(CALLS), sse(MENDED), sse(TEXT))
    with a_world(tmp_path, gate) as world:
        world.serve(provider)
        wire = world.connect()
        wire.ask(post())
        _status, _fields, body = wire.ask(post())
        assert body == b"".join(TEXT)


@pytest.mark.parametrize("packed", [False, True])
def test_a_client_that_goes_on_from_a_mended_answer_by_its_id_goes_on_from_what_the_provider_keeps(
    tmp_path: Path, packed: bool
) -> None:
    def answer(number: int, *parts: Part) -> list[bytes | None]:
        return sse(
            [
                model_answers.stream(
                    "openai-responses", model_answers.events("openai-responses", parts, number=number)
                )
            ]
        )

    def ask(body: dict[str, Any]) -> bytes:
        data = json.dumps(body).encode()
        more = []
        if packed:
            data, more = gzip.compress(data), ["content-encoding: gzip"]
        lines = ["POST /v1/responses HTTP/1.1", "host: far.test", f"content-length: {len(data)}", *more]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + data

    body = {"model": "m", "stream": True, "store": True, "input": "go on"}
    call = Call("call_1", "write", {"path": "a"})
    provider = Provider(answer(1, call), answer(2, Text("otherwise")), answer(3, Text("more")))
    with a_world(tmp_path, RefusingAll()) as world:
        world.serve(provider)
        wire = world.connect()
        _status, _fields, shown = wire.ask(ask(body))
        known = "resp_1"
        assert known.encode() in shown
        assert b"resp_2" not in shown
        wire.ask(ask({**body, "previous_response_id": known}))
    sent = [json.loads(body) for _fields, body in provider.requests[1:] if body.startswith(b"{")]
    assert sent[-1]["previous_response_id"] == "resp_2"
    assert "content-encoding" not in provider.requests[-1][0]


def test_a_run_that_ends_leaves_nobody_waiting(tmp_path: Path) -> None:
    gate = AuditGate(waits_s=60)
    with a_world(tmp_path, gate) as world:
        world.serve(Provider(sse(CALLS)))
        wire = world.connect()
        wire.send(post())
        world.eventually(lambda: bool(gate.judged))
        world.on_loop(world.front.end)
        with pytest.raises((ConnectionError, EOFError)):
            wire.until(b"never")
        assert b"tool_use" not in wire.buffer


class BrokenGate(AuditGate):
    """Fails when it is told of an answer."""

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        super().answered(effect_id, response, body)
        raise RuntimeError("broken")


@pytest.mark.parametrize("answer", [sse(CALLS), sse(CALLS, cut=4), sse(TEXT, cut=1)])
def test_a_gate_that_breaks_leaves_nobody_waiting(tmp_path: Path, answer: list[bytes | None]) -> None:
    gate = BrokenGate("c1")
    with a_world(tmp_path, gate) as world:
        world.serve(Provider(answer))
        wire = world.connect()
        wire.send(post())
        with pytest.raises((ConnectionError, EOFError)):
            wire.until(b"never")
        assert b"tool_use" not in wire.buffer
        world.eventually(lambda: bool(world.faults))
        assert {type(one.get("exception")) for one in world.faults} == {RuntimeError}
        world.faults.clear()
