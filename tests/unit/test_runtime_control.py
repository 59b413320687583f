"""The way to a living monitor: what a client is told, and that no client can disturb the run."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.boundary.waiting import Source, by_loop, by_poll
from interlock.model.errors import BoundaryError, InputError, InterlockError, StuckError
from interlock.model.events import Staging, Standing
from interlock.runtime import control_protocol as words
from interlock.runtime.control import CLIENTS, Control, Reply, ask
from interlock.runtime.folders import RunFolder, RunLock
from interlock.runtime.performer import LedgerLost

APPLY = words.write_request(words.ApplyNow(selection=("workspace:a",)))


def folder_at(path: str) -> RunFolder:
    return RunFolder(
        path=path, run_id="r1", folders=(), staging=Staging.OVERLAY, standing=Standing.USER,
        xattr_prefix="user.overlay.", argv=("true",), started_at_ns="0",
    )  # fmt: skip


class Monitor:
    """A run that only waits, on a thread of its own, as the sandbox does."""

    def __init__(self, path: str, wait: str) -> None:
        self.served: list[words.ControlRequest] = []
        self.replies: list[Reply] = []
        self.serve: Callable[[words.ControlRequest, Reply], None] = lambda _request, reply: reply.finish()
        self.failure: BaseException | None = None
        self.control = Control(path, "r1", self._serve)
        self.folder = folder_at(path)
        self._wait = wait
        self._stop, self._end = os.pipe()
        self._over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _serve(self, request: words.ControlRequest, reply: Reply) -> None:
        self.served.append(request)
        self.replies.append(reply)
        self.serve(request, reply)

    def _run(self) -> None:
        def stop() -> None:
            os.read(self._stop, 1)
            self._over = True

        sources = (self.control.source(), Source(descriptor=self._stop, react=stop))
        try:
            if self._wait == "poll":
                by_poll(sources, (), lambda: self._over)
            else:
                loop = asyncio.new_event_loop()
                try:
                    by_loop(loop, sources, lambda: self._over)
                finally:
                    loop.close()
        except BaseException as error:
            self.failure = error

    def end(self) -> None:
        """The command is gone."""
        if not self._over:
            os.write(self._end, b"x")
            self._thread.join()
            self._over = True

    def close(self) -> None:
        self.end()
        self.control.close()
        os.close(self._stop)
        os.close(self._end)

    def dial(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(os.path.join(self.folder.path, "control"))
        sock.settimeout(5)
        return sock


@pytest.fixture(params=["poll", "loop"])
def monitor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Monitor]:
    made = Monitor(str(tmp_path), request.param)
    yield made
    made.close()


def quiet(_line: str) -> None:
    pass


def said_to(sock: socket.socket) -> bytes:
    out = b""
    with contextlib.suppress(ConnectionResetError):
        while data := sock.recv(65536):
            out += data
    return out


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_control_serves_a_request_with_notes_and_one_answer(monitor: Monitor) -> None:
    def serve(request: words.ControlRequest, reply: Reply) -> None:
        reply.note("one")
        reply.note("two\nlines")
        reply.finish({"committed": 3})
        reply.note("too late")

    monitor.serve = serve
    notes: list[str] = []
    assert ask(monitor.folder, APPLY, notes.append) == {"committed": 3}
    assert notes == ["one", "two\nlines"]
    assert monitor.served == [words.ApplyNow(selection=("workspace:a",))]


def test_control_answers_later_than_it_serves(monitor: Monitor) -> None:
    monitor.serve = lambda _request, _reply: None
    threading.Timer(0.05, lambda: monitor.replies[0].finish({"late": True})).start()
    assert ask(monitor.folder, APPLY, quiet) == {"late": True}


@pytest.mark.parametrize("error", [InputError("`x` is none", hint="y"), BoundaryError("b"), StuckError("c")])
def test_control_tells_an_error_by_its_class_and_goes_on(monitor: Monitor, error: InterlockError) -> None:
    def serve(_request: words.ControlRequest, _reply: Reply) -> None:
        raise error

    monitor.serve = serve
    with pytest.raises(type(error)) as told:
        ask(monitor.folder, APPLY, quiet)
    assert (told.value.message, told.value.hint, told.value.code) == (error.message, error.hint, error.code)
    monitor.serve = lambda _request, reply: reply.finish()
    assert ask(monitor.folder, APPLY, quiet) == {}


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [(LedgerLost("full", hint="h"), "ledger-lost", 4), (KeyError("x"), "bug", 70)],
)
def test_control_tells_a_fault_of_the_monitor_and_hands_it_up(
    monitor: Monitor, error: Exception, code: str, status: int
) -> None:
    def serve(_request: words.ControlRequest, _reply: Reply) -> None:
        raise error

    monitor.serve = serve
    with pytest.raises(InterlockError) as told:
        ask(monitor.folder, APPLY, quiet)
    assert (told.value.code, told.value.exit_status) == (code, status)
    until(lambda: monitor.failure is error)


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"{}\n",
        b'{"v":2,"verb":"stop"}\n',
        b'{"v":true,"verb":"stop"}\n',
        b'{"v":1,"verb":"stop","verb":"stop"}\n',
        b'{"v":1,"verb":"stop","more":1}\n',
        b'{"v":1,"verb":"undo"}\n',
        b'{"v":1,"verb":"apply","selection":"a"}\n',
        b'{"v":1,"verb":"apply","selection":["\\ud800"]}\n',
        b'{"v":1,"verb":"apply","oracle":"human"}\n',
        b'{"v":1,"verb":"apply","on_conflict":"mine"}\n',
        b'{"v":1,"verb":"apply","selection":["' + b"a" * 70_000 + b'"]}\n',
        b"[" * 100_000 + b"\n",
        b"a" * 2_000_000,
    ],
)
def test_control_refuses_what_is_no_request(monitor: Monitor, line: bytes) -> None:
    with monitor.dial() as sock:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(line)
        answer = said_to(sock)
    with pytest.raises(InputError):
        words.read_reply(answer)
    assert monitor.served == []
    assert ask(monitor.folder, APPLY, quiet) == {}


def test_control_takes_a_request_in_pieces(monitor: Monitor) -> None:
    with monitor.dial() as sock:
        for byte in b'{"v":1,"verb":"stop"}\n':
            sock.send(bytes([byte]))
            time.sleep(0.001)
        assert said_to(sock) == b'{"ok":true}\n'
    assert monitor.served == [words.StopNow()]


def test_control_forgets_clients_that_go_away_at_any_moment(monitor: Monitor) -> None:
    monitor.serve = lambda _request, _reply: None
    for sent in (b"", b'{"v":1', b'{"v":1,"verb":"stop"}\n'):
        for _ in range(CLIENTS * 2):
            with monitor.dial() as sock:
                sock.send(sent) if sent else None
    until(lambda: len(monitor.served) == CLIENTS * 2 and all(one.gone for one in monitor.replies))
    monitor.replies[0].note("nobody")
    monitor.replies[0].finish({"nobody": True})
    monitor.serve = lambda _request, reply: reply.finish()
    assert ask(monitor.folder, APPLY, quiet) == {}


def test_control_talks_to_so_many_at_once_and_makes_room_for_them_when_they_idle(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = [monitor.dial() for _ in range(CLIENTS)]
    with pytest.raises(InputError, match="8 others"):
        ask(monitor.folder, APPLY, quiet)
    monkeypatch.setattr("interlock.runtime.control.IDLE_S", 0.01)
    time.sleep(0.02)
    assert ask(monitor.folder, APPLY, quiet) == {}
    for sock in idle:
        sock.close()


def test_control_never_waits_for_a_client_that_does_not_read(monitor: Monitor) -> None:
    took: list[float] = []

    def serve(_request: words.ControlRequest, reply: Reply) -> None:
        began = time.monotonic()
        for _ in range(2000):
            reply.note("x" * 900)
        reply.finish({"long": "y" * 3_000_000})
        took.append(time.monotonic() - began)

    monitor.serve = serve
    with monitor.dial() as slow:
        slow.sendall(b'{"v":1,"verb":"stop"}\n')
        until(lambda: bool(took))
        monitor.serve = lambda _request, reply: reply.finish()
        assert ask(monitor.folder, APPLY, quiet) == {}
        assert took[0] < 1
        # Notes were dropped, the answer was not.
        answer = said_to(slow)
        assert len(answer) < 3_700_000
        assert answer.endswith(b'y"}\n')


def test_control_refuses_an_answer_that_is_too_long(monitor: Monitor) -> None:
    monitor.serve = lambda _request, reply: reply.finish({"long": "y" * words.REPLY_BYTES})
    with pytest.raises(InputError, match="too long"):
        ask(monitor.folder, APPLY, quiet)


def test_control_is_the_owners_alone_and_goes_with_the_run(monitor: Monitor) -> None:
    path = os.path.join(monitor.folder.path, "control")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    monitor.close()
    assert not os.path.lexists(path)
    monitor.control.close()
    with pytest.raises(InputError, match="not under way") as told:
        ask(monitor.folder, APPLY, quiet)
    assert told.value.hint == "resolve it: interlock review r1"
    os.makedirs(monitor.folder.ledger, exist_ok=True)
    with open(monitor.folder.at("ledger", "seal.dsse.json"), "w", encoding="utf-8"):
        pass
    with pytest.raises(InputError, match="not under way") as told:
        ask(monitor.folder, APPLY, quiet)
    assert told.value.hint == "the run is over: interlock show r1"
    os.close(os.pipe()[0])  # descriptors are as before
    monitor._stop, monitor._end = os.pipe()  # for the fixture's own close


def test_control_says_that_a_run_resolves_when_its_command_is_gone(monitor: Monitor) -> None:
    monitor.serve = lambda _request, _reply: None
    with monitor.dial() as owed, monitor.dial() as late:
        owed.sendall(b'{"v":1,"verb":"stop"}\n')
        until(lambda: bool(monitor.served))
        monitor.end()
        monitor.control.shut()
        with pytest.raises(InputError, match="has ended"):
            words.read_reply(said_to(late))
        lock = RunLock(monitor.folder.path)
        lock.acquire("r1")
        with pytest.raises(InputError, match="another process resolves it"):
            ask(monitor.folder, APPLY, quiet)
        lock.release()
        monitor.replies[0].finish({"held": True})
        assert said_to(owed) == b'{"ok":true,"held":true}\n'


def test_control_tells_whoever_still_waits_that_the_run_ended(monitor: Monitor) -> None:
    monitor.serve = lambda _request, _reply: None
    with monitor.dial() as sock:
        sock.sendall(b'{"v":1,"verb":"stop"}\n')
        until(lambda: bool(monitor.served))
        monitor.end()
        monitor.control.close()
        with pytest.raises(StuckError, match="ended before"):
            words.read_reply(said_to(sock))


def test_control_works_below_a_folder_with_a_long_path(tmp_path: Path) -> None:
    path = tmp_path
    for _ in range(3):
        path = path / ("long" * 50)
    path.mkdir(parents=True)
    monitor = Monitor(str(path), "poll")
    try:
        assert ask(monitor.folder, APPLY, quiet) == {}
    finally:
        monitor.close()
    assert os.listdir(path) == []


def test_control_takes_the_place_of_a_socket_that_a_killed_monitor_left(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "control"))
    left.close()
    with pytest.raises(InputError, match="not under way"):
        ask(folder_at(str(tmp_path)), APPLY, quiet)
    monitor = Monitor(str(tmp_path), "poll")
    assert ask(monitor.folder, APPLY, quiet) == {}
    monitor.close()


SPEAKER = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX)
if sys.argv[2] == "other":
    os.setgroups([]); os.setresgid(1234, 1234, 1234); os.setresuid(1234, 1234, 1234)
if sys.argv[2] == "namespace":
    import ctypes
    assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == 0, ctypes.get_errno()
sock.connect(sys.argv[1])
try:
    sock.sendall(b'{"v":1,"verb":"stop"}\\n')
except BrokenPipeError:
    pass
try:
    while data := sock.recv(4096):
        os.write(1, data)
except ConnectionResetError:
    pass
"""


@pytest.mark.parametrize(
    ("who", "told"),
    [("self", '{"ok":true}'), ("other", "another user"), ("namespace", "from inside a sandbox")],
)
def test_control_asks_the_kernel_who_speaks(tmp_path: Path, who: str, told: str) -> None:
    if who == "other" and os.geteuid() != 0:
        pytest.skip("not run: needs root")
    monitor = Monitor(str(tmp_path), "poll")
    # The second lock alone is tried here: the first, the folder's and the file's mode, is taken away.
    path = tmp_path / "control"
    for each in (path, *tmp_path.parents[:3], tmp_path):
        with contextlib.suppress(PermissionError):
            os.chmod(each, 0o777)
    try:
        done = subprocess.run(
            [sys.executable, "-c", SPEAKER, str(path), who], capture_output=True, check=False, timeout=20
        )
    finally:
        monitor.close()
    if b"unshare" in done.stderr or (b"AssertionError" in done.stderr and who == "namespace"):
        pytest.skip("not run: no user namespace can be made here")
    assert told in done.stdout.decode(), done.stderr
    assert bool(monitor.served) == (who == "self")


def test_control_tells_a_client_whose_monitor_dies(tmp_path: Path) -> None:
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:

        def hang(_request: words.ControlRequest, reply: Reply) -> None:
            reply.note("begun")
            time.sleep(60)

        control = Control(str(tmp_path), "r1", hang)
        os.write(tell, b"x")
        by_poll((control.source(),), (), lambda: False)
        os._exit(1)
    os.read(ready, 1)
    with pytest.raises(StuckError, match="went away") as told:
        ask(folder_at(str(tmp_path)), APPLY, lambda _note: os.kill(pid, signal.SIGKILL))
    assert "interlock show r1" in told.value.hint
    os.waitpid(pid, 0)
    os.close(ready)
    os.close(tell)


def test_control_goes_on_when_a_client_is_interrupted(monitor: Monitor) -> None:
    monitor.serve = lambda _request, reply: reply.note("begun")

    def interrupt(_note: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(monitor.folder, APPLY, interrupt)
    until(lambda: monitor.replies[0].gone)
    monitor.serve = lambda _request, reply: reply.finish()
    assert ask(monitor.folder, APPLY, quiet) == {}


def test_control_survives_a_shortage_of_descriptors(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.socket.accept
    tries: list[int] = []

    def short(sock: socket.socket) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise OSError(errno.EMFILE, "too many open files")
        return real(sock)

    monkeypatch.setattr(socket.socket, "accept", short)
    assert ask(monitor.folder, APPLY, quiet) == {}
