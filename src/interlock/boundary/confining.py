"""Puts a process that runs tools itself under what its plan authorises, for good, and watches over it from beside.

Another process answers the calls that are refused: one under the filter could not. It ends with the last process that
is under it; where it is ended before, the kernel refuses what nobody answers.
Source: ours; KNOX §4.2, Landlock and seccomp(2) for processes that bind themselves.
"""

import contextlib
import json
import os
import select
import signal
import time
from typing import NoReturn

from interlock.boundary import bpf, kernel, landlock, notifying
from interlock.boundary.installing import Slate, limit_and_lock, with_what_is_missing
from interlock.boundary.notifying import Denial, Refusals
from interlock.manifest.kernel.deriving import Ground, KernelPolicy, Places, kernel_policy
from interlock.manifest.kernel.receipt import Rows, receipt
from interlock.model.errors import BoundaryError
from interlock.model.records import dataclass
from interlock.model.toolkits import Needs

NOT_TOLD = "this kernel does not tell of refused system calls: they are refused, and nobody sees it"
NO_PATHS = "Landlock is off: paths are not held back by the kernel"
_PR_SET_PTRACER = 0x59616D61
_WAIT_S = 20.0
_MOST_PENDING = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """A process that is confined.

    Takes: `degraded`, what this kernel could not keep; `told`, where refused calls are read, -1 for nowhere.
    """

    receipt: Rows
    degraded: tuple[str, ...]
    told: int

    def denials(self) -> tuple[Denial, ...]:
        """Return the refused calls that are new since the last time; of a kind that came again, how often it did."""
        text = b""
        with contextlib.suppress(OSError):
            while self.told >= 0 and (part := os.read(self.told, 1 << 16)):
                text += part
        return tuple(
            Denial(
                name=name,
                number=number,
                detail=detail,
                count=count,
                advice=notifying.advice(name, number, detail),
            )
            for name, number, detail, count in map(json.loads, text.splitlines())
        )


def confine(needs: Needs, places: Places, *, allow_degraded: bool = False) -> Confinement:
    """Bind this process, and all that it starts from now on, to what is needed; there is no way back.

    Raises: InputError, for needs that cannot be rules; BoundaryError, where this kernel cannot keep what they promise,
    or the process has threads already: nothing is bound then.
    """
    ground, degraded = _ground(allow_degraded=allow_degraded)
    ground = with_what_is_missing(needs, places, ground)
    policy = kernel_policy(needs, places, ground)
    if not ground.observed:
        try:
            absent = limit_and_lock(policy)
            bpf.install(policy.program)
        except OSError as error:
            raise _not_bound(error) from None
        return Confinement(receipt=receipt(policy, places, ground, absent), degraded=degraded, told=-1)
    slate = Slate()
    reader, watcher = _watch_from_beside(slate)
    with contextlib.suppress(OSError):
        # Where only a parent may look into its child (Yama), we say who else may; elsewhere the call is unknown.
        kernel.prctl(_PR_SET_PTRACER, watcher)
    absent = _bind(policy, slate)
    return Confinement(receipt=receipt(policy, places, ground, absent), degraded=degraded, told=reader)


def _ground(*, allow_degraded: bool) -> tuple[Ground, tuple[str, ...]]:
    if os.uname().machine != "x86_64":
        raise BoundaryError(
            "the system-call guard knows the calls of x86_64 alone", hint="use an x86_64 machine"
        )
    if len(os.listdir("/proc/self/task")) > 1:
        raise BoundaryError(
            "this process has more than one thread: rules of paths bind the thread alone that asks for them",
            hint="confine before anything starts a thread: as the first thing in the program",
        )
    abi = landlock.abi()
    if not abi and not allow_degraded:
        raise BoundaryError(NO_PATHS, hint="boot with `lsm=landlock,…`; or confine(…, allow_degraded=True)")
    observed = notifying.possible()
    degraded = (() if abi else (NO_PATHS,)) + (() if observed else (NOT_TOLD,))
    return Ground(abi=abi, observed=observed, confined=True), degraded


def _bind(policy: KernelPolicy, slate: Slate) -> tuple[str, ...]:
    """Bind this process. Returns: paths of rules that were not there."""
    try:
        absent = limit_and_lock(policy)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        listener = bpf.install_listening(policy.program, all_threads=True)
    except OSError as error:
        slate.tell_failure()
        raise _not_bound(error) from None
    slate.tell(listener)
    end = time.monotonic() + _WAIT_S
    while not slate.answered() and time.monotonic() < end:
        pass
    # Ours must go: while any is open, what nobody answers would wait for ever.
    os.close(listener)
    if not slate.answered():
        raise BoundaryError(
            "nobody watches over the refused system calls: each of them fails from now on",
            hint="end this process, and begin again",
        )
    return absent


def _not_bound(error: OSError) -> BoundaryError:
    return BoundaryError(
        f"the system-call guard could not be installed: {error.strerror}", hint="run `interlock doctor`"
    )


def _watch_from_beside(slate: Slate) -> tuple[int, int]:
    """Start the process that answers. Returns: where it tells what was refused, and its pid."""
    reader, writer = os.pipe()
    born, birth = os.pipe()
    subject = os.getpid()
    between = os.fork()
    if between == 0:
        # Forked twice, so that it is nobody's child that waits for its own.
        pid = os.fork()
        if pid == 0:
            _be_watcher(slate, subject, writer)
        os.write(birth, str(pid).encode())
        os._exit(0)
    os.close(writer)
    os.close(birth)
    os.waitpid(between, 0)
    text = os.read(born, 20)
    os.close(born)
    os.set_blocking(reader, False)
    return reader, int(text)


def _be_watcher(slate: Slate, subject: int, writer: int) -> NoReturn:
    try:
        os.setsid()
        kernel.close_except((writer,))
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(signal_number, signal.SIG_IGN)
        os.set_blocking(writer, False)
        told = slate.told(lambda: os.path.exists(f"/proc/{subject}"))
        if told > 0:
            refusals = Refusals(notifying.taken_from(subject, told), first=False)
            slate.let_go()
            _answer(refusals, writer)
    finally:
        os._exit(0)


def _answer(refusals: Refusals, writer: int) -> None:
    poll = select.poll()
    poll.register(refusals.descriptor, select.POLLIN)
    pending = b""
    while not refusals.ended:
        # A kind that comes again is told at most once a second.
        quiet = not poll.poll(1000)
        if not quiet:
            refusals.react()
        new = (*refusals.fresh(), *(refusals.again() if quiet else ()))
        lines = "".join(json.dumps([one.name, one.number, one.detail, one.count]) + "\n" for one in new)
        if len(pending) < _MOST_PENDING:
            pending += lines.encode()
        with contextlib.suppress(OSError):
            while pending:
                pending = pending[os.write(writer, pending) :]
