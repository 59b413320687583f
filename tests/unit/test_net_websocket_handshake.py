"""The two handshakes of a WebSocket: what the far side is asked, and what the client is answered."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from interlock.boundary.net.sides import AnswerHead, RawHeaders, RequestHead
from interlock.boundary.net.websocket_handshake import accept, check, offer

KEY = base64.b64encode(b"0123456789abcdef")
ASKED = RequestHead(
    method="GET",
    scheme="https",
    authority_host="api.test",
    port=443,
    target="/ws",
    headers=(
        (b"origin", b"https://a.test"),
        (b"sec-websocket-key", KEY),
        (b"sec-websocket-version", b"13"),
        (b"sec-websocket-extensions", b"permessage-deflate"),
        (b"sec-websocket-protocol", b"chat, superchat"),
    ),
    length=0,
    upgrade="websocket",
)


def test_the_far_side_gets_our_own_key_and_no_extension() -> None:
    sent = offer(ASKED)
    fields = dict(sent.headers)
    assert fields[b"sec-websocket-key"] != KEY
    assert len(base64.b64decode(fields[b"sec-websocket-key"])) == 16
    assert fields[b"sec-websocket-protocol"] == b"chat, superchat"
    assert fields[b"origin"] == b"https://a.test"
    assert b"sec-websocket-extensions" not in fields
    assert offer(ASKED) != sent


def right(sent: RequestHead) -> RawHeaders:
    key = dict(sent.headers)[b"sec-websocket-key"]
    proof = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    return ((b"sec-websocket-accept", proof), (b"x-server", b"1"))


def test_the_client_gets_the_answer_to_its_own_key() -> None:
    sent = offer(ASKED)
    picked = AnswerHead(status=101, headers=(*right(sent), (b"sec-websocket-protocol", b"chat")))
    answer = accept(sent, picked, ASKED)
    assert answer is not None
    fields = dict(answer.headers)
    # the example of a key and its answer is computed by the same rule that RFC 6455 gives
    assert fields[b"sec-websocket-accept"] == dict(right(ASKED))[b"sec-websocket-accept"]
    assert (fields[b"sec-websocket-protocol"], fields[b"x-server"]) == (b"chat", b"1")


def test_the_rule_for_answers_gives_the_rfc_s_own_example() -> None:
    example = replace(ASKED, headers=((b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="),))
    sent = offer(example)
    answer = accept(sent, AnswerHead(status=101, headers=right(sent)), example)
    assert answer is not None
    assert dict(answer.headers)[b"sec-websocket-accept"] == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fields: fields[1:],
        lambda fields: (fields[0], fields[0]),
        lambda fields: ((b"sec-websocket-accept", b"AAAA"),),
        lambda fields: (*fields, (b"sec-websocket-extensions", b"permessage-deflate")),
        lambda fields: (*fields, (b"sec-websocket-protocol", b"other")),
        lambda fields: (*fields, (b"sec-websocket-protocol", b"chat"), (b"sec-websocket-protocol", b"chat")),
    ],
)
def test_a_wrong_answer_of_the_far_side_is_none(spoil: Callable[[RawHeaders], RawHeaders]) -> None:
    sent = offer(ASKED)
    assert accept(sent, AnswerHead(status=101, headers=right(sent)), ASKED) is not None
    assert accept(sent, AnswerHead(status=101, headers=spoil(right(sent))), ASKED) is None
    assert accept(sent, AnswerHead(status=200, headers=right(sent)), ASKED) is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (((b"sec-websocket-key", KEY),), 426),
        (((b"sec-websocket-key", KEY), (b"sec-websocket-version", b"8")), 426),
        (((b"sec-websocket-version", b"13"),), 400),
        (((b"sec-websocket-version", b"13"), (b"sec-websocket-key", b"short")), 400),
        (((b"sec-websocket-version", b"13"), (b"sec-websocket-key", KEY), (b"sec-websocket-key", KEY)), 400),
    ],
)
def test_a_wrong_upgrade_is_refused(headers: RawHeaders, status: int) -> None:
    assert check(ASKED) is None
    refusal = check(replace(ASKED, headers=headers))
    assert refusal is not None
    assert refusal.status == status
