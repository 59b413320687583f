"""What passes a WebSocket: each outbound message decided first, in order; the ends mirrored; bad frames closed."""

import asyncio
import os
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.net_gate import Later, MemoryGate, passed, refused
from tests.fakes.ws_relay import ASKED, EMPTY, Around, End, Relayed
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage

from interlock.boundary.net.gate import Passage, Passed
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.websocket import MESSAGE_BYTES, Relay
from interlock.model.errors import BoundaryError
from interlock.model.requests import NetMessage, NetResponse, Outcome


def within(work: Callable[[], None]) -> None:
    async def run() -> None:
        work()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_messages_pass_both_ways_and_outbound_ones_are_asked_first() -> None:
    def work() -> None:
        one = Relayed()
        one.client.say(TextMessage(data="grüße"), BytesMessage(data=b"\x00\x01"), TextMessage(data=""))
        one.far.say(TextMessage(data="back"), BytesMessage(data=b"\xff"))
        one.hear()
        assert one.far.messages() == ["grüße", b"\x00\x01", ""]
        assert one.client.messages() == ["back", b"\xff"]
        assert [(m.stream, m.size_bytes, m.text) for m in one.gate.messages] == [
            ("e1", 7, "grüße"), ("e1", 2, None), ("e1", 0, ""),
        ]  # fmt: skip

    within(work)


def test_fragments_are_joined_before_they_are_asked_about() -> None:
    def work() -> None:
        one = Relayed()
        one.client.say(TextMessage(data="one ", message_finished=False), Ping(payload=b"x"))
        one.hear()
        assert one.gate.messages == []
        one.client.say(TextMessage(data="", message_finished=False), TextMessage(data="two"))
        one.hear()
        assert [m.text for m in one.gate.messages] == ["one two"]
        assert one.far.messages() == ["one two"]

    within(work)


def test_inbound_parts_stream_on_at_once() -> None:
    def work() -> None:
        one = Relayed()
        frame = bytes(one.far.ws.send(BytesMessage(data=b"a" * 1000)))
        one.far.raw(frame[:500])
        one.hear()
        assert sum(len(event.data) for event in one.client.events if isinstance(event, BytesMessage)) == 496
        one.far.raw(frame[500:])
        one.hear()
        assert one.client.messages() == [b"a" * 1000]

    within(work)


def test_a_placeholder_in_a_message_is_named() -> None:
    def work() -> None:
        one = Relayed()
        one.around.tokens["tok-1"] = "e9"
        one.client.say(TextMessage(data="use tok-1 now"))
        assert one.gate.messages[0].placeholders == ("e9",)

    within(work)


def test_a_refused_message_never_leaves_and_closes_with_the_reason() -> None:
    def work() -> None:
        one = Relayed(lambda message: refused("n" * 200) if message.text == "bad" else passed(message))
        one.client.say(TextMessage(data="good"), TextMessage(data="bad"), TextMessage(data="after"))
        one.hear()
        assert one.far.messages() == ["good"]
        assert one.far.close_code() == 1001
        closing = next(event for event in one.client.events if isinstance(event, CloseConnection))
        assert (closing.code, closing.reason) == (1008, "n" * 123)
        assert len(one.gate.messages) == 2
        one.client.say(closing.response())
        assert one.settle().outcome is Outcome.DONE

    within(work)


def test_a_decision_that_takes_long_keeps_the_order_and_pings_are_answered_meanwhile() -> None:
    async def run() -> None:
        later = Later()
        one = Relayed(later)
        one.client.say(
            TextMessage(data="1"), TextMessage(data="2"), Ping(payload=b"alive"), CloseConnection(code=1000)
        )
        await asyncio.sleep(0)
        one.hear()
        assert one.far.messages() == []
        assert [event.payload for event in one.client.events if isinstance(event, Pong)] == [b"alive"]
        for at in range(2):
            assert len(later.waiting) == at + 1
            later.waiting[at].set_result(Passed(effect_id="e1"))
            for _ in range(5):
                await asyncio.sleep(0)
        one.hear()
        assert one.far.messages() == ["1", "2"]
        assert one.far.close_code() == 1000
        one.far.say(CloseConnection(code=1000))
        one.hear()
        assert one.settle().outcome is Outcome.DONE

    asyncio.run(run())


@pytest.mark.parametrize("how", ["fails", "is cancelled", "parks"])
def test_a_decision_that_is_none_lets_nothing_out(how: str) -> None:
    async def run() -> None:
        later = Later()
        one = Relayed(later)
        one.client.say(TextMessage(data="1"))
        await asyncio.sleep(0)
        if how == "fails":
            later.waiting[0].set_exception(BoundaryError("gone"))
        elif how == "parks":
            from interlock.boundary.net.gate import Parked

            later.waiting[0].set_result(Parked(effect_id="e1", token="t"))
        else:
            later.waiting[0].cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        one.hear()
        assert one.far.messages() == []
        assert one.client.close_code() == 1008
        one.client.link.on_closed()
        one.far.link.on_closed()
        assert len(one.ended) == 1

    asyncio.run(run())


def test_a_gate_that_fails_at_once_lets_nothing_out() -> None:
    def fails(_message: NetMessage) -> Passage:
        raise BoundaryError("gone")

    def work() -> None:
        one = Relayed(fails)
        one.client.say(TextMessage(data="1"))
        one.hear()
        assert one.far.messages() == []
        assert one.client.close_code() == 1008

    within(work)


def test_the_far_side_s_close_is_answered_though_much_waits() -> None:
    async def run() -> None:
        one = Relayed(Later())
        while not one.client.link.paused:
            one.client.say(BytesMessage(data=bytes(1 << 20)))
        one.far.say(CloseConnection(code=1000))
        one.hear()
        assert not one.client.link.paused
        one.client.say(CloseConnection(code=1000))
        assert one.client.link.closed
        assert one.settle().outcome is Outcome.DONE
        await asyncio.sleep(0)

    asyncio.run(run())


def test_a_client_that_leaves_while_a_message_is_decided() -> None:
    async def run() -> None:
        later = Later()
        one = Relayed(later)
        one.client.say(TextMessage(data="1"))
        one.client.link.on_eof()
        await asyncio.sleep(0)
        later.waiting[0].set_result(Passed(effect_id="e1"))
        for _ in range(5):
            await asyncio.sleep(0)
        one.hear()
        assert one.far.messages() == ["1"]  # as it would have arrived without us
        assert one.settle().outcome is Outcome.UNKNOWN

    asyncio.run(run())


def test_a_message_beyond_the_bound_closes_with_1009() -> None:
    def work() -> None:
        one = Relayed()
        one.client.say(BytesMessage(data=bytes(MESSAGE_BYTES)))
        one.hear()
        assert len(one.far.messages()[0]) == MESSAGE_BYTES
        assert one.gate.messages[0].text is None
        one.client.say(*[BytesMessage(data=bytes(1 << 20), message_finished=False) for _ in range(16)])
        one.client.say(BytesMessage(data=b"x"))
        one.hear()
        assert one.client.close_code() == 1009
        assert len(one.gate.messages) == 1

    within(work)


def test_pings_go_on_without_their_payload_and_closes_without_their_reason() -> None:
    def work() -> None:
        one = Relayed()
        one.client.say(
            Ping(payload=b"secret"), Pong(payload=b"secret"), CloseConnection(code=4000, reason="secret")
        )
        assert b"secret" not in bytes(one.far.link.sent)
        one.hear()
        assert [event.payload for event in one.client.events if isinstance(event, Pong)] == [b"secret"]
        assert [event.payload for event in one.far.events if isinstance(event, Ping)] == [b""]
        assert one.far.close_code() == 4000
        one.far.say(CloseConnection(code=4000, reason="told"))
        one.hear()
        closing = next(event for event in one.client.events if isinstance(event, CloseConnection))
        assert (closing.code, closing.reason) == (4000, "told")
        assert one.settle() == NetResponse(outcome=Outcome.DONE, status=101)

    within(work)


@pytest.mark.parametrize("code", [1000, 1001, 1005, 1011, 3000, 4999])
@pytest.mark.parametrize("first", ["client", "far"])
def test_codes_are_mirrored(code: int, first: str) -> None:
    def work() -> None:
        one = Relayed()
        begins, answers = (one.client, one.far) if first == "client" else (one.far, one.client)
        from wsproto.frame_protocol import CloseReason

        begins.say(CloseConnection(code=CloseReason(code) if code < 3000 else code))
        answers.hear()
        assert answers.close_code() == code
        assert answers.ws.state is ConnectionState.REMOTE_CLOSING
        answers.say(CloseConnection(code=CloseReason(code) if code < 3000 else code))
        begins.hear()
        assert begins.close_code() == code
        assert begins.ws.state is ConnectionState.CLOSED
        assert one.settle().outcome is Outcome.DONE

    within(work)


BAD_FRAMES: list[tuple[str, bytes, int]] = [
    ("a reserved bit", b"\xc1\x80mask", 1002),
    ("a reserved opcode", b"\x83\x80mask", 1002),
    ("a reserved control opcode", b"\x8b\x80mask", 1002),
    ("a fragmented ping", b"\x09\x80mask", 1002),
    ("a long ping", b"\x89\xfe\x00\x7emask" + bytes(126), 1002),
    ("a length in two bytes that fits one", b"\x82\xfe\x00\x05mask12345", 1002),
    ("a length in eight bytes that fits two", b"\x82\xff" + (5).to_bytes(8, "big") + b"mask12345", 1002),
    ("a length with the top bit", b"\x82\xff\x80" + bytes(7) + b"mask", 1002),
    ("a continuation of nothing", b"\x80\x80mask", 1002),
    ("a new message within one", b"\x01\x80mask\x81\x80mask", 1002),
    ("no mask", b"\x81\x01a", 1002),
    ("a close of one byte", b"\x88\x81\0\0\0\0\x03", 1002),
    ("a close code of nobody", b"\x88\x82\0\0\0\0\x03\xec", 1002),
    ("text that is not UTF-8", b"\x81\x82\0\0\0\0\xc3\x28", 1007),
    ("text that ends within a character", b"\x81\x81\0\0\0\0\xc3", 1007),
    ("a close reason that is not UTF-8", b"\x88\x84\0\0\0\0\x03\xe8\xc3\x28", 1007),
]


@pytest.mark.parametrize(("what", "data", "code"), BAD_FRAMES, ids=[what for what, *_ in BAD_FRAMES])
def test_bad_frames_of_the_client_close_both_ends(what: str, data: bytes, code: int) -> None:
    def work() -> None:
        one = Relayed()
        for at in range(len(data)):
            one.client.raw(data[at : at + 1])
        one.hear()
        assert one.client.close_code() == code
        assert one.far.close_code() == 1001
        assert one.gate.messages == []
        one.client.link.on_eof()
        assert one.settle().outcome is Outcome.UNKNOWN

    within(work)


def test_bad_frames_of_the_far_side_close_both_ends() -> None:
    def work() -> None:
        one = Relayed()
        one.far.raw(b"\x81\x81\0\0\0\0x")  # masked
        one.hear()
        assert (one.far.close_code(), one.client.close_code()) == (1002, 1011)

    within(work)


@pytest.mark.parametrize("first", ["client", "far"])
@pytest.mark.parametrize("how", ["eof", "closed"])
def test_an_end_that_vanishes_takes_the_other_with_it(first: str, how: str) -> None:
    def work() -> None:
        one = Relayed()
        gone, other = (one.client, one.far) if first == "client" else (one.far, one.client)
        if how == "eof":
            gone.link.on_eof()
            assert gone.link.closed
        else:
            gone.link.on_closed()
        other.hear()
        assert other.close_code() is None  # 1006 to its reader
        assert other.link.closed
        if how == "eof":
            gone.link.on_closed()
        other.link.on_closed()
        assert one.ended[0].outcome is Outcome.UNKNOWN

    within(work)


def test_a_slow_reader_stops_the_other_end() -> None:
    def work() -> None:
        one = Relayed()
        one.client.link.high_bytes = 1000
        one.far.say(BytesMessage(data=bytes(5000)))
        assert one.far.link.paused
        one.client.hear()
        assert not one.far.link.paused
        one.far.link.high_bytes = 1000
        one.client.say(BytesMessage(data=bytes(5000)))
        assert one.client.link.paused
        one.far.hear()
        assert not one.client.link.paused

    within(work)


def test_messages_that_wait_are_bounded() -> None:
    async def run() -> None:
        later = Later()
        one = Relayed(later)
        sent = 0
        while not one.client.link.paused and sent < 100:
            one.client.say(BytesMessage(data=bytes(1 << 20)))
            sent += 1
        assert sent <= 10
        one.client.link.on_closed()
        one.far.link.on_closed()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_a_websocket_that_never_closes_costs_little() -> None:
    def work() -> None:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        many = [Relayed() for _ in range(200)]
        for one in many:
            one.far.say(TextMessage(data="x" * 2000))
            one.hear()
            one.client.events.clear()
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert (after - before) / len(many) < 40_000  # both fake peers included

    within(work)


def test_bytes_that_came_with_the_heads_are_read() -> None:
    def work() -> None:
        client, far = End(ConnectionType.CLIENT), End(ConnectionType.SERVER)
        gate = MemoryGate()
        early = bytes(far.ws.send(TextMessage(data="hello")))
        ahead = bytes(client.ws.send(TextMessage(data="eager")))
        ended: list[NetResponse] = []
        Relay(
            client.link, far.link, ahead, early, ASKED, EMPTY, "e1", Around(gate, NetLimits()), ended.append
        )
        client.hear()
        far.hear()
        assert (client.messages(), far.messages()) == (["hello"], ["eager"])

    within(work)


def test_the_run_s_end_closes_both() -> None:
    def work() -> None:
        one = Relayed()
        one.relay.close()
        one.hear()
        assert (one.client.close_code(), one.far.close_code()) == (1001, 1001)

    within(work)


def _talk() -> bytes:
    peer = Connection(ConnectionType.CLIENT)
    events: list[Event] = [
        TextMessage(data="grüße " * 30), Ping(payload=b"p"), BytesMessage(data=b"ab", message_finished=False),
        Pong(payload=b"q"), BytesMessage(data=os.urandom(300)), TextMessage(data="x" * 200), CloseConnection(code=4001),
    ]  # fmt: skip
    return b"".join(bytes(peer.send(event)) for event in events)


TALK = _talk()


@settings(max_examples=60)
@given(st.lists(st.integers(1, len(TALK)), max_size=20))
def test_however_the_bytes_are_split_the_same_is_asked_and_sent(cuts: list[int]) -> None:
    seen = []

    def work() -> None:
        for points in ([], sorted(cuts), range(1, len(TALK))):
            one = Relayed()
            at = 0
            for end in [*points, len(TALK)]:
                one.client.raw(TALK[at:end])
                at = end
            one.hear()
            seen.append((one.gate.messages, one.far.messages(), one.far.close_code()))

    within(work)
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][0]) == 3


@settings(max_examples=150)
@given(st.binary(max_size=80), st.binary(max_size=80))
def test_no_bytes_break_it(mine: bytes, theirs: bytes) -> None:
    def work() -> None:
        one = Relayed()
        one.client.raw(mine)
        one.far.raw(theirs)
        one.client.raw(mine)
        for end in (one.client, one.far):
            end.link.on_closed()
        assert len(one.ended) == 1

    within(work)
