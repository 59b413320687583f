"""A server that is reached by HTTP, guarded for clients that reach us by HTTP in its place."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from interlock.boundary.mcp.messages import Request, failure, read
from interlock.boundary.net.listening import listen
from interlock.boundary.net.mcp_requests import HEADER_MISMATCH, SESSION, check_message
from interlock.boundary.net.plan import NetPlan
from interlock.mcp.http_calls import Listening, Posting, headers_back, headers_onward
from interlock.mcp.http_door import Door, check_head, door, read_listen
from interlock.mcp.http_far import Upstream, endpoint_of, header_values
from interlock.mcp.http_front import Asked, Front
from interlock.mcp.http_lanes import Lane, Lanes
from interlock.mcp.opening import Settings, open_session, policy_of
from interlock.mcp.pending import ServerGone
from interlock.model.errors import InterlockError
from interlock.model.records import changed
from interlock.runtime.network import net_plan

if TYPE_CHECKING:
    from interlock.policy import Policy

_LOOKS_S = 5.0
IDLE_S = 3600.0
"""A session in which nothing was said for so long is ended, and its run sealed."""
_GRACE_S = 1.0


def serve_http(
    settings: Settings,
    *,
    upstream: str,
    listen: str,
    headers: Mapping[str, str],
    allow_hosts: list[str],
    allow_origins: list[str],
) -> int:
    """Guard a server until Ctrl-C or SIGTERM. Returns: the exit status.

    Raises: InputError, PolicyError; BoundaryError, where it cannot listen.
    """
    serving = _Serving(settings, upstream, headers)
    return asyncio.run(serving.run(read_listen(listen), allow_hosts, allow_origins))


def plan_of(policy: Policy, host: str, folder: str) -> NetPlan:
    """Return how the server is reached: the user named it for this very purpose, wherever it is."""
    plan = net_plan(policy, os.environ, folder, ())
    return changed(plan, reach_own=True, local_names=(*plan.local_names, host))


class _Serving:
    def __init__(self, settings: Settings, upstream: str, headers: Mapping[str, str]) -> None:
        self._settings = settings
        self._endpoint = endpoint_of(upstream)
        self._own = header_values(headers, os.environ)
        self._policy = policy_of(settings)
        self._over = asyncio.Event()
        self._lanes = Lanes(lambda: open_session(settings), settings.note)

    async def run(self, at: tuple[str, int], hosts: list[str], origins: list[str]) -> int:
        with tempfile.TemporaryDirectory(prefix="interlock-mcp-") as folder:
            plan = plan_of(self._policy, self._endpoint.host, folder)
            listener = listen(*at)
            port = listener.getsockname()[1]
            self._door: Door = door(port, self._endpoint.path, hosts, origins)
            self._upstream = Upstream(self._endpoint, self._own, plan)
            front = Front(listener, plan, self._serve)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self._over.set)
            host = f"[{at[0]}]" if ":" in at[0] else at[0]
            self._settings.note(f"`{self._settings.server}` is at http://{host}:{port}/mcp")
            while not self._over.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), _LOOKS_S)
                self._upstream.sweep()
                await self._lanes.end_idle(IDLE_S)
            await asyncio.gather(*(one.session.settled(_GRACE_S) for one in self._lanes.every()))
            for lane in self._lanes.every():
                await self._lanes.end(lane)
            await front.end()
            self._upstream.close()
        return self._lanes.status

    async def _serve(self, asked: Asked) -> None:
        turned = check_head(asked.head, asked.headers, self._door)
        if turned is not None:
            asked.turn_away(turned.status, turned.why)
            return
        if origin := asked.headers.get(b"origin"):
            asked.more += [
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
                (b"vary", b"origin"),
            ]
        try:
            match asked.head.method:
                case "POST":
                    await self._posted(asked)
                case "GET":
                    await self._listened(asked)
                case "DELETE":
                    await self._deleted(asked)
                case _:
                    asked.whole(204, headers=_PREFLIGHT)
        except InterlockError as error:
            asked.turn_away(503, error.message)

    async def _posted(self, asked: Asked) -> None:
        message = read(asked.body)
        if why := check_message(asked.headers, message):
            number = message.id if isinstance(message, Request) else None
            asked.whole(400, failure(number, HEADER_MISMATCH, why))
            return
        is_first = isinstance(message, Request) and message.method == "initialize"
        if SESSION in asked.headers:
            lane = self._lanes.named(asked.headers)
            if lane is None:
                asked.turn_away(404, "the session is not known here: begin a new one")
                return
        elif is_first:
            lane = self._lanes.new()
        else:
            number = message.id if isinstance(message, Request) else None
            state = message.params.get("requestState") if isinstance(message, Request) else None
            lane = self._lanes.shared(asked.headers, number, state)
        posting = Posting(self._upstream, lane, asked, message)
        if not is_first or SESSION in asked.headers:
            await posting.run()
            return
        # The session has its name before the client can use it.
        posting.on_head = lambda: self._named(posting, lane, asked)
        await posting.run()
        if lane not in self._lanes.every():
            await self._lanes.end(lane)

    def _named(self, posting: Posting, lane: Lane, asked: Asked) -> None:
        answer = posting.answer
        if answer is None or answer.status >= 300:
            return
        name = answer.headers.get(SESSION, b"").decode("latin-1")
        if name:
            self._lanes.name(name, lane)
        else:
            self._lanes.share(asked.headers, lane)

    async def _listened(self, asked: Asked) -> None:
        lane = self._lanes.named(asked.headers)
        if lane is None and SESSION in asked.headers:
            asked.turn_away(404, "the session is not known here: begin a new one")
            return
        if lane is None:
            lane = self._lanes.shared(asked.headers, None, None)
        await Listening(self._upstream, lane, asked).run()

    async def _deleted(self, asked: Asked) -> None:
        lane = self._lanes.named(asked.headers)
        if lane is None:
            asked.turn_away(404, "the session is not known here")
            return
        try:
            answer = await self._upstream.ask("DELETE", headers_onward(asked.headers))
        except ServerGone as error:
            asked.turn_away(502, error.message)
            return
        answer.abort()
        if answer.status < 300 or answer.status == 404:
            await self._lanes.end(lane)
        if answer.status >= 400:
            asked.turn_away(answer.status, "the server did not end the session", headers_back(answer))
        else:
            asked.whole(204)


_PREFLIGHT = (
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, accept, last-event-id, "
        b"mcp-session-id, mcp-protocol-version, mcp-method, mcp-name",
    ),
    (b"access-control-max-age", b"600"),
)
