"""Puts this process under what a plan authorises: limits, rules of paths, then the filter; there is no way back.

Between the filter and the first program nothing may be asked of the kernel: what must be said goes over shared memory.
Source: ours.
"""

import ctypes
import errno
import mmap
import os
import resource
import struct
import time
from collections.abc import Callable, Mapping, Sequence

from interlock.boundary import bpf, kernel, landlock, notifying
from interlock.manifest.kernel.deriving import Ground, KernelPolicy, Places, to_make
from interlock.model.errors import BoundaryError
from interlock.model.records import changed
from interlock.model.toolkits import Needs

_NUMBERS = {
    "NPROC": resource.RLIMIT_NPROC,
    "NOFILE": resource.RLIMIT_NOFILE,
    "FSIZE": resource.RLIMIT_FSIZE,
    "DATA": resource.RLIMIT_DATA,
    "CPU": resource.RLIMIT_CPU,
}
_PAGE = 1 << 16
_WAIT_S = 20.0


class Slate:
    """Memory that two processes share: the confined one says which descriptor listens, the other that it has it."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _PAGE)

    def note(self, absent: tuple[str, ...]) -> None:
        """Say, on the confined side, which paths of rules are not there."""
        text = "\0".join(absent).encode("utf-8", "surrogateescape")
        if len(text) > _PAGE - 16:
            raise OSError(errno.E2BIG, "too many of the authorised paths are not there")
        self._page[8:12] = struct.pack("=I", len(text))
        self._page[16 : 16 + len(text)] = text

    def noted(self) -> tuple[str, ...]:
        """Return, on the other side, what was noted before `tell`."""
        length = struct.unpack_from("=I", self._page, 8)[0]
        text = bytes(self._page[16 : 16 + min(length, _PAGE)]).decode("utf-8", "surrogateescape")
        return tuple(text.split("\0")) if text else ()

    def tell(self, descriptor: int) -> None:
        """Say, on the confined side, where refused calls are told (0 for nowhere); no call to the kernel."""
        self._page[0:4] = struct.pack("=I", descriptor + 1)

    def await_word(self) -> None:
        """Wait, on the confined side, for `let_go`; no call to the kernel."""
        page = self._page
        while not page[4]:
            pass

    def told(self, alive: Callable[[], bool]) -> int:
        """Wait for what the confined side says. Returns: the descriptor's number there, -1 if it ended before."""
        end = time.monotonic() + _WAIT_S
        while not (value := struct.unpack_from("=I", self._page, 0)[0]):
            if not alive() or time.monotonic() > end:
                return -1
            time.sleep(0.0001)
        return int(value) - 1

    def tell_failure(self) -> None:
        """Say, on the confined side, that nothing listens after all."""
        self.tell(0)

    def answered(self) -> bool:
        """Say, on the confined side, whether `let_go` was called; no call to the kernel."""
        return bool(self._page[4])

    def let_go(self) -> None:
        """Let the confined side go on."""
        self._page[4:5] = b"\1"


def with_what_is_missing(needs: Needs, places: Places, ground: Ground) -> Ground:
    """Return a ground that knows which places to write to are not there yet. Raises: InputError."""
    instead: dict[str, str] = {}
    for path, base in to_make(needs, places):
        folder = path
        while not os.path.lexists(folder) and folder != base:
            folder = os.path.dirname(folder)
        if folder != path and os.path.isdir(folder) and not os.path.islink(folder):
            instead.setdefault(path, folder)
    return changed(ground, instead=tuple(sorted(instead.items())))


def limit_and_lock(policy: KernelPolicy) -> tuple[str, ...]:
    """Set the limits and the rules of paths. Returns: paths of rules that are not there. Raises: OSError."""
    for name, most in policy.limits:
        number = _NUMBERS[name]
        hard = resource.getrlimit(number)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (bound, bound))
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    return landlock.apply(policy)


def listen(policy: KernelPolicy, slate: Slate, *, observed: bool) -> None:
    """Bind this process to the filter, and wait until the other side has what it listens at.

    Raises: OSError, with nothing bound.
    """
    # Else the other side could not take the listening descriptor from a process that has become another user.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    if observed:
        slate.tell(bpf.install_listening(policy.program))
    else:
        bpf.install(policy.program)
        slate.tell(0)
    slate.await_word()


def take_listener(pid: int, slate: Slate, alive: Callable[[], bool]) -> int | None:
    """Take, on the other side, the descriptor at which refused calls are told.

    Returns: it, or None where nobody is told.
    Raises: BoundaryError, if it cannot be had: then the process under the filter must not go on.
    """
    told = slate.told(alive)
    if told < 0:
        raise BoundaryError("the system-call guard could not be installed", hint="run `interlock doctor`")
    if told == 0:
        return None
    try:
        return notifying.taken_from(pid, told)
    except OSError as error:
        raise BoundaryError(
            f"refused system calls could not be watched: {os.strerror(error.errno or 1)}",
            hint="run `interlock doctor`",
        ) from None


class Start:
    """A program's start, readied as far as can be, so that it is one call to the kernel and nothing else.

    Takes: what execve(2) takes.
    """

    def __init__(self, path: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._path = ctypes.c_char_p(os.fsencode(path))
        self._argv = _vector([os.fsencode(one) for one in argv])
        self._environment = _vector([os.fsencode(f"{name}={value}") for name, value in environment.items()])
        self._call = ctypes.PyDLL(None).syscall
        self._number = ctypes.c_long(59)

    def now(self) -> None:
        """Start it; returns only if it could not be."""
        self._call(self._number, self._path, self._argv, self._environment)


def _vector(words: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)
