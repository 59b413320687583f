"""Runs a command and writes down what it asks of the kernel, so that a toolkit can be proposed. It contains nothing.

Every call is told to us before it is made and is then let go on: what we read of it may be changed behind our back, so
a recording decides nothing. No tracer: a program that traces, or looks whether it is traced, runs as ever.
Source: ours; seccomp_unotify(2).
"""

import contextlib
import fcntl
import gc
import os
import select
import signal
import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from interlock.boundary import bpf, kernel
from interlock.boundary.installing import Slate, Start, take_listener
from interlock.boundary.notifying import call_name, possible
from interlock.boundary.recorded_calls import STARTS, Asker, Peer, Touch, peer, program, touches
from interlock.boundary.started import found, started
from interlock.manifest.kernel import rules
from interlock.manifest.kernel.filtering import packed
from interlock.model.errors import BoundaryError, InputError
from interlock.model.records import dataclass
from interlock.model.system_calls import NUMBERS
from interlock.model.toolkits import Access

_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_REQUEST = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")
_GO_ON = 1
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_PAGE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a command asked for.

    Takes: `code`, its exit status, or -1 if `signal` (else 0) ended it; `calls`, names with counts; `starts`, how many
    processes and threads it started; `programs`, which it executed; `whole`, whether it came to its own end.
    """

    code: int
    signal: int
    calls: tuple[tuple[str, int], ...]
    touched: tuple[Touch, ...]
    peers: tuple[Peer, ...]
    programs: tuple[str, ...]
    starts: int
    whole: bool


def record(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    working_directory: str | None = None,
    timeout_s: float = 3600.0,
) -> Recording:
    """Run a command, with the caller's terminal, and return what it asked for.

    Raises: InputError, if there is no such program; BoundaryError, if this kernel cannot tell of calls: nothing ran.
    """
    given = dict(os.environ if environment is None else environment)
    path = found(argv[0], given) if argv else ""
    if not path:
        raise InputError(
            f"`{argv[0] if argv else ''}` is no program here", hint="check the name and the PATH"
        )
    if os.uname().machine != "x86_64" or not possible():
        raise BoundaryError(
            "this kernel cannot tell of system calls", hint="use Linux 5.9 or newer, on x86_64"
        )
    try:
        begin = started(path, argv, given)
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}", hint="check its mode") from None
    slate = Slate()
    start = Start(begin.path, begin.argv, given)
    pid = os.fork()
    if pid == 0:
        _be_recorded(start, slate, working_directory)
    child = _Child(pid)
    try:
        listener = take_listener(pid, slate, child.alive)
        if listener is None:
            raise BoundaryError("the recording could not be set up", hint="run `interlock doctor`")
        notes = _Notes(listener)
        slate.let_go()
        whole = child.attend(notes, timeout_s)
    finally:
        child.end()
    return notes.recording(child, whole)


def _program() -> bytes:
    """Tell of every call but those without which nothing can end."""
    quiet = [NUMBERS[name] for name in rules.ALWAYS]
    tests = [(_EQUAL, len(quiet) - at, 0, number) for at, number in enumerate(quiet)]
    return packed([(_LOAD, 0, 0, 0), *tests, (_RETURN, 0, 0, _ASK), (_RETURN, 0, 0, _ALLOW)])


def _be_recorded(start: Start, slate: Slate, working_directory: str | None) -> None:
    try:
        gc.disable()
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        if working_directory is not None:
            os.chdir(working_directory)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        slate.tell(bpf.install_listening(_program()))
        slate.await_word()
        start.now()
    finally:
        os._exit(126)


class _Notes:
    """What is written down while the command runs."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._calls: Counter[str] = Counter()
        self._touched: set[Touch] = set()
        self._peers: set[tuple[str, int]] = set()
        self._programs: dict[str, None] = {}
        self._buffer = bytearray(_REQUEST.size)

    def one(self) -> None:
        """Write down one call, and let it go on."""
        self._buffer[:] = bytes(_REQUEST.size)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, self._buffer)
        except OSError:
            return  # whoever asked is gone
        token, pid, _, number, architecture, _, *arguments = _REQUEST.unpack(self._buffer)
        try:
            name = call_name(number, architecture)
            self._calls[name] += 1
            self._look(name, tuple(arguments), pid)
        finally:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.descriptor, _ANSWER, _REPLY.pack(token, 0, 0, _GO_ON))

    def _look(self, name: str, arguments: tuple[int, ...], pid: int) -> None:
        asker = Asker(pid=pid, read=lambda address, most: _memory(pid, address, most))
        self._touched.update(touches(name, arguments, asker))
        if (far := peer(name, arguments, asker)) is not None:
            self._peers.add((far.address, far.port))
        if path := program(name, arguments, asker):
            self._programs[os.path.realpath(path)] = None
            with contextlib.suppress(OSError):
                files = started(path, [path], {}).files
                self._touched.update(
                    Touch(path=os.path.realpath(one), access=Access.EXECUTE) for one in files
                )

    def recording(self, child: "_Child", whole: bool) -> Recording:
        """Return what was written down."""
        os.close(self.descriptor)
        code, number = child.outcome
        return Recording(
            code=code,
            signal=number,
            calls=tuple(sorted(self._calls.items())),
            touched=tuple(sorted(self._touched, key=lambda one: (one.path, one.access.value))),
            peers=tuple([Peer(address=address, port=port) for address, port in sorted(self._peers)]),
            programs=tuple(self._programs),
            starts=sum(self._calls[name] for name in STARTS),
            whole=whole,
        )


class _Child:
    """The recorded process. Holds: `outcome`, once it has ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.outcome = (-1, 0)
        self._ended = False

    def alive(self) -> bool:
        """Say whether it lives, and take note of how it ended."""
        if not self._ended:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._note(pid, status)
        return not self._ended

    def _note(self, pid: int, status: int) -> None:
        if pid:
            self._ended = True
            by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            self.outcome = (-1, by) if by else (os.WEXITSTATUS(status), 0)

    def attend(self, notes: _Notes, timeout_s: float) -> bool:
        """Write down what it and its children ask until all have ended. Returns: whether they did by themselves."""
        end = time.monotonic() + timeout_s
        poll = select.poll()
        poll.register(notes.descriptor, select.POLLIN)
        try:
            while (left := end - time.monotonic()) > 0:
                ready = poll.poll(min(left, 1.0) * 1e3)
                if ready and ready[0][1] & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                    return True
                if ready:
                    notes.one()
                self.alive()
        except KeyboardInterrupt:
            return False
        return False

    def end(self) -> None:
        """End it, if it still runs."""
        if not self._ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._note(*os.waitpid(self.pid, 0))


def _memory(pid: int, address: int, most: int) -> bytes:
    """Return what lies at an address of a process, up to the end of its page and, if that holds, of the next."""
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        room = _PAGE - address % _PAGE
        data = os.pread(memory, min(room, most), address)
        if len(data) == room < most and b"\0" not in data:
            with contextlib.suppress(OSError):
                data += os.pread(memory, most - room, address + room)
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(memory)
    return data
