"""An MCP message in an HTTP request: whether there is one, and whether the headers say of it what it says itself.

Source: MCP, streamable HTTP, revisions 2025-06-18 to 2026-07-28.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from interlock.boundary.mcp import versions
from interlock.boundary.mcp.messages import Message, Request, Response, Unreadable, read
from interlock.boundary.net.mcp_events import Events
from interlock.model.requests import NetRequest

HEADER_MISMATCH = -32020
_LOW = re.compile(rb"\\u00([2-7][0-9A-Fa-f])")
"""How JSON may write a letter of ASCII otherwise."""
SESSION = b"mcp-session-id"
VERSION = b"mcp-protocol-version"
_METHOD, _NAME, _PARAM = b"mcp-method", b"mcp-name", b"mcp-param-"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def may_hold(request: NetRequest) -> bool:
    """Say whether an MCP message could stand in a request, a POST of JSON over HTTP, or in its answer."""
    if request.method not in ("POST", "GET", "DELETE") or request.scheme not in ("http", "https"):
        return False
    if request.method != "POST":
        return listens(request) or any(name == SESSION.decode() for name, _ in request.headers)
    kind = next((value for name, value in request.headers if name == "content-type"), "")
    media = kind.partition(";")[0].strip().lower()
    if media == "application/json" or any(name.startswith("mcp-") for name, _ in request.headers):
        return True
    return request.body_text is not None and request.body_text.lstrip()[:1] in ("{", "[")


def listens(request: NetRequest) -> bool:
    """Say whether a request asks for a stream of the server's own."""
    return request.method == "GET" and any(
        name == "accept" and "text/event-stream" in value.lower() for name, value in request.headers
    )


def speaks_of_itself(body: bytes) -> bool:
    """Say whether a text that is no message may be taken for one by a careless reader."""
    plain = _LOW.sub(lambda found: bytes((int(found[1], 16),)), body)
    return b"jsonrpc" in plain.lower()


def fields_of(request: NetRequest) -> dict[bytes, bytes]:
    """Return a request's headers by name."""
    return {name.encode(): value.encode("utf-8", "replace") for name, value in request.headers}


def answers_in(body: bytes) -> list[Message]:
    """Return the messages of an answer: of one JSON text, or of a stream of events."""
    if body.lstrip()[:1] == b"{":
        return [read(body)]
    events = Events().feed(body + b"\n\n")
    return [read(one.data) for one in events if one.data]


def response_in(body: bytes, number: object) -> Response | None:
    """Return the answer to a request among what an answer's body holds, None where it is not there."""
    for one in answers_in(body):
        if isinstance(one, Response) and one.id == number and type(one.id) is type(number):
            return one
    return None


def calls_in_unread(message: Message, body: bytes) -> bool:
    """Say whether a body that is not read as one message may call a tool all the same: a batch, a name twice."""
    if not isinstance(message, Unreadable):
        return False
    plain = _LOW.sub(lambda found: bytes((int(found[1], 16),)), body).replace(b"\\/", b"/")
    return b"tools/call" in plain


def check_message(headers: Mapping[bytes, bytes], message: Message) -> str:
    """Return what the headers say else than the message does, `""` where they agree."""
    if not isinstance(message, Request):
        return ""
    said = versions.version_said(message.params)
    if said is not None and VERSION in headers and headers[VERSION].decode("latin-1") != said:
        return "the header MCP-Protocol-Version names another revision than the message"
    if _METHOD in headers and headers[_METHOD].decode("latin-1") != message.method:
        return "the header Mcp-Method names another method than the message"
    if _NAME in headers:
        key = _NAMED.get(message.method)
        if key is None or _decoded(headers[_NAME]) != message.params.get(key):
            return "the header Mcp-Name names another thing than the message"
    given = _scalars(message.params.get("arguments"))
    for name, value in headers.items():
        if name.startswith(_PARAM) and _decoded(value) not in given:
            return f"the header {name.decode('latin-1')} says what no argument of the call says"
    return ""


def headers_of(message: Message) -> dict[bytes, bytes]:
    """Return what the headers of a message that stands alone say of it."""
    if not isinstance(message, Request):
        return {}
    said = versions.version_said(message.params)
    if not isinstance(said, str) or not versions.is_modern(said):
        return {}
    found = {VERSION: said.encode(), _METHOD: message.method.encode()}
    key = _NAMED.get(message.method)
    if key is not None and isinstance(name := message.params.get(key), str):
        plain = name.isascii() and name.isprintable() and name == name.strip() and not name.startswith("=?")
        found[_NAME] = name.encode() if plain else b"=?base64?%b?=" % base64.b64encode(name.encode())
    return found


def _scalars(value: object) -> set[str | None]:
    """Return all that arguments say, as a header says it."""
    match value:
        case dict():
            return {one for inner in value.values() for one in _scalars(inner)}
        case bool():
            return {"true" if value else "false"}
        case str() | int() | float():
            return {str(value)}
    return set()


def _decoded(value: bytes) -> str | None:
    """Return what a header says: text that no header may hold is in base64 between marks."""
    text = value.decode("latin-1")
    if not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    try:
        return base64.b64decode(text[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
