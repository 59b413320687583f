"""A client's HTTP request, checked before anything of it is read: where it was meant to go, from which page, for what.

Holds: a page in a browser can reach the loopback under a name of its own (DNS rebinding) or from its own origin;
neither is taken. What the headers say of a message, the message says too: the server may go by either.
Source: MCP, streamable HTTP, revisions 2025-06-18 to 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock.boundary.mcp import versions
from interlock.boundary.net.mcp_requests import VERSION
from interlock.boundary.net.sides import RequestHead
from interlock.model.errors import InputError
from interlock.model.records import dataclass

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who may come in. Takes: `hosts`, with ports; `origins`, as pages say them; `paths`, where the server is."""

    hosts: frozenset[tuple[str, int]]
    origins: frozenset[str]
    paths: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A request that is not taken."""

    status: int
    why: str


def read_listen(word: str) -> tuple[str, int]:
    """Return host and port of `--listen`. Raises: InputError."""
    host, _, port = word.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if bare not in _LOOPBACK or not port.isdecimal() or int(port) > 65535:
        raise InputError(
            f"`--listen {word}` is no place on this machine alone",
            hint="write it as: --listen 127.0.0.1:8931",
        )
    return "127.0.0.1" if bare == "localhost" else bare, int(port)


def door(port: int, path: str, hosts: list[str], origins: list[str]) -> Door:
    """Return who may come in. Takes: `hosts` and `origins`, that the user allows beside this machine's own."""
    allowed = {(name, port) for name in _LOOPBACK}
    for word in hosts:
        name, colon, at = word.rpartition(":")
        alone = not colon or not at.isdecimal()
        allowed.add((word.lower().strip("[]"), port) if alone else (name.lower().strip("[]"), int(at)))
    own = {f"http://{f'[{name}]' if ':' in name else name}:{port}" for name in _LOOPBACK}
    return Door(
        hosts=frozenset(allowed),
        origins=frozenset((*own, *(word.lower().rstrip("/") for word in origins))),
        paths=frozenset((path, "/mcp", "/")),
    )


def check_head(head: RequestHead, headers: Mapping[bytes, bytes], allowed: Door) -> Turned | None:
    """Return why a request is not taken, None where it is."""
    if head.elsewhere or (head.authority_host, head.port) not in allowed.hosts:
        return Turned(
            status=421, why="the host field names another host than this one: allow it with --allow-host"
        )
    origin = headers.get(b"origin")
    if origin is not None and origin.decode("latin-1").lower() not in allowed.origins:
        return Turned(status=403, why="it comes from a page of another origin: allow it with --allow-origin")
    if head.target.partition("?")[0] not in allowed.paths:
        return Turned(status=404, why="the server is at `/mcp`")
    if head.method == "OPTIONS" and origin is not None:
        return None
    if head.method not in ("POST", "GET", "DELETE"):
        return Turned(status=405, why="a server of MCP takes POST, GET and DELETE")
    said = headers.get(VERSION)
    if said is not None and not versions.is_known(said.decode("latin-1")):
        known = ", ".join(versions.KNOWN)
        return Turned(
            status=400, why=f"the revision of the protocol is not known to Interlock, which knows {known}"
        )
    if head.method == "POST":
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            return Turned(status=415, why="the body is no `application/json`")
        if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"", b"identity"):
            return Turned(status=415, why="the body is compressed")
        accept = headers.get(b"accept", b"*/*").lower()
        if b"*/*" not in accept and not (b"application/json" in accept and b"text/event-stream" in accept):
            return Turned(
                status=406, why="the client has to accept `application/json` and `text/event-stream`"
            )
    return None
