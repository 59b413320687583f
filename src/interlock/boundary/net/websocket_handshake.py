"""The two handshakes of a WebSocket that passes: the far side's is made anew, the client's is answered from it.

No extension is offered or accepted. `permessage-deflate` is optional by its RFC for every peer, costs memory for each
connection as long as it lives, and wsproto inflates without a bound, which a bomb would use.
Source: RFC 6455 §4.
"""

import base64
import binascii
import hashlib
import os
import re
from dataclasses import replace

from interlock.boundary.net.heads import HeadRefusal
from interlock.boundary.net.sides import AnswerHead, RawHeaders, RequestHead

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_OWN = b"sec-websocket-"
_PROTOCOL = b"sec-websocket-protocol"


def check(head: RequestHead) -> HeadRefusal | None:
    """Say why a client's upgrade cannot be taken, None if it can."""
    if _values(head.headers, b"sec-websocket-version") != [b"13"]:
        return HeadRefusal(status=426, reason="only version 13 of the WebSocket protocol is spoken")
    if _key(head.headers) is None:
        return HeadRefusal(status=400, reason="sec-websocket-key is not one key of 16 bytes")
    return None


def offer(head: RequestHead) -> RequestHead:
    """Make the request that is sent on: our own key, version 13, the client's subprotocols, no extensions."""
    fields = [field for field in head.headers if not field[0].startswith(_OWN)]
    fields += [(b"sec-websocket-key", base64.b64encode(os.urandom(16))), (b"sec-websocket-version", b"13")]
    offered = _offered(head.headers)
    if offered:
        fields.append((_PROTOCOL, b", ".join(offered)))
    return replace(head, headers=tuple(fields))


def accept(sent: RequestHead, answer: AnswerHead, asked: RequestHead) -> AnswerHead | None:
    """Make the client's 101 from the far side's.

    Takes: `sent`, as `offer` made it from `asked`; `answer`, the far side's head.
    Returns: None where the far side's is not a right one: another key's answer, an extension that nobody offered, a
    subprotocol that the client did not name.
    """
    own, key = _key(sent.headers), _key(asked.headers)
    if answer.status != 101 or own is None or key is None:
        return None
    if _values(answer.headers, b"sec-websocket-accept") != [_proof(own)]:
        return None
    if any(_values(answer.headers, b"sec-websocket-extensions")):
        return None
    picked = _values(answer.headers, _PROTOCOL)
    if len(picked) > 1 or (picked and picked[0] not in _offered(asked.headers)):
        return None
    fields = [field for field in answer.headers if not field[0].startswith(_OWN)]
    fields.append((b"sec-websocket-accept", _proof(key)))
    if picked:
        fields.append((_PROTOCOL, picked[0]))
    return AnswerHead(status=101, headers=tuple(fields), length=0)


def _values(headers: RawHeaders, name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def _offered(headers: RawHeaders) -> list[bytes]:
    names = [part.strip() for value in _values(headers, _PROTOCOL) for part in value.split(b",")]
    return list(dict.fromkeys(name for name in names if _TOKEN.match(name)))


def _key(headers: RawHeaders) -> bytes | None:
    keys = _values(headers, b"sec-websocket-key")
    try:
        return keys[0] if len(keys) == 1 and len(base64.b64decode(keys[0], validate=True)) == 16 else None
    except binascii.Error:
        return None


def _proof(key: bytes) -> bytes:
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
