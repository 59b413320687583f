"""A run stands still while a person is asked, and then goes on as if nothing had been."""

import contextlib
import itertools
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.boundary.conftest import Box, run_here
from tests.boundary.test_net_doors import DIAL, attending, served
from tests.boundary.test_sandbox_lifecycle import mounts_of, settle
from tests.boundary.test_sandbox_terminal import Screen, _shell, say
from tests.fakes.porter import Porter

from interlock.boundary import Sandbox, cgroup
from interlock.boundary.net.plan import NetPlan

# A process of its own session, a thread and a child's child count for as long as they may.
COUNTING = """
import threading, time
def count(name):
    n = 0
    while True:
        n += 1
        with open('count-' + name, 'w') as f: f.write(str(n) + '.')
        time.sleep(0.001)
def start(name, child):
    if child:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: count(name)
            os._exit(0)
        os.wait()
    else: threading.Thread(target=count, args=(name,), daemon=True).start()
start('daemon', True); start('thread', False)
while len([one for one in os.listdir('.') if one.startswith('count-')]) < 2: time.sleep(0.01)
"""


def counts(box: Box) -> list[bytes]:
    found = []
    for name in sorted(os.listdir(box.upper)):
        if name.startswith("count-"):
            with open(f"{box.upper}/{name}", "rb") as file:
                found.append(file.read())
    return found


def standing_still(
    box: Box, sandbox: Sandbox, notes: list[str], meanwhile: Callable[[], None] | None = None
) -> None:
    """Pause, look twice, and resume."""
    sandbox.pause()
    sandbox.pause()  # a second time changes nothing
    before = counts(box)
    if meanwhile is not None:
        meanwhile()
    time.sleep(0.15)
    notes.append(f"still={before == counts(box)} of {len(before)}")
    sandbox.resume()
    sandbox.resume()
    deadline = time.monotonic() + 15
    # each count is written over an emptied file: one that was seen to differ must not be looked at again
    while not (went_on := counts(box) != before) and time.monotonic() < deadline:
        time.sleep(0.01)
    notes.append(f"on={went_on}")


def test_pause_stops_the_whole_tree_and_resume_lets_it_go_on(box: Box) -> None:
    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        standing_still(box, sandbox, porter.noted)

    done = served(box, COUNTING + "dial('1.1.1.1', 80); dial('1.1.1.2', 80)", attend=attending(on_word))
    each = ("still=True of 2", "on=True")
    assert done.noted == ("tcp 1.1.1.1 80", *each, "tcp 1.1.1.2 80", *each)
    assert done.status is not None
    assert done.status.code == 0


def unified() -> str:
    with open("/proc/self/mounts") as table:
        for line in table:
            fields = line.split(" ")
            if fields[2] == "cgroup2" and os.access(fields[1], os.W_OK):
                return fields[1]
    pytest.skip("not run: no cgroup of version 2 that may be written")


_numbers = itertools.count()


def test_pause_uses_the_cgroups_freezer_where_there_is_one(make_box: Callable[[str], Box]) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    box = make_box("root")
    folder = f"{unified()}/interlock-{os.getpid()}-test{next(_numbers)}"

    def on_word(sandbox: Sandbox, porter: Porter, word: str) -> None:
        if word == "first":
            os.mkdir(folder)
            group = cgroup.Group(folders=(*sandbox._group.folders, folder), facts=())
            sandbox._group = group
            # every process of the tree, from the host's side
            pids = [sandbox._pid]
            for pid in pids:
                with open(f"/proc/{pid}/task/{pid}/children") as file:
                    pids.extend(int(one) for one in file.read().split())
                group.add(pid)
        porter.noted.append(f"freezer={sandbox._group.freeze()}")
        sandbox._group.thaw()
        standing_still(box, sandbox, porter.noted)

    done = served(
        box,
        COUNTING + "dial('1.1.1.1', 80, b'first'); dial('1.1.1.2', 80)",
        attend=attending(on_word),
    )
    each = ("freezer=True", "still=True of 2", "on=True")
    assert done.noted == ("tcp 1.1.1.1 80", *each, "tcp 1.1.1.2 80", *each)
    assert not os.path.exists(folder)


def test_freezer_says_when_it_cannot(tmp_path: object) -> None:
    assert cgroup.Group(folders=(str(tmp_path),), facts=()).freeze() is None
    assert cgroup.Group(folders=(), facts=()).freeze() is None


def test_freezer_stops_a_process() -> None:
    folder = f"{unified()}/interlock-{os.getpid()}-test{next(_numbers)}"
    os.mkdir(folder)
    group = cgroup.Group(folders=(folder,), facts=())
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        group.add(child.pid)
        assert group.freeze() is True
        with open(f"/proc/{child.pid}/stat") as file:
            before = file.read().split()[13]
        time.sleep(0.1)
        with open(f"/proc/{child.pid}/stat") as file:
            assert file.read().split()[13] == before
        group.thaw()
    finally:
        child.kill()  # also while frozen
        child.wait()
        group.remove()


def test_pause_stops_programs_that_became_other_users(make_box: Callable[[str], Box]) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    box = make_box("root")

    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        standing_still(box, sandbox, porter.noted)

    script = COUNTING.replace("os.setsid()", "os.chmod('.', 0o777); os.setresuid(1234, 1234, 1234)")
    done = served(box, script + "dial('1.1.1.1', 80)", attend=attending(on_word))
    assert done.noted == ("tcp 1.1.1.1 80", "still=True of 2", "on=True")


def test_pause_leaves_alone_what_stood_still_before(box: Box) -> None:
    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        sandbox.pause()
        sandbox.resume()
        time.sleep(0.1)

    done = served(
        box,
        """
import signal, time
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGSTOP); open('woken', 'w').close(); os._exit(0)
os.waitpid(child, os.WUNTRACED)
dial('1.1.1.1', 80)
print(os.path.exists('woken'), os.waitpid(child, os.WUNTRACED | os.WNOHANG))
os.kill(child, signal.SIGCONT); os.waitpid(child, 0); print(os.path.exists('woken'))
""",
        attend=attending(on_word),
    )
    assert done.text.splitlines() == ["tcp 1.1.1.1 80", "False (0, 0)", "True"]


def test_pause_shows_no_shell_a_stopped_job(box: Box) -> None:
    def on_word(sandbox: Sandbox, _porter: Porter, _word: str) -> None:
        sandbox.pause()
        time.sleep(0.05)
        sandbox.resume()

    box.file("dial.py", DIAL + "\nfor i in range(20): dial('1.1.1.1', 80)\n")
    done = box.run(
        "bash", "-c", "set -m; python3 dial.py | tail -n 1; echo code=${PIPESTATUS[0]}; jobs",
        attend=attending(on_word), net=NetPlan(folder=""),
    )  # fmt: skip
    assert (done.text, done.err) == ("tcp 1.1.1.1 80\ncode=0\n", b"")


def test_pause_keeps_signals_back_until_it_is_over(box: Box) -> None:
    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        def send() -> None:
            os.kill(os.getpid(), signal.SIGCONT)
            os.kill(os.getpid(), signal.SIGUSR1)
            sandbox._forward(_signals())  # as the loop would while it is not in here

        standing_still(box, sandbox, porter.noted, send)

    script = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('got it'))\n" + COUNTING
    done = served(box, script + "dial('1.1.1.1', 80); time.sleep(0.1)", attend=attending(on_word))
    assert done.noted[-2:] == ("still=True of 2", "on=True")
    assert sorted(done.text.splitlines()) == ["got it", "tcp 1.1.1.1 80"]


def _signals() -> int:
    """Find the descriptor of the run's signals in this monitor."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[signalfd]":
                return int(name)
    raise AssertionError


def test_tree_that_dies_in_a_pause_has_ended(box: Box) -> None:
    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        sandbox.pause()
        porter.noted.append(f"ended={sandbox.ended}")
        os.kill(sandbox._pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while not sandbox.ended and time.monotonic() < deadline:
            time.sleep(0.005)
        porter.noted.append(f"ended={sandbox.ended}")
        sandbox.resume()
        sandbox.pause()
        sandbox.resume()

    done = box.py(DIAL + "dial('1.1.1.1', 80)", attend=attending(on_word), net=NetPlan(folder=""))
    assert done.error == "boundary: the sandbox was killed from outside"
    assert done.noted == ("tcp 1.1.1.1 80", "ended=False", "ended=True")


def test_monitor_killed_in_a_pause_ends_the_sandbox(box: Box) -> None:
    word = f"il-paused-{os.getpid()}-{box.uid}"

    def on_word(sandbox: Sandbox, _porter: Porter, _word: str) -> None:
        sandbox.pause()
        os.kill(os.getpid(), signal.SIGKILL)

    done = box.py(DIAL + f"dial('1.1.1.1', 80); '{word}'", attend=attending(on_word), net=NetPlan(folder=""))
    assert done.status is None
    assert settle(word) == []
    assert mounts_of(box.base) == []


def test_pause_and_close_without_resume(box: Box) -> None:
    def on_word(sandbox: Sandbox, porter: Porter, _word: str) -> None:
        sandbox.pause()
        porter.loop.stop()

    done = box.py(DIAL + "dial('1.1.1.1', 80)", attend=attending(on_word), net=NetPlan(folder=""))
    assert done.error.startswith("boundary: nobody serves")


@pytest.mark.parametrize("reading", ["open('secret').read()", "kept = open('secret'); kept.read()"])
def test_catch_up_reports_reads_before_the_loop_would(reading: str, make_box: Callable[[str], Box]) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    box = make_box("root")
    box.file("secret", "text")

    seen: list[object] = []

    def on_word(sandbox: Sandbox, porter: Porter, word: str) -> None:
        assert sandbox._watch is not None
        if word == "first":
            sandbox._watch.observe = seen.append
        else:
            sandbox.catch_up()
            porter.noted.append(f"seen={'secret' in repr(seen)}")

    done = served(
        box,
        "s = socket.create_connection(('1.1.1.1', 80)); s.send(b'first'); s.recv(99)\n"
        f"{reading}; s.send(b'x'); s.recv(99)",
        attend=attending(on_word),
    )
    assert done.noted == ("tcp 1.1.1.1 80", "seen=True")


class Asking(Screen):
    """A sandbox as a job at a terminal whose monitor asks there in mid-run."""

    def __init__(self, box: Box, *argv: str) -> None:
        plan = replace(box.plan(argv), net=NetPlan(folder=""))

        def on_word(sandbox: Sandbox, _porter: Porter, _word: str) -> None:
            sandbox.pause()
            say(f"QUESTION holder={os.tcgetpgrp(0) == os.getpgrp()}")
            say("ANSWER-" + os.read(0, 100).decode().strip())
            sandbox.resume()

        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                _shell(lambda: (box.become(), run_here(plan, attending(on_word)))[1])
            finally:
                os._exit(99)


def test_pause_takes_the_terminal_and_gives_it_back(box: Box) -> None:
    box.file("dial.py", DIAL + "\ndial('1.1.1.1', 80); print('GOT-' + input(), flush=True)\n")
    # with job control of its own, so that not the command's first group has the terminal
    screen = Asking(box, "bash", "-c", "set -m; python3 dial.py; read a; echo GOT-$a; python3 dial.py")
    try:
        for round_ in (1, 2):
            screen.until("QUESTION holder=True", round_)
            screen.type(f"mine{round_}\n")
            screen.until(f"ANSWER-mine{round_}")
            screen.until("tcp 1.1.1.1 80", round_)
            screen.type(f"yours{round_}\n")
            screen.until(f"GOT-yours{round_}")
            if round_ == 1:
                screen.type("between\n")
                screen.until("GOT-between")
        screen.until("SHELL done")
        assert "stopped by" not in screen.text
        assert "JOB ExitStatus(code=0, signal=0)  terminal=True" in screen.text
    finally:
        screen.close()


def test_pause_does_not_hide_a_users_stop(box: Box) -> None:
    box.file("dial.py", DIAL + "\ndial('1.1.1.1', 80); print('GOT-' + input(), flush=True)\n")
    screen = Asking(box, "python3", "dial.py")
    try:
        screen.until("QUESTION holder=True")
        screen.type("mine\n")
        screen.until("tcp 1.1.1.1 80")
        screen.type("\x1a")
        screen.until("SHELL stopped")
        screen.type("fg\n")
        time.sleep(0.2)
        screen.type("yours\n")
        screen.until("GOT-yours")
        screen.until("SHELL done")
    finally:
        screen.close()
