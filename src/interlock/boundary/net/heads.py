"""Heads: from what a parser read to the one meaning that is decided and sent on, or a refusal with its reason.

Every message is written anew from these, so that no two parsers on its way can read it in two ways.
"""

import re

from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, RawHeaders, RequestHead
from interlock.boundary.net.targets import read_absolute, read_authority, read_origin
from interlock.model.records import dataclass

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_VALUES = re.compile(rb"[\t\x20-\x7e\x80-\xff\0]*\Z")  # values joined by NUL, which none of them may hold
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")
_FRAMING = frozenset((b"host", b"content-length", b"transfer-encoding"))
_HOP = frozenset(
    (b"connection", b"keep-alive", b"te", b"upgrade", b"transfer-encoding", b"http2-settings", b"max-forwards",
     b"expect", b"content-length", b"host", b"alt-svc")
)  # fmt: skip
"""Fields for one hop, and those that are written anew; `alt-svc` names another way to a host, which is no way here."""
_TWINNED = frozenset(
    (
        b"host",
        b"connection",
        b"content-length",
        b"transfer-encoding",
        b"authorization",
        b"proxy-authorization",
    )
)
_NO_LETTER = re.compile(rb"[^0-9a-z]+")
_NO_OPTIONS: frozenset[bytes] = frozenset()
_KNOWN_NAMES = 4096

Special = dict[bytes, list[bytes]]
"""The values of the fields for one hop, by name."""
_PSEUDO = (b":method", b":scheme", b":authority", b":path")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRefusal:
    """Why a head is not taken. Takes: `status`, to answer with; `reason`, one line without payload."""

    status: int
    reason: str


class _Odd(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.refusal = HeadRefusal(status=status, reason=reason)


def read_request(  # noqa: PLR0917 - the order is that of the message
    method: bytes, target: bytes, minor: int, fields: RawHeaders, place: Place, limits: NetLimits
) -> RequestHead | HeadRefusal:
    """Check an HTTP/1 request's head.

    Takes: `minor`, of the version 1.x; `fields`, as they came, names in any case; `place`, where the connection was
    going.
    Returns: the head, with method `CONNECT`, its authority and an empty target for a tunnel.
    """
    try:
        return _request(method, target, minor, fields, place, limits)
    except _Odd as odd:
        return odd.refusal


def _request(  # noqa: PLR0917
    method: bytes, target: bytes, minor: int, fields: RawHeaders, place: Place, limits: NetLimits
) -> RequestHead:
    if minor not in (0, 1):
        raise _Odd(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
    if not _TOKEN.match(method) or len(method) > 32:
        raise _Odd(400, "the method is not a token")
    kept, special = _sorted(fields, limits)
    _refuse_twins(special)
    options = _options(special)
    length = _length(special, minor)
    scheme = "https" if place.tls else "http"
    verb = method.decode("ascii")
    host, port, origin = _destination(verb, _ascii(target), _one(special, b"host"), minor, scheme, place)
    expects = _expects(special)
    if verb == "CONNECT" and length != 0:
        raise _Odd(400, "a CONNECT has no body")
    return RequestHead(
        method=verb,
        scheme=scheme,
        authority_host=host,
        port=port,
        target=origin,
        headers=_kept(kept, options),
        length=length,
        upgrade="websocket" if _upgrades(verb, minor, special, options, length) else "",
        expects_continue=expects and minor == 1 and length != 0,
        elsewhere=not target.startswith(b"/") and (host, port) != (place.host, place.port),
    )


def read_request2(fields: RawHeaders, place: Place, limits: NetLimits) -> RequestHead | HeadRefusal:
    """Check an HTTP/2 request's head. Takes: `fields` with their pseudo fields.

    Returns: the head; its length is that of `content-length`, None where there is none (the caller knows whether
    the stream ends with the head, and then sets 0).
    """
    try:
        return _request2(fields, place, limits)
    except _Odd as odd:
        return odd.refusal


def _request2(fields: RawHeaders, place: Place, limits: NetLimits) -> RequestHead:
    split = next((at for at, (name, _) in enumerate(fields) if not name.startswith(b":")), len(fields))
    pseudo: dict[bytes, bytes] = {}
    for name, value in fields[:split]:
        if name in pseudo or name not in _PSEUDO:
            raise _Odd(400, "a pseudo field is repeated or unknown")
        pseudo[name] = value
    method = pseudo.get(b":method", b"")
    if not _TOKEN.match(method) or len(method) > 32:
        raise _Odd(400, "the method is not a token")
    if method == b"CONNECT":
        raise _Odd(405, "CONNECT is not spoken over HTTP/2 here")
    if any(name != name.lower() or name in (b"connection", b"keep-alive", b"proxy-connection", b"upgrade",
                                            b"transfer-encoding") for name, _ in fields[split:]):  # fmt: skip
        raise _Odd(400, "a field of HTTP/1 stands in an HTTP/2 head")
    if any(name == b"te" and value.lower() != b"trailers" for name, value in fields[split:]):
        raise _Odd(400, "te names more than trailers")
    kept, special = _sorted(fields[split:], limits)
    _refuse_twins(special)
    scheme = "https" if place.tls else "http"
    if pseudo.get(b":scheme", b"").lower() != scheme.encode():
        raise _Odd(400, "the scheme is not that of the connection")
    named = pseudo.get(b":authority")
    host_field = _one(special, b"host")
    if named is not None and host_field is not None and named.lower() != host_field.lower():
        raise _Odd(400, "host and :authority differ")
    verb = method.decode("ascii")
    path = _ascii(pseudo.get(b":path", b""))
    if path != "*" and not path.startswith("/"):
        raise _Odd(400, "the path is not absolute")
    asked = named if named is not None else host_field
    host, port, origin = _destination(verb, path, asked, 1, scheme, place)
    expects = _expects(special)
    sizes = special.get(b"content-length")
    if b"te" in special:
        kept.append((b"te", b"trailers"))  # a gRPC server may insist on it
    return RequestHead(
        method=verb,
        scheme=scheme,
        authority_host=host,
        port=port,
        target=origin,
        headers=tuple(kept),
        length=_size(sizes) if sizes else None,
        protocol="h2",
        expects_continue=expects,
    )


def read_answer(
    method: str, status: int, minor: int, fields: RawHeaders, limits: NetLimits
) -> AnswerHead | HeadRefusal:
    """Check an answer's head, of HTTP/1 (`minor` 0 or 1) or HTTP/2 (`minor` 2, pseudo fields taken out).

    Takes: `method`, of the request.
    Returns: the head. An answer that has no body by rule (to HEAD, 1xx, 204, 304) has length 0, and to HEAD and with
    304 its `content-length` stays among the fields, since it tells of a body that is not there.
    """
    try:
        return _answer(method, status, minor, fields, limits)
    except _Odd as odd:
        return odd.refusal


def _answer(method: str, status: int, minor: int, fields: RawHeaders, limits: NetLimits) -> AnswerHead:
    if not 100 <= status <= 599 or minor not in (0, 1, 2):
        raise _Odd(502, "the far side's status or version is not one of HTTP")
    kept, special = _sorted(fields, limits, 502)
    options = _options(special, 502)
    chunked = b"transfer-encoding" in special
    if chunked and minor == 2:
        raise _Odd(502, "a field of HTTP/1 stands in an HTTP/2 head")
    size = _length(special, minor, 502)
    sized = b"content-length" in special
    headers = _kept(kept, options)
    if bodyless(method, status):
        if sized and (method == "HEAD" or status == 304):
            headers += ((b"content-length", b"%d" % (size or 0)),)
        return AnswerHead(status=status, headers=headers, length=0)
    return AnswerHead(status=status, headers=headers, length=size if sized else None)


def bodyless(method: str, status: int) -> bool:
    """Say whether an answer has no body, whatever its fields say (RFC 9112 §6.3)."""
    return method == "HEAD" or status < 200 or status in (204, 304)


def read_trailers(fields: RawHeaders, limits: NetLimits) -> RawHeaders | None:
    """Check trailers; those that frame, route or authorise are dropped. Returns: None where they are broken."""
    if not fields:
        return ()
    try:
        kept, _ = _sorted(fields, limits)
    except _Odd:
        return None
    return tuple(field for field in kept if field[0] not in _NOT_TRAILERS)


_NOT_TRAILERS = frozenset((b"authorization", b"cookie", b"set-cookie", b"content-type", b"content-encoding",
    b"trailer"))  # fmt: skip


def persists(minor: int, fields: RawHeaders) -> bool:
    """Say whether an HTTP/1 connection goes on after the message with these fields."""
    for name, value in fields:
        if len(name) == 10 and name.lower() == b"connection":
            options = _split(value)
            if b"close" in options:
                return False
            if b"keep-alive" in options:
                minor = 1
    return minor == 1


_names: dict[bytes, tuple[bytes, bool]] = {}
"""Names that were checked before: in lower case, and whether they are for one hop."""


def _name(name: bytes, status: int) -> tuple[bytes, bool]:
    if not _TOKEN.match(name):
        raise _Odd(status, "a field's name is not a token")
    lower = name.lower()
    if len(_names) >= _KNOWN_NAMES:
        _names.clear()
    found = _names[bytes(name)] = (lower, lower in _HOP or lower.startswith(b"proxy-") or _is_twin(lower))
    return found


def _is_twin(lower: bytes) -> bool:
    """Say whether a name becomes that of another field where names become variables (RFC 3875 §4.1.18)."""
    return lower not in _TWINNED and _NO_LETTER.sub(b"-", lower).strip(b"-") in _TWINNED


def _refuse_twins(special: Special) -> None:
    for name in special:
        if name not in _HOP and _is_twin(name):
            raise _Odd(400, "a field's name is a twin of one that frames, routes or authorises the message")


def _sorted(
    fields: RawHeaders, limits: NetLimits, status: int = 400
) -> tuple[list[tuple[bytes, bytes]], Special]:
    """Check every field, and part those that go on from those for one hop and the twins of such."""
    if len(fields) > limits.header_fields:
        raise _Odd(431 if status == 400 else status, "too many header fields")
    kept: list[tuple[bytes, bytes]] = []
    special: Special = {}
    known = _names.get
    for name, value in fields:
        lower, hop = known(name) or _name(name, status)
        if hop:
            special.setdefault(lower, []).append(value.strip(b" \t"))
        else:
            kept.append((lower, value.strip(b" \t")))
    joined = b"\0".join([value for _, value in fields])
    if not _VALUES.match(joined) or joined.count(b"\0") != max(len(fields) - 1, 0):
        raise _Odd(status, "a field's value holds control characters")
    return kept, special


def _one(special: Special, name: bytes) -> bytes | None:
    values = special.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise _Odd(400, f"more than one {name.decode()} field")
    return values[0]


def _expects(special: Special) -> bool:
    expects = _one(special, b"expect")
    if expects is not None and expects.lower() != b"100-continue":
        raise _Odd(417, "only 100-continue can be expected")
    return expects is not None


def _split(value: bytes) -> list[bytes]:
    return [option.strip(b" \t") for option in value.lower().split(b",")]


def _options(special: Special, status: int = 400) -> frozenset[bytes]:
    """Return the connection's options, which name the fields that are for this hop alone."""
    values = special.get(b"connection")
    if values is None:
        return _NO_OPTIONS
    options = frozenset(option for value in values for option in _split(value))
    if options & _FRAMING:
        raise _Odd(status, "connection names a field that frames or routes the message")
    return options


def _length(special: Special, minor: int, status: int = 400) -> int | None:
    sizes = special.get(b"content-length")
    codings = special.get(b"transfer-encoding")
    if codings is None:
        return _size(sizes, status) if sizes else 0
    if sizes:
        raise _Odd(status, "both content-length and transfer-encoding")
    if len(codings) > 1 or codings[0].lower() != b"chunked":
        raise _Odd(501 if status == 400 else status, "only chunked, once, is spoken as a transfer coding")
    if minor == 0:
        raise _Odd(status, "transfer-encoding in HTTP/1.0")
    return None


def _size(sizes: list[bytes], status: int = 400) -> int:
    if len(sizes) > 1:
        raise _Odd(status, "more than one content-length")
    if not _LENGTH.match(sizes[0]):
        raise _Odd(status, "content-length is not a plain number")
    return int(sizes[0])


def _kept(kept: list[tuple[bytes, bytes]], options: frozenset[bytes]) -> RawHeaders:
    if options:
        return tuple([field for field in kept if field[0] not in options])
    return tuple(kept)


def _ascii(target: bytes) -> str:
    try:
        return target.decode("ascii")
    except UnicodeDecodeError:
        raise _Odd(400, "the target is not ASCII") from None


def _destination(  # noqa: PLR0917
    verb: str, target: str, host_field: bytes | None, minor: int, scheme: str, place: Place
) -> tuple[str, int, str]:
    """Find host, port and origin form, in agreement with `place`."""
    if host_field is None and minor == 1:
        raise _Odd(400, "no host field")
    default = 443 if scheme == "https" else 80
    named = None
    if host_field is not None:
        named = read_authority(host_field.decode("latin-1"), default)
        if named is None:
            raise _Odd(400, "the host field is no host that can be read in one way alone")
    if verb == "CONNECT":
        return _tunnel(target, named, place)
    if target == "*":
        if verb != "OPTIONS":
            raise _Odd(400, "the target * belongs to OPTIONS alone")
        origin: str | None = "*"
    elif target.startswith("/"):
        origin = read_origin(target)
    else:
        return _absolute(target, scheme, place)
    if origin is None:
        raise _Odd(400, "the target is no path that can be read in one way alone")
    if place.published or named is None:
        return place.host, place.port, origin
    if named == (place.host, place.port):
        return place.host, place.port, origin
    if place.address and place.host == place.address and not place.tls and named[1] == place.port:
        return named[0], named[1], origin  # the address must be one of the name's: the dial checks it
    raise _Odd(421, "the host field names another place than the connection goes to")


def _absolute(target: str, scheme: str, place: Place) -> tuple[str, int, str]:
    """An absolute target wins over the host field (RFC 9112 §3.2.2): a client that takes us for its proxy."""
    found = read_absolute(target)
    if found is None or place.published:
        raise _Odd(400, "the target is neither a path nor a URL that can be read in one way alone")
    if found[0] != scheme:
        raise _Odd(421, "the target's scheme is not that of the connection")
    if place.tls and found[1:3] != (place.host, place.port):
        raise _Odd(421, "the target names another place than the connection goes to")
    return found[1:]


def _tunnel(target: str, named: tuple[str, int] | None, place: Place) -> tuple[str, int, str]:
    found = read_authority(target, 0)
    if found is None:
        raise _Odd(400, "the target of CONNECT is no host and port")
    if place.tls or place.published:
        raise _Odd(405, "CONNECT is taken on plain connections alone")
    if named is not None and named[0] != found[0]:
        raise _Odd(400, "the host field names another host than CONNECT")
    return *found, ""


def _upgrades(verb: str, minor: int, special: Special, options: frozenset[bytes], length: int | None) -> bool:
    """Only websocket is taken; any other upgrade is left out, which a client must live with."""
    asked = special.get(b"upgrade")
    if asked is None or b"upgrade" not in options or verb != "GET" or minor != 1:
        return False
    if not any(b"websocket" in _split(value) for value in asked):
        return False
    if len(asked) > 1 or asked[0].lower() != b"websocket" or length != 0:
        raise _Odd(400, "an upgrade to websocket stands alone, without a body")
    return True
