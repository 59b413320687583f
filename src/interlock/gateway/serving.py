"""The gateway's life: it listens, gives each session a run, seals runs that are idle, and all of them at its end."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interlock.boundary.net.listening import listen
from interlock.boundary.net.plan import BoundSecret, NetPlan
from interlock.boundary.net.pool import Pool
from interlock.gateway.front import Front
from interlock.gateway.opening import end_run, open_run
from interlock.gateway.session import Session
from interlock.gateway.settings import GatewaySettings
from interlock.model.errors import BoundaryError, InterlockError
from interlock.runtime.folders import NET_FOLDER
from interlock.runtime.network import net_plan

if TYPE_CHECKING:
    from interlock.runtime.control import Reply
    from interlock.runtime.control_protocol import ControlRequest

_LOOKS_S = 1.0
_THREADS = 32
"""They wait for the disk, where runs are opened and sealed."""
SESSIONS = 1024
"""So many runs are open at once, or fewer where descriptors are scarce; a session beyond is refused."""
_DESCRIPTORS = 8
"""Of a session: its lock, its ledger, its control socket and those that wait on it, and its bodies."""
_SPARE_DESCRIPTORS = 512


class Gateway:
    """Serves until it is told to stop. Raises: BoundaryError, where it cannot listen."""

    def __init__(self, settings: GatewaySettings, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._loop = loop
        self._sessions: dict[str, Session] = {}
        self._opening: dict[str, asyncio.Task[Session]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._room = _room()
        self._over = asyncio.Event()
        self.status = 0
        listener = listen(settings.host, settings.port)
        self.at: tuple[str, int] = listener.getsockname()[:2]
        self._spare = tempfile.TemporaryDirectory(prefix="interlock-gateway-")
        plan = self._plan(self._spare.name)
        self._pool = Pool(plan, loop)
        self._front = Front(listener, plan, settings.upstreams, settings.door, self._session_of, loop)

    async def serve(self) -> None:
        """Serve until `stop`, then seal every run."""
        host, port = self.at
        self._settings.tell(
            {
                "event": "listening",
                "url": f"http://{f'[{host}]' if ':' in host else host}:{port}",
                "upstreams": {one.name: one.url for one in self._settings.upstreams.all},
            }
        )
        while not self._over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), min(_LOOKS_S, self._settings.idle_s))
            self._seal_idle()
            self._pool.sweep(self._loop.time())
        for session in list(self._sessions.values()):
            await self._stop_passing(session)
        await self._front.end()
        if self._opening:
            await asyncio.wait(list(self._opening.values()))
        self._pool.close()
        for name in list(self._sessions):
            self._end(name)
        while self._ending:
            await asyncio.wait(self._ending)
        self._spare.cleanup()

    def stop(self) -> None:
        """End it."""
        self._over.set()

    def faulted(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Tell of a fault of our own: it ended a connection, and no more."""
        error = context.get("exception")
        what = context.get("message", "") if error is None else type(error).__name__
        self._settings.tell({"event": "fault", "what": str(what)})

    def _plan(self, folder: str) -> NetPlan:
        settings = self._settings
        bound = tuple(
            BoundSecret(
                name=one.name,
                hosts=(one.host,),
                placeholder=settings.door.placeholders[one.name],
                secret=settings.keys[one.name],
                plain_http=not one.tls,
            )
            for one in settings.upstreams.all
            if one.name in settings.keys
        )
        plan = net_plan(settings.policy, settings.environment, folder, bound)
        # The operator named these hosts for this very purpose, wherever they are.
        names = tuple(one.host for one in settings.upstreams.all)
        return replace(plan, reach_own=True, local_names=(*plan.local_names, *names))

    # sessions

    def _session_of(self, name: str) -> Session | asyncio.Future[Session]:
        session = self._sessions.get(name)
        if session is not None:
            return session
        opening = self._opening.get(name)
        if opening is None:
            opening = self._opening[name] = self._loop.create_task(self._open(name))
            opening.add_done_callback(lambda _done: self._opening.pop(name))
        return opening

    async def _open(self, name: str) -> Session:
        """Open a session's run, in a thread: what its folder and its ledger need of the disk takes its time."""
        if self._over.is_set() or len(self._sessions) + len(self._opening) > self._room:
            raise BoundaryError("the gateway takes no more sessions", hint="wait until others are idle")
        try:
            opened = await asyncio.to_thread(open_run, self._settings, name)
        except OSError as error:
            raise BoundaryError(
                f"the run's folder cannot be made: {error.strerror or error}",
                hint="free space below the state folder, or end other sessions",
            ) from error
        try:
            folder = os.path.join(opened.performer.folder.path, NET_FOLDER)
            os.makedirs(folder, mode=0o700, exist_ok=True)
            session = Session(
                name,
                opened,
                self._plan(folder),
                self._pool,
                self._loop,
                run=self._front.run,
                lost=self._lost,
            )
        except BaseException:
            opened.lock.release()
            raise
        self._sessions[name] = session
        self._control(session)
        self._settings.tell({"event": "opened", "session": name, "run": opened.run_id})
        return session

    def _control(self, session: Session) -> None:
        """Let other terminals answer and stop; a run that cannot be reached loses nothing else."""
        from interlock.runtime.control import Control
        from interlock.runtime.living import Living

        performer = session.opened.performer
        served: list[Living] = []

        def stop() -> None:
            self._end(session.name)

        def serve(request: ControlRequest, reply: Reply) -> None:
            if not served:
                served.append(Living(performer, stop))
            served[0].serve(request, reply)

        with suppress(OSError):
            session.control = Control(performer.folder.path, performer.folder.run_id, serve)
            source = session.control.source()
            self._loop.add_reader(source.descriptor, source.react)

    def _seal_idle(self) -> None:
        before = self._loop.time() - self._settings.idle_s
        for name, session in list(self._sessions.items()):
            since = session.idle_since()
            if since is not None and since <= before:
                self._end(name)

    def _end(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        if session is not None:
            task = self._loop.create_task(self._ended(session))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _stop_passing(self, session: Session) -> None:
        with suppress(InterlockError):
            await session.finish()

    async def _ended(self, session: Session) -> None:
        performer = session.opened.performer
        fault = ""
        try:
            await session.finish()
            # What is asked at a scope's end takes its time, and what waited is sent by a loop of its own.
            await asyncio.to_thread(end_run, session.opened)
        except InterlockError as error:
            fault = error.message
            self.status = error.exit_status
        self._settings.tell(
            {
                "event": "closed",
                "session": session.name,
                "run": session.opened.run_id,
                "phase": performer.state.phase.value,
                "exchanges": session.exchanges,
                "refused": len(performer.resolution.turned_away),
                "fault": fault or performer.resolution.fault,
            }
        )

    def _lost(self, session: Session) -> None:
        """The ledger of a session cannot be written: nothing of it passes any more, the others go on."""
        self.status = 4
        self._loop.call_soon(self._end, session.name)


def serve(settings: GatewaySettings) -> int:
    """Serve until Ctrl-C or SIGTERM. Returns: the exit status. Raises: BoundaryError, where it cannot listen."""
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serving(settings, loop))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def _serving(settings: GatewaySettings, loop: asyncio.AbstractEventLoop) -> int:
    loop.set_default_executor(ThreadPoolExecutor(_THREADS))
    gateway = Gateway(settings, loop)
    loop.set_exception_handler(gateway.faulted)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, gateway.stop)
    await gateway.serve()
    return gateway.status


def _room() -> int:
    """Return how many sessions there is room for, after asking for as many descriptors as may be had."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return SESSIONS
    return max(1, min(SESSIONS, (soft - min(_SPARE_DESCRIPTORS, soft // 2)) // _DESCRIPTORS))
