"""The system-call guard where the kernel lacks something, or who watches over it is gone: nothing is let through."""

import errno
import os
import select
import signal
import socket
import threading
import time

import pytest
from tests.fakes.kernel_needs import PROGRAM, READ, START, needs
from tests.fakes.older_kernel import OLDER
from tests.fakes.standings import standing_as

from interlock.boundary import bpf, kernel, notifying
from interlock.boundary.confined import run_command, run_function
from interlock.boundary.confining import Confinement, confine
from interlock.boundary.installing import Slate, limit_and_lock, listen, take_listener
from interlock.manifest.kernel.deriving import Ground, Places, kernel_policy
from interlock.model.errors import BoundaryError, InputError
from interlock.model.toolkits import Access, Needs, PathNeed

PLACES = Places(workspace="/var/tmp", home="/var/tmp", tmp="/var/tmp")
SLEEPS = needs(f"{PROGRAM} clock_nanosleep")


def error_of(piece: object) -> str:
    try:
        piece()  # type: ignore[operator]
    except BoundaryError as error:
        return f"{error.message}; {error.hint}"
    return ""


def errno_of_socket() -> int:
    try:
        socket.socket().close()
    except OSError as error:
        return error.errno or 0
    return 0


@pytest.fixture(params=["root", "user"])
def standing(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_without_landlock_nothing_runs(standing: str) -> None:
    def piece() -> tuple[str, str]:
        OLDER["landlock"]()
        return (
            error_of(lambda: run_command(["/bin/cat"], needs())),
            error_of(lambda: confine(needs(), PLACES)),
        )

    for said in standing_as(standing, piece):
        assert "Landlock" in said
        assert "lsm=landlock" in said


def test_without_seccomp_nothing_runs(standing: str) -> None:
    def piece() -> tuple[str, str]:
        OLDER["seccomp"]()
        return (
            error_of(lambda: run_command(["/bin/cat"], needs(f"{PROGRAM} {START}"))),
            error_of(lambda: confine(needs(), PLACES)),
        )

    confined, bound = standing_as(standing, piece)
    assert "could not be" in confined
    assert "could not be installed" in bound


@pytest.mark.parametrize("lacking", ["notification", "descriptors"])
def test_a_start_that_cannot_be_the_only_one_does_not_happen(standing: str, lacking: str) -> None:
    def piece() -> str:
        OLDER[lacking]()
        return error_of(lambda: run_command(["/bin/cat"], needs()))

    said = standing_as(standing, piece)
    assert "the first program alone" in said
    assert "authorise `execve`" in said


@pytest.mark.parametrize("lacking", ["notification", "descriptors"])
def test_untold_calls_are_refused_all_the_same(standing: str, lacking: str) -> None:
    def piece() -> tuple[int, tuple[str, ...], int, bytes, tuple[str, ...]]:
        OLDER[lacking]()
        alone = run_function(errno_of_socket, needs())
        line = "cat /dev/null && echo good; echo $(exec 3<>/dev/tcp/127.0.0.1/1; echo $?) 2>&1"
        given = needs(f"{PROGRAM} {START}", execute=("/usr", "/bin", "/lib64"))
        shell = run_command(["/bin/sh", "-c", line], given)
        assert alone.denials == shell.denials == ()
        return alone.code, alone.degraded, shell.code, shell.out, shell.degraded

    code, degraded, _, out, others = standing_as(standing, piece)
    assert code == errno.EPERM
    assert "not told" in degraded[0]
    assert "not told" in others[0]
    assert out.startswith(b"good\n")


@pytest.mark.parametrize("lacking", ["notification", "descriptors"])
def test_a_program_confines_itself_untold(standing: str, lacking: str) -> None:
    def piece() -> tuple[int, tuple[str, ...], int]:
        OLDER[lacking]()
        found = confine(SLEEPS, PLACES)
        return errno_of_socket(), found.degraded, len(found.denials())

    code, degraded, told = standing_as(standing, piece)
    assert (code, told) == (errno.EPERM, 0)
    assert "nobody sees it" in degraded[0]


def test_a_program_with_threads_is_not_confined(standing: str) -> None:
    def piece() -> tuple[str, int]:
        hold = threading.Event()
        one = threading.Thread(target=hold.wait)
        one.start()
        said = error_of(lambda: confine(SLEEPS, PLACES))
        hold.set()
        one.join()
        return said, errno_of_socket()

    said, code = standing_as(standing, piece)
    assert "more than one thread" in said
    assert code == 0, "nothing was bound"


def _watcher_of() -> int:
    """Return the pid of the process that answers for us: a session of its own, with our code, and no parent of ours."""
    mine = os.readlink("/proc/self/exe")
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (os.getpid(), 1):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                if fields[3] == name and os.readlink(f"/proc/{name}/exe") == mine:
                    targets = [
                        os.readlink(f"/proc/{name}/fd/{one}") for one in os.listdir(f"/proc/{name}/fd")
                    ]
                    if any("seccomp notify" in one for one in targets) and len(targets) == 2:
                        return int(name)
            except OSError:
                continue
    return 0


def test_who_watches_is_killed_and_nothing_hangs(standing: str) -> None:
    def piece() -> tuple[int, int]:
        reader, writer = os.pipe()
        asked, ask = os.pipe()
        pid = os.fork()
        if pid == 0:
            confine(SLEEPS, PLACES)
            before = errno_of_socket()
            os.write(writer, b"1")
            os.read(asked, 1)
            os.write(writer, bytes((before, errno_of_socket())))
            os._exit(0)
        os.read(reader, 1)
        watcher = _watcher_of()
        assert watcher, "no process that answers was found"
        os.kill(watcher, signal.SIGKILL)
        while os.path.exists(f"/proc/{watcher}/fd/0") or _alive(watcher):
            time.sleep(0.01)
        os.write(ask, b"1")
        before, after = os.read(reader, 2)
        os.waitpid(pid, 0)
        return before, after

    assert standing_as(standing, piece) == (errno.EPERM, errno.ENOSYS)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_monitor_that_goes_before_it_answers_leaves_an_error(standing: str) -> None:
    """The call waits for an answer; the one who would give it closes its end: the call fails, at once."""

    def piece() -> int:
        ground = Ground(abi=7, observed=True, confined=True)
        policy = kernel_policy(SLEEPS, PLACES, ground)
        slate = Slate()
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            limit_and_lock(policy)
            listen(policy, slate, observed=True)
            os.close(_listening())
            os.write(writer, bytes((errno_of_socket(),)))
            os._exit(0)
        os.close(writer)
        listener = take_listener(pid, slate, lambda: True)
        assert listener is not None
        slate.let_go()
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.poll(30_000)  # it waits
        os.close(listener)
        code = os.read(reader, 1)[0]
        os.waitpid(pid, 0)
        return code

    assert standing_as(standing, piece) == errno.ENOSYS


def _listening() -> int:
    for name in os.listdir("/proc/self/fd"):
        try:
            if "seccomp" in os.readlink(f"/proc/self/fd/{name}"):
                return int(name)
        except OSError:
            continue
    return -1


def test_a_refused_execution_is_let_through_once_and_only_there() -> None:
    """What lets the first program start answers one execve, whoever asks next."""
    policy = kernel_policy(needs(), PLACES, Ground(abi=7, observed=True, started=("/bin/true",)))
    assert policy.first
    done = run_command(
        ["/usr/bin/python3", "-I", "-S", "-c", "import os\nfor n in range(3):\n  try: os.execv('/bin/true', ['true'])\n  except OSError as e: print(e.errno)"],
        needs(),
    )  # fmt: skip
    assert done.out.split() == [b"1"] * 3
    assert [one.count for one in done.denials if one.name == "execve"] == [3]


def test_needs_that_are_wrong_bind_nothing(standing: str) -> None:
    def piece() -> tuple[int, int]:
        caught = 0
        for bad in (
            needs("no_such_call"),
            Needs(paths=(PathNeed(path="x", access=Access.READ, reason="r"),)),
        ):
            try:
                confine(bad, PLACES)
            except InputError:
                caught += 1
        return caught, errno_of_socket()

    assert standing_as(standing, piece) == (2, 0)


def test_possible_is_honest() -> None:
    def piece(lacking: str) -> bool:
        if lacking:
            OLDER[lacking]()
        return notifying.possible()

    assert standing_as("user", lambda: piece(""))
    for lacking in ("notification", "descriptors"):
        assert not standing_as("user", lambda lacking=lacking: piece(lacking))  # type: ignore[misc]


def test_confined_programs_tell_what_was_refused(standing: str) -> None:
    def piece() -> tuple[list[tuple[str, int]], tuple[str, ...]]:
        given = needs(f"{PROGRAM} clock_nanosleep", read=(*READ, "{workspace}"))
        found: Confinement = confine(given, PLACES)
        codes = [errno_of_socket() for _ in range(3)]
        assert codes == [errno.EPERM] * 3
        told: list[tuple[str, int]] = []
        end = time.monotonic() + 30
        while sum(count for _, count in told) < 3 and time.monotonic() < end:
            told += [(one.name, one.count) for one in found.denials()]
            time.sleep(0.05)
        return told, found.degraded

    told, degraded = standing_as(standing, piece)
    assert {name for name, _ in told} == {"socket"}
    assert sum(count for _, count in told) == 3
    assert degraded == ()


def test_a_filter_is_bound_to_all_threads_or_none() -> None:
    policy = kernel_policy(SLEEPS, PLACES, Ground(abi=0, observed=False))

    def piece() -> list[int]:
        found: list[int] = []
        go = threading.Event()
        one = threading.Thread(target=lambda: (go.wait(), found.append(errno_of_socket())))
        one.start()
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        bpf.install(policy.program, all_threads=True)
        go.set()
        one.join()
        return [*found, errno_of_socket()]

    assert standing_as("user", piece) == [errno.EPERM, errno.EPERM]
