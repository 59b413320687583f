"""Requests to a server that is reached by HTTP, over the boundary's own connections."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from interlock.boundary.mcp.messages import MAX_BYTES
from interlock.boundary.net.dial import DialError
from interlock.boundary.net.names import canonical_literal, canonical_name
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.pool import Pool, Way
from interlock.boundary.net.sides import AnswerHead, FarSide, RawHeaders, RequestHead
from interlock.mcp.pending import ServerGone
from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.model.requests import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

_AHEAD_BYTES = 1024 * 1024
"""So much of an answer is read before it is wanted."""
_HEAD_SECONDS = 600.0
"""A call may take its time before the server says anything."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a server is. Takes: `host`, canonical; `target`, path and query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def path(self) -> str:
        """Return the path alone."""
        return self.target.partition("?")[0]


def endpoint_of(url: str) -> Endpoint:
    """Return where a URL leads. Raises: InputError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    name = parts.hostname or ""
    host = canonical_literal(name) or canonical_name(name)
    plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or not plain:
        raise InputError(
            f"`{url}` is no URL of a server",
            hint="write it whole, without a name or password in it: --upstream https://host.example/mcp",
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(
        scheme=parts.scheme,
        host=host,
        port=port or (443 if parts.scheme == "https" else 80),
        target=target,
    )


def header_values(headers: Mapping[str, str], environment: Mapping[str, str]) -> RawHeaders:
    """Return the headers whose values are in the environment.

    Takes: `headers`, variables by the header's name; a word before it (`Bearer TOKEN`) comes before its value.
    Raises: InputError.
    """
    found = []
    for name, said in headers.items():
        word, _, variable = said.rpartition(" ")
        value = environment.get(variable)
        if not _NAME.fullmatch(name) or not _VARIABLE.fullmatch(variable):
            raise InputError(
                f"`{name}={said}` names no header and variable",
                hint="write it as: --header-env 'Authorization=Bearer MAIL_TOKEN'",
            )
        if not value:
            raise InputError(
                f"the variable `{variable}` for the header `{name}` is not set",
                hint=f"set {variable} where the client starts Interlock",
            )
        if not value.isascii() or not value.isprintable():
            raise InputError(
                f"the variable `{variable}` holds what no header may hold", hint="use printable ASCII"
            )
        found.append((name.lower().encode(), f"{word} {value}".strip().encode()))
    return tuple(found)


class Upstream:
    """A server that is reached by HTTP. Takes: `own`, headers that each request gets, in place of the client's."""

    def __init__(self, endpoint: Endpoint, own: RawHeaders, plan: NetPlan) -> None:
        self.endpoint = endpoint
        self._own = own
        self._pool = Pool(plan, asyncio.get_running_loop())
        self._way = Way(
            address="",
            host=endpoint.host,
            port=endpoint.port,
            tls=endpoint.scheme == "https",
            published=False,
        )

    def sweep(self) -> None:
        """Close connections that were idle too long."""
        self._pool.sweep(asyncio.get_running_loop().time())

    def close(self) -> None:
        """Keep no connection."""
        self._pool.close()

    async def ask(self, method: str, headers: Sequence[tuple[bytes, bytes]], body: bytes = b"") -> Answer:
        """Send a request, and come back when its answer's head is here. Raises: ServerGone."""
        own = {name for name, _ in self._own}
        kept = [(name, value) for name, value in headers if name not in own]
        head = RequestHead(
            method=method,
            scheme=self.endpoint.scheme,
            authority_host=self.endpoint.host,
            port=self.endpoint.port,
            target=self.endpoint.target,
            headers=(*kept, (b"accept-encoding", b"identity"), *self._own),
            length=len(body),
        )
        answer = Answer()
        try:
            far = self._pool.ready(self._way, self._way.tls) or await self._pool.open(
                self._way, self._way.tls
            )
        except DialError as error:
            raise ServerGone(f"the server cannot be reached: {error.message}", sent=False) from error
        answer.far = far.begin(head, answer, body=bool(body))
        if body:
            answer.far.send(body)
            answer.far.end(())
        try:
            await asyncio.wait_for(answer.began, _HEAD_SECONDS)
        except TimeoutError:
            answer.abort()
            raise ServerGone("the server did not answer in time", sent=True) from None
        except BaseException:
            answer.abort()
            raise
        return answer


class Answer:
    """An answer that comes in: the exchange as the far side sees it."""

    def __init__(self) -> None:
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.far: FarSide | None = None
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self._parts: asyncio.Queue[bytes | ServerGone | None] = asyncio.Queue()
        self._ahead = 0
        self._over = False

    @property
    def kind(self) -> bytes:
        """Return the media type of the body, `b""` for none."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes. Raises: ServerGone, where it breaks off."""
        if self.headers.get(b"content-encoding", b"identity").strip().lower() not in (b"", b"identity"):
            self.abort()
            raise ServerGone("the server's answer is compressed, though it was asked not to be", sent=True)
        while True:
            part = await self._parts.get()
            if part is None:
                return
            if isinstance(part, ServerGone):
                raise part
            self._ahead -= len(part)
            if self.far is not None and self._ahead < _AHEAD_BYTES:
                self.far.read_on(True)
            yield part

    async def whole(self) -> bytes | None:
        """Return the body, None where it is longer than a message may be. Raises: ServerGone."""
        found = bytearray()
        async for part in self.parts():
            found += part
            if len(found) > MAX_BYTES:
                self.abort()
                return None
        return bytes(found)

    def abort(self) -> None:
        """Give it up."""
        if not self._over:
            self._over = True
            if self.far is not None:
                self.far.abort()
            self._parts.put_nowait(None)

    # the far side calls these

    def came_interim(self, head: AnswerHead) -> None:
        """Take note of a 1xx answer."""

    def came_head(self, head: AnswerHead) -> None:
        """Take the head."""
        self.status = head.status
        for name, value in head.headers:
            self.headers[name] = self.headers[name] + b", " + value if name in self.headers else value
        if not self.began.done():
            self.began.set_result(None)

    def came_data(self, chunk: bytes) -> None:
        """Take a part of the body."""
        self._ahead += len(chunk)
        if self._ahead >= _AHEAD_BYTES and self.far is not None:
            self.far.read_on(False)
        self._parts.put_nowait(chunk)

    def came_end(self, trailers: RawHeaders) -> None:
        """Take the end."""
        self._over = True
        self._parts.put_nowait(None)

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        """Take note that it failed."""
        self._over = True
        gone = ServerGone(f"the server broke off: {detail}", sent=outcome is not Outcome.FAILED)
        if not self.began.done():
            self.began.set_exception(gone)
        self._parts.put_nowait(gone)

    def far_full(self, full: bool) -> None:
        """Take note that the far side's link is full: a message is sent whole all the same."""

    # no client's code calls these: what is asked here is sent whole

    def body_data(self, chunk: bytes) -> None:
        """Nothing."""

    def body_end(self, trailers: RawHeaders) -> None:
        """Nothing."""

    def client_gone(self) -> None:
        """Nothing."""

    def client_full(self, full: bool) -> None:
        """Nothing."""
