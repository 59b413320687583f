"""HTTP/2 on the agent's side: what a request becomes, how answers go back, and what is refused."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.h2_peer import Peer, get
from tests.fakes.net_links import Exchanged, MemoryLink, Step, Surroundings

from interlock.boundary.net.http2_client import Http2Client
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, RequestHead

PLACE = Place(host="api.test", port=443, tls=True)
OK = AnswerHead(status=200, headers=((b"content-type", b"text/plain"),), length=None)


def echo(exchange: Exchanged) -> None:
    assert exchange.client is not None
    exchange.client.answer(OK)
    exchange.client.data(b"<" + bytes(exchange.body) + b">")
    exchange.client.end(exchange.trailers)


def silent(_exchange: Exchanged) -> None:
    pass


class Side:
    """Our side with a peer at it."""

    def __init__(
        self,
        respond: Callable[[Exchanged], None] = echo,
        limits: NetLimits | None = None,
        place: Place = PLACE,
        *,
        quiet: bool = False,
        high_bytes: int = 1 << 40,
    ) -> None:
        self.loop = Step()
        self.link = MemoryLink("h2", high_bytes=high_bytes)
        self.setting = Surroundings(self.loop, self._begin, limits)
        self._respond = respond
        self.client = Http2Client(self.link, place, self.setting)
        self.peer = Peer(self.link, self.loop, quiet=quiet)

    def _begin(self, client: ClientSide, head: RequestHead) -> Exchanged:
        return Exchanged(client, head, self._respond)

    def begun(self, at: int = -1) -> Exchanged:
        made = self.setting.begun[at]
        assert isinstance(made, Exchanged)
        return made


def test_a_request_becomes_a_checked_head_and_its_answer_goes_back() -> None:
    side = Side()
    fields = get(
        "/a/../b?q=1",
        "API.test",
        (b"cookie", b"a=1"),
        (b"cookie", b"b=2"),
        (b"content-length", b"4"),
        method="POST",
    )
    side.peer.request(1, fields, b"body")
    side.peer.talk()
    head = side.begun().head
    assert (head.method, head.scheme, head.authority_host, head.port, head.target) == (
        "POST",
        "https",
        "api.test",
        443,
        "/b?q=1",
    )
    assert (head.protocol, head.length, head.headers) == ("h2", 4, ((b"cookie", b"a=1; b=2"),))
    answer, body, _, whole = side.peer.answer_to(1)
    assert (answer[b":status"], body, whole) == (b"200", b"<body>", True)


def test_the_settings_are_ours() -> None:
    side = Side()
    settings = side.peer.h2.remote_settings
    assert settings.max_concurrent_streams == 128
    assert settings.initial_window_size == 1024 * 1024
    assert settings.max_header_list_size == 256 * 1024
    assert (settings.enable_push, settings.max_frame_size, settings.header_table_size) == (0, 16384, 4096)
    assert side.peer.h2.outbound_flow_control_window == 16 * 1024 * 1024


def test_trailers_go_both_ways() -> None:
    side = Side()
    side.peer.h2.send_headers(1, get(method="POST"))
    side.peer.h2.send_data(1, b"x")
    side.peer.h2.send_headers(1, [(b"grpc-status", b"0"), (b"authorization", b"no")], end_stream=True)
    side.peer.talk()
    assert side.begun().trailers == ((b"grpc-status", b"0"),)
    assert side.peer.answer_to(1)[2] == {b"grpc-status": b"0"}


def test_an_answer_without_a_body_ends_with_its_head() -> None:
    def trailers_only(exchange: Exchanged) -> None:
        assert exchange.client is not None
        exchange.client.answer(AnswerHead(status=200, headers=((b"grpc-status", b"7"),), length=0))
        exchange.client.end(())

    side = Side(trailers_only)
    side.peer.request(1, get())
    side.peer.talk()
    kinds = [type(frame).__name__ for frame in side.peer.frames if frame.stream_id == 1]
    assert kinds == ["HeadersFrame"]
    assert side.peer.answer_to(1)[3]


def test_interim_answers_and_informational_heads_go_on() -> None:
    def early(exchange: Exchanged) -> None:
        assert exchange.client is not None
        exchange.client.interim(AnswerHead(status=103, headers=((b"link", b"</a>"),)))
        echo(exchange)

    side = Side(early)
    side.peer.request(1, get())
    names = [type(event).__name__ for event in side.peer.talk()]
    assert names.index("InformationalResponseReceived") < names.index("ResponseReceived")


MALFORMED: list[tuple[str, list[tuple[bytes, bytes]]]] = [
    ("upper case", [*get(), (b"X-Up", b"1")]),
    ("connection", [*get(), (b"connection", b"close")]),
    ("transfer-encoding", [*get(), (b"transfer-encoding", b"chunked")]),
    ("te gzip", [*get(), (b"te", b"gzip")]),
    ("upgrade", [*get(), (b"upgrade", b"websocket")]),
    ("host unlike", [*get(), (b"host", b"other.test")]),
    ("two authorities", [*get(), (b"x", b"1")][:2] + [(b":authority", b"a")] * 2 + [(b":path", b"/")]),
    ("pseudo late", [*get()[:3], (b"x", b"1"), (b":path", b"/")]),
    ("no path", get()[:3]),
    ("empty path", get("")),
    ("relative path", get("a")),
    ("no method", get()[1:]),
    ("no scheme", [get()[0], *get()[2:]]),
    ("other scheme", get(scheme="http")),
    ("unknown pseudo", [*get(), (b":protocol", b"websocket")]),
    ("status pseudo", [(b":status", b"200"), *get()]),
    ("line feed", [*get(), (b"x", b"a\nb: c")]),
    ("carriage return", [*get(), (b"x", b"a\rb")]),
    ("nul", [*get(), (b"x", b"a\0b")]),
    ("empty name", [*get(), (b"", b"a")]),
    ("space in name", [*get(), (b"a b", b"a")]),
    ("colon in name", [*get(), (b"a:b", b"a")]),
    ("line feed in path", get("/a\r\nHost: b")),
    ("space in path", get("/a b")),
    ("line feed in authority", get("/", "api.test\r\nx: y")),
    ("user in authority", get("/", "me@api.test")),
    ("line feed in method", get(method="GET / HTTP/1.1\r\n")),
    ("other host", get("/", "other.test")),
    ("other port", get("/", "api.test:8443")),
    ("connect", [(b":method", b"CONNECT"), (b":authority", b"api.test:443")]),
    ("two lengths", [*get(), (b"content-length", b"1"), (b"content-length", b"2")]),
    ("odd length", [*get(), (b"content-length", b"+1")]),
    ("length without body", [*get(), (b"content-length", b"3")]),
    ("too many fields", [*get(), *[(b"a%d" % at, b"") for at in range(501)]]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "fields"), MALFORMED, ids=[what for what, _ in MALFORMED])
def test_a_head_that_is_not_right_is_never_an_exchange(what: str, fields: list[tuple[bytes, bytes]]) -> None:
    side = Side()
    side.peer.request(1, fields)
    side.peer.talk()
    assert side.setting.begun == []
    head = side.peer.answer_to(1)[0]
    status = int(head.get(b":status", b"0"))
    assert 400 <= status < 600 or side.peer.reset_code(1) is not None or side.peer.goaway_code() is not None
    if side.peer.goaway_code() is None:  # the others go on
        side.peer.request(3, get())
        side.peer.talk()
        assert side.peer.answer_to(3)[3]


def test_a_head_request_that_is_refused_gets_no_body() -> None:
    side = Side()
    side.peer.request(1, get("/", "other.test", method="HEAD"))
    side.peer.talk()
    head, body, _, whole = side.peer.answer_to(1)
    assert (head[b":status"], body, whole) == (b"421", b"", True)


@pytest.mark.parametrize("body", [b"", b"12", b"1234"])
def test_a_body_of_another_length_than_it_says_is_never_whole(body: bytes) -> None:
    side = Side()
    side.peer.h2.send_headers(1, get("/", "api.test", (b"content-length", b"3"), method="POST"))
    side.peer.h2.send_data(1, body, end_stream=True)
    side.peer.request(3, get())
    side.peer.talk()
    assert not side.begun(0).whole
    assert side.begun(0).gone
    assert side.peer.reset_code(1) == 1
    assert side.peer.answer_to(3)[3]


def test_streams_above_the_limit_are_refused_one_by_one() -> None:
    side = Side(silent)
    side.peer.h2.remote_settings[3] = 1000
    side.peer.h2.remote_settings.acknowledge()
    for stream in range(1, 2 * 140, 2):
        side.peer.request(stream, get())
    side.peer.talk()
    assert len(side.setting.begun) == 128
    assert side.peer.reset_code(2 * 128 + 1) == 7
    assert side.peer.goaway_code() is None
    echo(side.begun(0))
    side.loop.turn()
    side.peer.request(999, get())
    side.peer.talk()
    assert len(side.setting.begun) == 129


def test_the_window_is_given_back_only_as_the_body_is_taken() -> None:
    side = Side(silent)
    side.peer.h2.send_headers(1, get(method="POST"))
    side.peer.talk()
    exchange = side.begun()
    assert exchange.client is not None
    exchange.client.read_on(False)
    sent = 0
    while size := min(16384, side.peer.h2.local_flow_control_window(1)):
        side.peer.h2.send_data(1, bytes(size))
        sent += size
        side.peer.talk()
    assert sent == 1024 * 1024
    side.peer.request(3, get(method="POST"), b"another")  # the others go on
    side.peer.talk()
    assert side.begun().whole
    exchange.client.read_on(True)
    side.peer.talk()
    assert side.peer.h2.local_flow_control_window(1) == 1024 * 1024


def test_an_answer_waits_for_the_window_and_says_so() -> None:
    side = Side(silent)
    side.peer.acknowledge = False
    side.peer.request(1, get())
    side.peer.talk()
    exchange = side.begun()
    assert exchange.client is not None
    exchange.client.answer(OK)
    for _ in range(32):
        exchange.client.data(b"x" * 16384)
    side.peer.talk()
    assert len(side.peer.answer_to(1)[1]) == 65535
    assert exchange.full == [True]
    side.peer.h2.increment_flow_control_window(1 << 20, 1)
    side.peer.h2.increment_flow_control_window(1 << 20)
    exchange.client.end(())
    side.peer.talk()
    assert len(side.peer.answer_to(1)[1]) == 32 * 16384
    assert exchange.full == [True, False]
    assert side.peer.answer_to(1)[3]


def test_streams_share_a_slow_link_fairly() -> None:
    side = Side(silent, high_bytes=100_000)
    side.peer.acknowledge = False
    for stream in (1, 3):
        side.peer.request(stream, get())
    side.peer.h2.increment_flow_control_window(1 << 24)
    for stream in (1, 3):
        side.peer.h2.increment_flow_control_window(1 << 22, stream)
    side.peer.talk()
    for at in (0, 1):
        client = side.begun(at).client
        assert client is not None
        client.answer(OK)
        client.data(bytes(1 << 20))
        client.end(())
    assert side.link.most_bytes < 300_000
    side.peer.talk()
    order = [frame.stream_id for frame in side.peer.frames if type(frame).__name__ == "DataFrame"]
    assert {1, 3} == set(order[20:24]) == set(order[-9:-1])
    assert all(side.peer.answer_to(stream)[3] for stream in (1, 3))


def test_an_early_answer_stops_the_rest_of_the_request() -> None:
    side = Side(silent)
    side.peer.h2.send_headers(1, get(method="POST"))
    side.peer.h2.send_data(1, b"part")
    side.peer.talk()
    client = side.begun().client
    assert client is not None
    client.answer(AnswerHead(status=413, headers=(), length=0))
    client.end(())
    side.peer.talk()
    assert side.peer.answer_to(1)[0][b":status"] == b"413"
    assert side.peer.reset_code(1) == 0
    assert not side.begun().gone


def test_what_is_cut_is_reset_and_what_is_reset_is_gone() -> None:
    side = Side(silent)
    side.peer.request(1, get())
    side.peer.request(3, get())
    side.peer.talk()
    client = side.begun(0).client
    assert client is not None
    client.cut()
    side.peer.h2.reset_stream(3, 8)
    side.peer.talk()
    assert side.peer.reset_code(1) == 2
    assert [side.begun(at).gone for at in (0, 1)] == [False, True]
    client.data(b"late")  # nothing of it goes anywhere
    client.end(())
    side.peer.request(5, get())
    side.peer.talk()
    assert len(side.setting.begun) == 3


def test_a_goaway_of_the_agent_lets_its_streams_end() -> None:
    side = Side(silent)
    side.peer.request(1, get())
    side.peer.talk()
    side.peer.send(bytes.fromhex("0000080700000000000000000000000000"))
    assert not side.link.closed
    echo(side.begun())
    side.peer.talk()
    assert side.peer.answer_to(1)[3]
    assert side.link.closed


def test_closing_lets_what_runs_end_and_takes_no_more() -> None:
    side = Side(silent)
    side.peer.request(1, get())
    side.peer.talk()
    side.client.close()
    echo(side.begun())
    side.loop.turn()
    data = side.link.take()
    assert b"<>" in data
    assert data.count(b"\x00\x00\x08\x07\x00") == 1
    assert data.index(b"\x00\x00\x08\x07\x00") < data.index(b"<>")
    assert side.link.closed


def test_a_connection_that_ends_takes_its_exchanges_with_it() -> None:
    side = Side(silent)
    for stream in (1, 3):
        side.peer.request(stream, get())
    side.peer.talk()
    side.link.on_eof()
    assert all(side.begun(at).gone for at in (0, 1))
    assert side.link.closed
    side.link.on_closed()


def test_what_waits_too_long_ends() -> None:
    side = Side(silent, replace(NetLimits(), head_seconds=5, idle_seconds=20))
    assert side.client.deadline == side.loop.now + 20
    side.peer.h2.send_headers(1, get(method="POST"))
    side.peer.talk()
    side.loop.now += 21
    assert side.client.deadline < side.loop.now
    side.client.expire()
    side.peer.talk()
    assert side.peer.reset_code(1) == 8
    assert side.begun().gone
    side.peer.h2.send_headers(3, get("/", "api.test", (b"content-type", b"application/grpc"), method="POST"))
    side.peer.talk()
    side.loop.now += 10_000  # a gRPC call may stay open in silence
    side.client.expire()
    assert not side.begun().gone
    side.link.on_data(bytes.fromhex("00001001"))  # a head that does not go on
    side.loop.now += 6
    assert side.client.deadline < side.loop.now
    side.client.expire()
    assert side.link.closed


def test_an_idle_connection_is_closed_with_a_goaway() -> None:
    side = Side()
    side.peer.request(1, get())
    side.peer.talk()
    side.loop.now += 301
    side.client.expire()
    side.peer.talk()
    assert side.peer.goaway_code() == 0
    assert side.link.closed


def test_pings_are_answered_and_priorities_ignored() -> None:
    side = Side()
    side.peer.h2.ping(b"12345678")
    side.peer.h2.prioritize(1, weight=3)
    side.peer.request(1, get())
    names = [type(event).__name__ for event in side.peer.talk()]
    assert "PingAckReceived" in names
    assert side.peer.answer_to(1)[3]


def _recorded() -> bytes:
    side = Side(silent, quiet=True)
    sent = bytearray()
    on_data = side.link.on_data
    side.link.on_data = lambda data: (sent.extend(data), on_data(data))[1]
    peer = Peer(side.link, side.loop)
    peer.request(1, get("/one", "api.test", (b"x", b"y" * 200)))
    peer.request(3, get("/two", method="POST"), b"a body")
    peer.h2.send_headers(5, get("/three", method="PUT"))
    peer.h2.send_data(5, b"12345", pad_length=20)
    peer.h2.ping(b"abcdefgh")
    peer.h2.send_headers(5, [(b"t", b"1")], end_stream=True)
    peer.h2.reset_stream(1, 8)
    peer.h2.send_headers(7, get("/four", "other.test"), end_stream=True)
    peer.talk()
    return bytes(sent)


STREAM = _recorded()


@given(st.lists(st.integers(1, len(STREAM)), max_size=30))
def test_however_the_bytes_are_split_they_mean_the_same(cuts: list[int]) -> None:
    seen = []
    for points in ([], sorted(cuts), range(1, len(STREAM))):
        side = Side(silent, quiet=True)
        at = 0
        for end in [*points, len(STREAM)]:
            side.link.on_data(STREAM[at:end])
            at = end
        side.loop.turn()
        seen.append(
            (
                [(one.head, bytes(one.body), one.trailers, one.whole, one.gone) for one in map(side.begun, range(len(side.setting.begun)))],
                side.setting.away,
            )
        )  # fmt: skip
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][0]) == 3
    assert seen[0][1] == ["the host field names another place than the connection goes to"]


@given(st.binary(max_size=200), st.integers(0, len(STREAM)))
def test_no_bytes_break_it(noise: bytes, at: int) -> None:
    side = Side(silent, quiet=True)
    side.link.on_data(STREAM[:at] + noise)
    side.link.on_data(STREAM[at:])
    side.loop.turn()
    side.link.on_eof()
    side.link.on_closed()
