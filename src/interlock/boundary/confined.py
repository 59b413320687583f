"""Runs a command or a function under what a plan authorises, in a process of its own, and tells what was refused.

It is the system-call guard alone: no namespaces, no staged files. It is for toolkits that are tried, for tools that an
application runs itself, and for tests.
"""

import contextlib
import gc
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, NoReturn

from interlock.boundary import capabilities, kernel, landlock, notifying
from interlock.boundary.installing import (
    Slate,
    Start,
    limit_and_lock,
    listen,
    take_listener,
    with_what_is_missing,
)
from interlock.boundary.notifying import Denial, Refusals
from interlock.boundary.started import Started, found, started
from interlock.manifest.kernel.deriving import Ground, KernelPolicy, Places, kernel_policy
from interlock.manifest.kernel.receipt import Rows, receipt
from interlock.model.errors import BoundaryError, InputError
from interlock.model.records import dataclass
from interlock.model.toolkits import Needs

__all__ = ["Confined", "Denial", "Places", "run_command", "run_function"]

_NOT_TOLD = "refused system calls are not told here: this kernel has no seccomp notification"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """What a confined process came to.

    Takes: `code`, its exit status, or -1 if `signal` (else 0) ended it; `out` and `err`, what it wrote; `denials`, the
    calls that were refused, each kind with its count; `degraded`, what this kernel could not keep.
    """

    code: int
    signal: int
    out: bytes
    err: bytes
    denials: tuple[Denial, ...]
    receipt: Rows
    degraded: tuple[str, ...] = ()
    timed_out: bool = False


def run_command(
    argv: Sequence[str],
    needs: Needs,
    *,
    places: Places | None = None,
    environment: Mapping[str, str] | None = None,
    working_directory: str | None = None,
    input: bytes = b"",
    timeout_s: float = 60.0,
) -> Confined:
    """Run a command that may do what is needed, and nothing else.

    Raises: InputError, if the program or the needs cannot be used; BoundaryError, if this kernel cannot hold it: then
    nothing ran.
    """
    given = dict(os.environ if environment is None else environment)
    path = found(argv[0], given) if argv else ""
    if not path:
        raise InputError(
            f"`{argv[0] if argv else ''}` is no program here", hint="check the name and the PATH"
        )
    try:
        begin = started(path, argv, given)
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}", hint="check its mode") from None
    start = Start(begin.path, begin.argv, given)

    def body() -> int:
        start.now()
        return 126

    job = _Job(
        begin=begin, places=places, working_directory=working_directory, text=input, timeout_s=timeout_s
    )
    return _run(body, needs, job)


def run_function(
    function: Callable[[], object],
    needs: Needs,
    *,
    places: Places | None = None,
    working_directory: str | None = None,
    input: bytes = b"",
    timeout_s: float = 60.0,
) -> Confined:
    """Call a function in a forked process that may do what is needed, and nothing else.

    Takes: `function`, whose number, if it returns one, is the exit status; an exception is 1, its trace on `err`.
    Raises: as `run_command`.
    """

    def body() -> int:
        try:
            value = function()
        except BaseException:  # noqa: BLE001 - it must not go on in the caller's copy of the stack
            with contextlib.suppress(OSError):
                traceback.print_exc()
            return 1
        return value if isinstance(value, int) else 0

    job = _Job(places=places, working_directory=working_directory, text=input, timeout_s=timeout_s)
    return _run(body, needs, job)


def ground_here(begin: Started | None) -> tuple[Ground, tuple[str, ...]]:
    """Return what this kernel has for a confined process, and what it lacks.

    Raises: BoundaryError, if it lacks what containment rests on.
    """
    if os.uname().machine != "x86_64":
        raise BoundaryError(
            "the system-call guard knows the calls of x86_64 alone", hint="use an x86_64 machine"
        )
    abi = landlock.abi()
    if not abi:
        raise BoundaryError(
            "Landlock is off: the guard could not hold paths",
            hint="boot with `lsm=landlock,…`, Linux 6.12 or newer",
        )
    observed = notifying.possible()
    files = begin.files if begin is not None else ()
    return Ground(abi=abi, observed=observed, started=files, confined=True), () if observed else (_NOT_TOLD,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    places: Places | None
    working_directory: str | None
    text: bytes
    timeout_s: float
    begin: Started | None = None


def _run(body: Callable[[], int], needs: Needs, job: _Job) -> Confined:
    at = job.places or Places(workspace=os.getcwd(), home=os.path.expanduser("~"), tmp=tempfile.gettempdir())
    ground, degraded = ground_here(job.begin)
    ground = with_what_is_missing(needs, at, ground)
    policy = kernel_policy(needs, at, ground)
    if policy.first and not ground.observed:
        raise BoundaryError(
            "the first program alone could not be let through: this kernel has no seccomp notification",
            hint="use Linux 5.9 or newer, or authorise `execve`",
        )
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(job.text)
        given.seek(0)
        slate = Slate()
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            inside = _Inside(
                policy=policy, observed=ground.observed, slate=slate, failure=writer,
                streams=(given.fileno(), out.fileno(), err.fileno()), working_directory=job.working_directory,
            )  # fmt: skip
            _be_confined(body, inside)
        os.close(writer)
        child = _Child(pid)
        try:
            refusals = _watch_over(child, policy, slate, reader)
            timed_out = child.attend(refusals, job.timeout_s)
        finally:
            child.end()
            os.close(reader)
        code, number = child.outcome
        denials = refusals.all() if refusals is not None else ()
        if refusals is not None:
            refusals.close()
        return Confined(
            code=code, signal=number, out=_whole(out), err=_whole(err), denials=denials,
            receipt=receipt(policy, at, ground, slate.noted()), degraded=degraded, timed_out=timed_out,
        )  # fmt: skip


def _whole(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _watch_over(child: "_Child", policy: KernelPolicy, slate: Slate, reader: int) -> Refusals | None:
    try:
        listener = take_listener(child.pid, slate, child.alive)
    except BoundaryError as error:
        child.end()
        os.set_blocking(reader, False)
        with contextlib.suppress(BlockingIOError):
            if said := os.read(reader, 500).decode("utf-8", "replace"):
                raise BoundaryError(said, hint=error.hint) from None
        raise
    slate.let_go()
    return None if listener is None else Refusals(listener, first=policy.first)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inside:
    """What the confined process is given. Takes: `streams`, the descriptors that become 0, 1 and 2."""

    policy: KernelPolicy
    observed: bool
    slate: Slate
    streams: tuple[int, int, int]
    failure: int
    working_directory: str | None


def _be_confined(body: Callable[[], int], given: _Inside) -> NoReturn:
    code = 125
    try:
        os.setsid()
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        gc.disable()
        for number, stream in enumerate(given.streams):
            os.dup2(stream, number)
        kernel.close_except((0, 1, 2, given.failure))
        os.set_inheritable(given.failure, False)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - they live as long as the process
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        for signal_number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(signal_number, signal.SIG_DFL)
        if given.working_directory is not None:
            os.chdir(given.working_directory)
        mask = capabilities.kept_mask(root=os.geteuid() == 0)
        if os.geteuid() == 0:
            capabilities.bound(mask)
        given.slate.note(limit_and_lock(given.policy))
        capabilities.keep(mask)
        listen(given.policy, given.slate, observed=given.observed)
        code = body() & 0xFF
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - nothing may escape into the caller's copy of the stack
        with contextlib.suppress(OSError):
            os.write(given.failure, f"the process could not be confined: {error}".encode("utf-8", "replace"))
    finally:
        os._exit(code)


class _Child:
    """The confined process, and all of its session. Holds: `outcome`, once it has ended."""

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
            self.outcome = (
                (-1, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), 0)
            )

    def attend(self, refusals: Refusals | None, timeout_s: float) -> bool:
        """Answer what it asks until it ends. Returns: whether it took too long."""
        end = time.monotonic() + timeout_s
        poll = select.poll()
        watched = os.pidfd_open(self.pid)
        try:
            poll.register(watched, select.POLLIN)
            if refusals is not None:
                poll.register(refusals.descriptor, select.POLLIN)
            while self.alive():
                left = end - time.monotonic()
                if left <= 0:
                    return True
                for descriptor, _ in poll.poll(left * 1e3):
                    if refusals is not None and descriptor == refusals.descriptor:
                        refusals.react()
                        if refusals.ended:
                            poll.unregister(descriptor)
                            refusals = None
        finally:
            os.close(watched)
        return False

    def end(self) -> None:
        """End it and what it started, if it still runs."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if not self._ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._note(*os.waitpid(self.pid, 0))
