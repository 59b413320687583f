"""The second reading of hosts and URLs: what one word of a text names, read at its span and at its borders.

A word that a person and a program read differently names nothing.
"""

import unicodedata
from collections.abc import Mapping

from interlock.model.records import dataclass
from interlock.policy.derivations import names
from interlock.policy.derivations.reading import Reading, mail_domain, phrase, unseen

_WEB = (80, 443)
_OWN_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_OTHER_PORTS = {"ssh": 22, "git+ssh": 22, "git": 9418}
_SCHEMES = ("http", "https", "ws", "wss", "ssh", "git", "git+http", "git+https", "git+ssh")
_BREAKS = "\"'`<>|{}\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e"
_ENDS = ".,:;!?)]*"
_BEGINS = "([*"
_PARTS = ",;()[]="
_FILES = "bz cc java la md mk mov name pl pm ps py rs sc sh so st tf vi zip"
_NAME = "abcdefghijklmnopqrstuvwxyz0123456789_-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a span names. Takes: `port`, 0 where it says none; `scheme`, `""` for a bare word; `path`, of a URL."""

    host: str
    port: int
    scheme: str = ""
    path: str = ""


def _breaks(char: str) -> bool:
    return char.isspace() or char in _BREAKS


def named_at(text: str, start: int, end: int) -> Named | None:
    """Return the host or URL that a span is, None where it is none, or a part of another word."""
    span = text[start:end]
    if not span or any(map(_breaks, span)) or "](" in span:
        return None
    scheme = span.partition("://")[0].lower() if "://" in span else ""
    if scheme in _SCHEMES:
        return _url_at(text, start, end, scheme)
    begin = start
    while begin and text[begin - 1] in _BEGINS:
        begin -= 1
    opened = (
        begin == 0 or _breaks(text[begin - 1]) or any(c in _PARTS for c in text[max(0, begin - 1) : start])
    )
    if not opened or span[0] in _BEGINS or span[-1] in _ENDS or any(c in _PARTS for c in span):
        return None
    if text[end : end + 1] == "(" or not _ends(text, end, _PARTS) or _after_url(text, start):
        return None
    return _bare(span)


def _ends(text: str, end: int, more: str) -> bool:
    at = end
    while at < len(text) and text[at] in _ENDS:
        at += 1
    if at == len(text) or _breaks(text[at]) or text[at] in more:
        return True
    # A bare word goes up to the URL that stands behind it.
    joined = text[at - 1].isascii() and (text[at - 1].isalnum() or text[at - 1] in "+.-")
    if more and not joined and text[at : at + 12].partition("://")[0].lower() in _SCHEMES:
        return True
    return text[end : at + 1].endswith("](") or any(char in more for char in text[end:at])


def _word_before(text: str, start: int) -> str:
    """Return what stands before a span in its word; `](` of a Markdown link begins a new one."""
    at = start
    while at and not _breaks(text[at - 1]):
        if text[at - 2 : at] == "](" and at <= start:
            break
        at -= 1
    return text[at:start]


def _after_url(text: str, start: int) -> bool:
    before = _word_before(text, start).lower()
    at = before.find("://")
    while at >= 0:
        cut = at
        while cut and before[cut - 1].isascii() and (before[cut - 1].isalnum() or before[cut - 1] in "+.-"):
            cut -= 1
        if any(before[cut:at] == scheme for scheme in _SCHEMES):
            return True
        at = before.find("://", at + 1)
    return False


def _url_at(text: str, start: int, end: int, scheme: str) -> Named | None:
    before = text[start - 1 : start]
    if before and (unseen(before) or (before.isascii() and (before.isalnum() or before in "+.-"))):
        return None
    if text[end - 1] in _ENDS or not _ends(text, end, "") or _after_url(text, start):
        return None
    rest = text[start:end].partition("://")[2]
    cut = min((at for at in (rest.find(mark) for mark in "/?#") if at >= 0), default=len(rest))
    authority, after = rest[:cut], rest[cut:]
    if authority.count("@") > 1 or any(char in authority for char in "\\%"):
        return None
    user, _, address = authority.rpartition("@")
    host, port = _split(address)
    if "." in user or not host or port is None or (port == 0 and address.endswith(":0")):
        return None
    path = after.partition("?")[0].partition("#")[0] or "/"
    plain = "" if hides_dots(path) else path
    return Named(host=host, port=port or _OTHER_PORTS.get(scheme, 0), scheme=scheme, path=plain)


def _bare(span: str) -> Named | None:
    user, at, rest = span.partition("@")
    if at and ":" in rest and ":" not in user:
        host, _, path = rest.partition(":")
        named = _host(host)
        plain = user and all(char.isascii() and (char.isalnum() or char in "_-") for char in user)
        number = path.partition("/")[0]
        if plain and named and path and "@" not in path and not (number.isascii() and number.isdigit()):
            return Named(host=named, port=22)
    cut = min((place for place in (span.find(mark) for mark in "/?#") if place >= 0), default=len(span))
    host, port = _split(span[:cut])
    if not host or host.startswith("[") or port is None or host.rpartition(".")[2] in _FILES.split():
        return None
    return Named(host=host, port=port)


def _split(address: str) -> tuple[str, int | None]:
    """Return host and port of an address; port 0 where there is none, None where it is no port."""
    if address.startswith("["):
        inner, closed, rest = address[1:].partition("]")
        return (_ip6(inner) if closed else ""), _port(rest)
    host, colon, port = address.partition(":")
    return _host(host), _port(colon + port)


def _port(text: str) -> int | None:
    if not text:
        return 0
    digits = text[1:]
    if text[0] != ":" or not 1 <= len(digits) <= 5 or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits) if int(digits) <= 65535 else None


def _ip6(text: str) -> str:
    import ipaddress

    try:
        return ipaddress.IPv6Address(text).compressed if "%" not in text else ""
    except ValueError:
        return ""


def _host(text: str) -> str:
    """Return a host as an effect writes it: labels in lower case, letters beyond ASCII as A-labels."""
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if not 3 <= len(name) <= 253 or len(labels) < 2:
        return ""
    if labels[-1].isdigit():
        return name if len(labels) == 4 and all(part in map(str, range(256)) for part in labels) else ""
    found = [label if label.isascii() else _a_label(label) for label in labels]
    for label in found:
        if (
            not 1 <= len(label) <= 63
            or label[0] == "-"
            or label[-1] == "-"
            or any(c not in _NAME for c in label)
        ):
            return ""
    return ".".join(found)


def _a_label(label: str) -> str:
    composed = unicodedata.normalize("NFC", label)
    if any(not (c.isalnum() or c == "-" or unicodedata.category(c)[0] == "M") for c in composed):
        return ""
    return "xn--" + composed.encode("punycode").decode("ascii")


def hides_dots(path: str) -> bool:
    """Say whether a path could be read as another: dot segments, also encoded, back slashes, bytes that are no text."""
    from urllib.parse import unquote

    if not any(mark in path for mark in ("%", "\\", "/.")):
        return False
    for _ in range(4):
        once = unquote(path, errors="replace")
        if once == path:
            return "\ufffd" in path or any(part in (".", "..") for part in path.replace("\\", "/").split("/"))
        path = once
    return True


def _effect_host(value: str) -> tuple[str, int]:
    """Return host and port of a value as an effect writes it."""
    if value.startswith("["):
        host, _, port = value[1:].partition("]")
        return host, int(port[1:] or 0) if port[1:].isdecimal() or not port else -1
    host, colon, port = value.partition(":")
    return host, (int(port) if port.isdecimal() else -1) if colon else 0


def host(value: str, text: str, start: int, end: int) -> bool:
    """A bare word is the host."""
    named = named_at(text, start, end)
    return named is not None and not named.scheme and _is_host(named, value)


def url_host(value: str, text: str, start: int, end: int) -> bool:
    """The word is a URL at this host."""
    named = named_at(text, start, end)
    return named is not None and bool(named.scheme) and _is_host(named, value)


def _is_host(named: Named, value: str) -> bool:
    wanted, port = _effect_host(value)
    if named.host != wanted or port < 0:
        return False
    return named.port in (0, *_WEB) if port == 0 else named.port == port or (named.port == 0 and port in _WEB)


def origin(value: str, text: str, start: int, end: int) -> bool:
    """The word is a URL at this scheme and host; `https` may stand for `http`, never the other way."""
    scheme, _, rest = value.partition("://")
    given, _, there = text[start:end].partition("://")
    for mark in "/?#":
        there = there.partition(mark)[0]
    same = rest.rstrip("/").lower() == there.lower()
    return same and (given.lower(), scheme) in _UPGRADES and _whole_link(text, start, end)


_UPGRADES = (("http", "http"), ("https", "https"), ("http", "https"))


def url_value(value: str, text: str, start: int, end: int) -> bool:
    """The link that the word is; over TLS where the text has none, never the other way."""
    span = text[start:end]
    if "://" not in span and span[:4].lower() != "www.":
        return False
    (scheme, wanted), (given, there) = _cut(value), _cut(span)
    if wanted != there or not (
        scheme == given or not scheme or not given or (given, scheme) == ("http", "https")
    ):
        return False
    return _whole_link(text, start, end)


def bare_host(value: str, text: str, start: int, end: int) -> bool:
    """A URL that is no more than its host's name, as whole words."""
    plain = "." in value and not any(mark in value for mark in "/?#@")
    return plain and phrase(value, text, start, end)


def _cut(link: str) -> tuple[str, str]:
    scheme, found, rest = link.partition("://")
    if not found:
        scheme, rest = "", link
    at = rest.find("/") if "/" in rest else len(rest)
    head = rest[:at].lower() if rest[:at].isascii() else rest[:at]
    return scheme.lower(), (head + rest[at:]).rstrip("/")


def _whole_link(text: str, start: int, end: int) -> bool:
    before = text[start - 1 : start]
    if before and (before.isalnum() or before in "_@." or unseen(before)):
        return False
    at = start
    while at and not text[at - 1].isspace() and text[at - 1] not in "\"'<>()":
        at -= 1
    if "://" in text[at:start] or "www." in text[at:start].lower():
        return False
    at = end
    while at < len(text) and text[at] in ".,;:!?]}":
        at += 1
    return at == len(text) or text[at].isspace() or text[at] in "\"'<>()"


def url(value: str, text: str, start: int, end: int) -> bool:
    """The word is this URL, without its query."""
    named, wanted = named_at(text, start, end), _wanted(value)
    return (
        named is not None and wanted is not None and _same_place(named, wanted) and named.path == wanted.path
    )


def url_prefix(value: str, text: str, start: int, end: int) -> bool:
    """The word is a URL above this one: its path up to a `/`."""
    named, wanted = named_at(text, start, end), _wanted(value)
    if named is None or wanted is None or not named.path or not _same_place(named, wanted):
        return False
    return wanted.path.startswith(named.path.removesuffix("/") + "/")


def _wanted(value: str) -> Named | None:
    scheme, found, rest = value.partition("://")
    authority, slash, path = rest.partition("/")
    if not found or not slash or hides_dots("/" + path):
        return None
    host, port = _effect_host(authority)
    return Named(host=host, port=port, scheme=scheme, path="/" + path)


def _same_place(named: Named, wanted: Named) -> bool:
    own = _OWN_PORTS.get(wanted.scheme, 0)
    same = named.scheme == wanted.scheme and named.host == wanted.host
    return same and (named.port or own) == (wanted.port or own)


NET_READINGS: Mapping[str, Reading] = {
    names.HOST: host,
    names.URL_HOST: url_host,
    names.URL: url,
    names.URL_PREFIX: url_prefix,
}
"""Of what a request steers by."""

TOOL_READINGS: Mapping[str, Reading] = {
    names.HOST: host,
    names.URL_HOST: url_host,
    names.ORIGIN: origin,
    names.MAIL_DOMAIN: mail_domain,
    names.URL: url_value,
}
"""Of what a tool's argument says."""
