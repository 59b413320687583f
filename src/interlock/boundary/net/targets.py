"""Targets and authorities: a request's destination and path in their one spelling, or nothing."""

import re
from functools import lru_cache

from interlock.boundary.net.names import canonical_literal, canonical_name

_PORT = re.compile(r"[0-9]{1,5}\Z")
_PATH = re.compile(r"(?:[!$&'()*+,\-./0-9:;=@A-Z_a-z~\"<>^`{|}\[\]]|%[0-9A-Fa-f]{2})*\Z")
_QUERY = re.compile(
    r"[\x21\x22\x24-\x7e]*\Z"
)  # visible ASCII but `#`: senders leave much unescaped in a query
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)
_SCHEMES = {"http": 80, "https": 443}


@lru_cache(maxsize=1024)
def read_authority(text: str, default_port: int) -> tuple[str, int] | None:
    """Read `host`, `host:port`, `[v6]` or `[v6]:port`.

    Takes: `default_port`, 0 where a port must be given.
    Returns: the canonical host and the port; None for anything with another or a second meaning: user information,
    percent-escapes, non-ASCII, zones, odd spellings of an address, port 0.
    """
    if text.startswith("["):
        inside, bracket, rest = text[1:].partition("]")
        if not bracket or ":" not in inside or (rest and not rest.startswith(":")):
            return None
        host, port_text, colon = canonical_literal(inside), rest[1:], rest[:1]
    else:
        name, colon, port_text = text.partition(":")
        host = canonical_name(name) or (canonical_literal(name) if ":" not in name else "")
    if not host:
        return None
    if not colon:
        return (host, default_port) if default_port else None
    if not _PORT.match(port_text) or not 0 < int(port_text) < 65536:
        return None
    return host, int(port_text)


@lru_cache(maxsize=2048)
def read_origin(target: str) -> str | None:
    """Read an absolute path with its query.

    Returns: it with its dot segments removed, those with escaped dots too; None where it is no such target: a fragment,
    a backslash, a broken escape or an escaped NUL in the path.
    """
    if not target.startswith("/"):
        return None
    path, mark, query = target.partition("?")
    if not _PATH.match(path) or "%00" in path or not _QUERY.match(query):
        return None
    if _DOTS.search(path):
        path = _without_dots(path)
    return path + mark + query


def read_absolute(target: str) -> tuple[str, str, int, str] | None:
    """Read `http://authority/path?query`. Returns: scheme, host, port and origin form; None if it is no such target."""
    scheme, mark, rest = target.partition("://")
    scheme = scheme.lower()
    if not mark or scheme not in _SCHEMES:
        return None
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    place = read_authority(rest[:end], _SCHEMES[scheme])
    origin = read_origin(rest[end:] if rest[end : end + 1] == "/" else "/" + rest[end:])
    return None if place is None or origin is None else (scheme, *place, origin)


def authority(host: str, port: int, scheme: str) -> str:
    """Write a host and port as the `host` field has them."""
    name = f"[{host}]" if ":" in host else host
    return name if port == _SCHEMES.get(scheme) else f"{name}:{port}"


def _without_dots(path: str) -> str:
    """Remove dot segments (RFC 3986 §5.2.4); a path that climbs above its root stays at the root."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for at, segment in enumerate(segments):
        plain = segment.lower().replace("%2e", ".")
        last = at == len(segments) - 1
        if plain == "..":
            if kept:
                kept.pop()
        elif plain != ".":
            kept.append(segment)
            continue
        if last:
            kept.append("")
    return "/" + "/".join(kept)
