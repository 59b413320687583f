"""Hostile probes: each really attacks from inside a sandbox, and gets through where there is none.

A probe counts as stopped only if the same program gets through without the sandbox: else it is not run, and
says why. `python -m tests.boundary.probes` prints all of it.
"""

import contextlib
import ctypes
import encodings.ascii  # noqa: F401 - for monitors that became a user who may not read this Python
import fcntl
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from tests.boundary.conftest import PYTHON, Box, run_here
from tests.boundary.probes import alone, runner
from tests.boundary.probes.entry import World

from interlock.boundary import Limits
from interlock.boundary.sandbox import NO_EVENTS

PROBES = runner.load()
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WRONG_PROGRAM = ("EFAULT", "EINVAL", "EBADF", "SIGSEGV", "SIGILL", "SIGBUS")
"""What a control that does not get through may not say: the probe itself would be wrong."""

Findings = dict[str, tuple[str, str]]


def _found(folder: str, world: str) -> Findings:
    """Run a world's probes, once for all workers of this test session."""
    with open(f"{folder}/hostile-{world}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = f"{folder}/hostile-{world}.json"
        if not os.path.exists(path):
            done = subprocess.run(
                [sys.executable, "-m", "tests.boundary.probes", "--json", world],
                cwd=REPOSITORY, capture_output=True, text=True, timeout=150, check=False,
            )  # fmt: skip
            with open(path, "w") as file:
                file.write(
                    json.dumps({"found": done.stdout, "error": done.stderr if done.returncode else ""})
                )
        with open(path) as file:
            kept = json.load(file)
    if kept["error"]:
        pytest.fail(f"the probes of `{world}` did not run: {kept['error'][-3000:]}")
    return {name: (verdict, how) for name, verdict, how in json.loads(kept["found"])}


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Findings]:
    base = tmp_path_factory.getbasetemp()
    folder = str(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)
    known: dict[str, Findings] = {}

    def get(world: str) -> Findings:
        if world not in known:
            known[world] = _found(folder, world)
        return known[world]

    return get


def _power(name: str, found: Callable[[str], Findings]) -> tuple[bool, str]:
    """Say whether the attack gets through without a sandbox, or why that cannot be seen here."""
    probe = PROBES[name]
    verdict, how = found(probe.control.value)[name]
    if verdict == "ESCAPED":
        return True, how
    if os.geteuid() != 0 and found(World.APART.value)[name][0] == "ESCAPED":
        return True, found(World.APART.value)[name][1]
    return False, probe.no_control or f"without a sandbox it does not get through here either ({how})"


@pytest.mark.parametrize("name", PROBES)
def test_hostile_probe(standing: str, name: str, found: Callable[[str], Findings]) -> None:
    verdict, how = found(standing)[name]
    if verdict == "not run":
        pytest.skip(f"not run: {how}")
    assert verdict == "stopped", f"{name} (attacks {PROBES[name].attacks}): {verdict}: {how}"
    powerful, reason = _power(name, found)
    if not powerful:
        assert PROBES[name].no_control or not any(f"({one})" in reason for one in WRONG_PROGRAM), reason
        pytest.skip(f"not run: {reason}")


def test_hostile_probes_leave_the_host_as_it_was(standing: str, found: Callable[[str], Findings]) -> None:
    unnamed = set(found(standing)) - set(PROBES)
    assert {name: found(standing)[name] for name in unnamed} == {}


def test_hostile_probes_are_counted(
    standing: str, found: Callable[[str], Findings], capfd: pytest.CaptureFixture[str]
) -> None:
    findings = found(standing)
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for name in PROBES:
        verdict, how = findings[name]
        powerful, reason = _power(name, found) if verdict == "stopped" else (True, how)
        verdicts[verdict if powerful else "not run"] += 1
        if verdict == "not run" or not powerful:
            reasons[reason] += 1
    with capfd.disabled():
        text = f"\nhostile probes as {standing}: {len(PROBES)} probes, " + ", ".join(
            f"{what} {count}" for what, count in sorted(verdicts.items())
        )
        lines = [f"  not run {count}: {reason}" for reason, count in reasons.most_common()]
        os.write(2, "\n".join([text, *lines, ""]).encode())
    assert verdicts["stopped"] >= (110 if os.geteuid() == 0 else 60)


# What follows needs a sandbox of its own.


def _named(word: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                if word.encode() in file.read().split(b"\0"):
                    found.append(int(name))
    return found


def _settled(word: str) -> list[int]:
    end = time.monotonic() + 5
    while _named(word) and time.monotonic() < end:
        time.sleep(0.02)
    return _named(word)


def test_hostile_fork_bomb_is_bounded(box: Box) -> None:
    done = box.py(alone.FORK_BOMB, limits=Limits(processes=40))
    assert done.text.startswith("stopped 11\n"), done
    assert int(done.text.split()[-1]) < 40
    assert subprocess.run(["true"], check=False).returncode == 0, "the host still forks"
    assert box.py(alone.FORK_BOMB).text == "not stopped\n100\n", "the control"


def test_hostile_huge_file_is_bounded(box: Box) -> None:
    ways = ("write", "spread", "reserve", "splice", "copy")
    done = box.py(alone.HUGE_FILE, limits=Limits(file_size_bytes=1 << 20))
    assert done.text == "".join(f"{way} EFBIG\n" for way in ways), done.err
    assert all(os.stat(f"{box.upper}/{name}").st_size <= 1 << 20 for name in os.listdir(box.upper))
    free = box.py(alone.HUGE_FILE)
    assert free.text == "".join(f"{way} not stopped\n" for way in ways), "the control"


def test_hostile_temporary_folders_are_bounded(box: Box) -> None:
    done = box.py(alone.FILL, limits=Limits(tmp_size_bytes=16 << 20))
    folders = ["/tmp", "/var/tmp", "/dev/shm"]
    said = dict(line.split(" ", 1) for line in done.text.splitlines())
    assert {folder: said[folder] for folder in folders} == dict.fromkeys(folders, "ENOSPC")
    assert said["/run"] in ("ENOSPC", "EACCES")
    assert "/tmp not stopped\n" in box.py(alone.FILL).text, "the control"


def test_hostile_memory_is_bounded(box: Box) -> None:
    script = "import os\nprint('begun', flush=True)\nb = bytearray(512 << 20)\nprint('not stopped')"
    done = box.py(script, limits=Limits(memory_bytes=64 << 20))
    if done.error.startswith("boundary: memory cannot be limited"):
        pytest.skip(f"not run: {done.error}")
    assert "not stopped" not in done.text
    assert done.text == "begun\n"
    assert "not stopped" in box.py(script).text, "the control"


def test_hostile_daemons_end_with_the_command(box: Box) -> None:
    word = f"il-left-{os.getpid()}-{box.uid}"
    done = box.py(alone.DAEMONS, word)
    assert done.text == "started\n", done.err
    assert _named(word) == []


def test_hostile_daemons_outlive_a_command_without_a_sandbox() -> None:
    word = f"il-control-{os.getpid()}"
    subprocess.run([PYTHON, "-c", alone.DAEMONS, word], check=True, capture_output=True)
    left = _named(word)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert len(left) >= 5
    assert _settled(word) == []


def test_hostile_daemons_end_with_a_killed_monitor(box: Box) -> None:
    word = f"il-orphan-{os.getpid()}-{box.uid}"

    def kill(pid: int) -> None:
        end = time.monotonic() + 20
        while len(_named(word)) < 7:
            assert time.monotonic() < end, "the daemons did not start"
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)

    assert box.py(alone.DAEMONS, word, "wait", during=kill).status is None
    assert _settled(word) == []


def _children() -> set[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return {int(pid) for pid in file.read().split()}


def _waits_in(pid: int) -> str:
    with open(f"/proc/{pid}/wchan") as file:
        return file.read()


@contextlib.contextmanager
def _adopting() -> Iterator[Callable[[], set[int]]]:
    """Become the parent of whatever a killed process leaves behind; ends it afterwards."""
    prctl = ctypes.CDLL(None).prctl
    prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    before = _children()

    def left() -> set[int]:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return _children() - before

    try:
        yield left
    finally:
        for pid in left():
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        prctl(36, 0, 0, 0, 0)


@pytest.mark.parametrize("moment", ["early", "middle", "late"])
def test_hostile_monitor_killed_while_it_starts_leaves_nothing_running(box: Box, moment: str) -> None:
    first = {"early": 1, "middle": 9, "late": 17}[moment]
    for delay_ms in range(first, first + 8):
        plan = box.plan(("sleep", "60"))
        with _adopting() as left:
            pid = os.fork()
            if pid == 0:
                try:
                    box.become()
                    run_here(plan)
                finally:
                    os._exit(0)
            time.sleep(delay_ms / 1000)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            end = time.monotonic() + 1
            while left() and time.monotonic() < end:
                time.sleep(0.005)
            what = [_waits_in(one) for one in left()]
            assert what == [], f"killed after {delay_ms} ms, these live on, waiting in the kernel"
    with open("/proc/self/mounts") as table:
        assert [line for line in table if box.base in line] == []


def test_hostile_signals_to_the_first_process_are_ignored(box: Box) -> None:
    done = box.py(alone.SIGNAL_FIRST)
    lines = done.text.splitlines()
    assert lines[-1:] == ["END"], f"the last thing that it said is {lines[-1:]}; {done.error}"
    assert set(lines[1:-1:2]) == {"S"}


def test_hostile_limits_of_the_first_process_stay(box: Box) -> None:
    done = box.py(alone.STARVE_FIRST)
    assert done.error == "", "the command had its first process killed"
    assert "alive" not in done.text, "its limits were changed"


def test_hostile_crash_leaves_no_core(box: Box) -> None:
    done = box.py(alone.CRASH)
    assert done.status is not None
    assert (done.status.code, done.status.signal) == (-1, signal.SIGSEGV)
    assert os.listdir(box.upper) == []


def test_hostile_crash_leaves_a_core_without_a_sandbox(tmp_path_factory: pytest.TempPathFactory) -> None:
    with open("/proc/sys/kernel/core_pattern") as file:
        if file.read().strip() != "core":
            pytest.skip("not run: the host's core pattern is not a plain name")
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("not run: the host forbids core files")
    folder = tmp_path_factory.mktemp("core")
    subprocess.run([PYTHON, "-c", alone.CRASH], cwd=folder, check=False)
    assert [one.name for one in folder.iterdir() if one.name.startswith("core")]


def test_hostile_flood_of_events_is_seen_or_said_to_be_lost(box: Box) -> None:
    done = box.py(alone.FLOOD)
    assert done.code == 0, done.err
    if not box.root:
        assert done.lost == [NO_EVENTS]
        return
    seen = {one.place.path for one in done.writes}
    made = {f"{'g' if index % 3 == 0 else 'f'}{index}" for index in range(6000)}
    assert made <= seen or done.lost, f"{len(made - seen)} writes went by unseen and unsaid"


def test_hostile_races_with_the_watch_are_seen_or_said_to_be_lost(box: Box) -> None:
    box.file("a/secret", "s")
    done = box.py(alone.RACE)
    assert done.code == 0, done.err
    if not box.root:
        assert done.lost == [NO_EVENTS]
        return
    read = {one.place.path for one in done.reads}
    assert read & {"a/secret", "b/secret", "a", "b"} or done.lost, "the read went by unseen and unsaid"
    assert "done" in {one.place.path for one in done.writes} or done.lost


def test_hostile_nested_sandbox_uncovers_no_mask(box: Box) -> None:
    for path in (f"{box.home}/.ssh", f"{box.home}/.ssh/id"):
        if path.endswith("id"):
            with open(path, "w") as file:
                file.write("TOKEN")
            os.chown(path, box.uid, box.uid)
        else:
            box.folder(path)
    done = box.py(alone.UNCOVER, box.home, ".ssh/id", nested=True)
    assert (done.text, done.err) == ("stood 0\nEND\n", b"")


def test_hostile_host_folder_as_input_opens_nothing(box: Box) -> None:
    # Python takes no folder as its input: a shell moves it to another number.
    words = ("sh", "-c", 'exec 7<&0 </dev/null; exec "$@"', "sh", PYTHON, "-c", alone.FOLDER_AS_INPUT)
    plan = box.plan(words)
    with tempfile.TemporaryFile() as out:
        pid = os.fork()
        if pid == 0:
            try:
                box.become()
                os.dup2(os.open("/", os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                result = run_here(plan)
                os._exit(0 if not result.get("error") else 9)
            finally:
                os._exit(70)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        text = out.read().decode()
    assert code in (0, 9)
    assert "NOT STOPPED" not in text
    assert "WRITABLE" not in text
    assert code == 9 or text.count("\n") == 8, text


@contextlib.contextmanager
def _terminal(job: Callable[[], object]) -> Iterator[int]:
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            job()
        finally:
            os._exit(0)
    try:
        yield terminal
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


def _said(terminal: int) -> str:
    text, end = "", time.monotonic() + 20
    while "END" not in text and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                text += os.read(terminal, 4096).decode(errors="replace")
            except OSError:
                break
    return text


def test_hostile_typing_into_the_terminal_is_refused(box: Box) -> None:
    plan = box.plan((PYTHON, "-c", alone.TYPE_IN))
    with _terminal(lambda: (box.become(), run_here(plan))) as terminal:
        text = _said(terminal)
    assert "NOT STOPPED" not in text
    assert text.count("errno 1\r") == 8, text


def test_hostile_typing_into_the_terminal_works_without_a_sandbox() -> None:
    with _terminal(lambda: os.execv(PYTHON, [PYTHON, "-c", alone.TYPE_IN])) as terminal:
        text = _said(terminal)
    if "TIOCSTI stdin NOT STOPPED" not in text:
        pytest.skip("not run: this kernel refuses it to everybody")
    assert "TIOCSETD stdin NOT STOPPED" in text
