"""Exit, signals, input and output; and that nothing outlives a run."""

import os
import signal
import subprocess
import time

import pytest
from tests.boundary.conftest import Box, wait_for

from interlock.boundary import Limits
from interlock.model.events import Standing


def processes_named(word: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if word.encode() in file.read():
                        found.append(int(name))
            except OSError:
                continue
    return found


def settle(word: str) -> list[int]:
    for _ in range(100):
        if not processes_named(word):
            return []
        time.sleep(0.02)
    return processes_named(word)


def mounts_of(word: str) -> list[str]:
    with open("/proc/self/mounts") as table:
        return [line for line in table if word in line]


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_sandbox_passes_the_exit_code_through(box: Box, code: int) -> None:
    done = box.sh(f"exit {code}")
    assert done.status is not None
    assert (done.status.code, done.status.signal) == (code, 0)
    assert done.standing is (Standing.ROOT if box.root else Standing.USER)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_sandbox_passes_the_ending_signal_through(box: Box, number: int) -> None:
    done = box.sh(f"kill -{int(number)} $$")
    assert done.status is not None
    assert (done.status.code, done.status.signal) == (-1, number)


def test_sandbox_passes_bytes_through(box: Box) -> None:
    data = bytes(range(256)) * 4096
    done = box.run("cat", stdin=data)
    assert done.out == data
    both = box.sh("printf out; printf err >&2")
    assert (both.out, both.err) == (b"out", b"err")


def test_sandbox_says_what_cannot_be_found_or_run(box: Box) -> None:
    box.file("plain", "text")
    box.file("script", "echo shell script\n", 0o755)
    assert "not found" in box.run("no-such-program").error
    assert box.run("./plain").error.startswith("input: ")
    assert box.run("./script").text == "shell script\n"
    assert "working directory" in box.run("true", working_directory="/nowhere").error


def test_sandbox_environment_is_exactly_what_was_given(box: Box) -> None:
    os.environ["INTERLOCK_TEST_TOKEN"] = "TOKEN"
    try:
        done = box.run("/usr/bin/env", environment={"A": "1", "B\u00fc": "x\ny"})
        proc = box.sh("cat /proc/*/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n'")
    finally:
        del os.environ["INTERLOCK_TEST_TOKEN"]
    assert done.text == "A=1\nB\u00fc=x\ny\n"
    assert "TOKEN" not in proc.text


def test_sandbox_proc_has_the_sandboxs_processes_alone(box: Box) -> None:
    done = box.sh("echo /proc/[0-9]*")
    assert sorted(int(path[6:]) for path in done.text.split()) == [1, 2]


def test_sandbox_inherits_no_descriptor_and_no_blocked_or_ignored_signal(box: Box) -> None:
    spare = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(spare, True)
    done = box.run("grep", "-E", "^FDSize|SigBlk|SigIgn", "/proc/self/status")
    listed = box.sh("echo /proc/$$/fd/*")
    os.close(spare)
    lines = done.text.split("\n")
    numbers = [int(path.rpartition("/")[2]) for path in listed.text.split()]
    assert numbers[:3] == [0, 1, 2]
    assert spare not in numbers
    # Signals 32 and 33 are the C library's own; its posix_spawn (make uses it) leaves 32 ignored.
    ours = ~(1 << 31 | 1 << 32)
    assert [int(line.split()[1], 16) & ours for line in lines[1:3]] == [0, 0]


def test_sandbox_leftover_daemon_dies_with_the_command(box: Box) -> None:
    word = f"il-daemon-{os.getpid()}-{box.uid}"
    done = box.sh(
        f"(setsid sh -c 'sleep 300; : {word}' </dev/null >/dev/null 2>&1 &) ; sleep 0.1; echo started"
    )
    assert done.text == "started\n"
    assert processes_named(word) == []


def test_sandbox_ends_when_its_monitor_is_killed(box: Box) -> None:
    word = f"il-orphan-{os.getpid()}-{box.uid}"

    def kill(pid: int) -> None:
        for _ in range(200):
            if {"f", "g"} <= set(os.listdir(box.upper)):
                break
            time.sleep(0.02)
        else:
            pytest.fail("the command did not start")
        os.kill(pid, signal.SIGKILL)

    done = box.sh(
        f"touch f; (setsid sh -c 'touch g; sleep 300; : {word}-inner' &); sleep 300; : {word}", during=kill
    )
    assert done.status is None
    assert settle(word) == []
    assert mounts_of(box.base) == []
    # What is left is usable: the same layers can be removed, and a next run is not hindered.
    assert sorted(os.listdir(box.upper)) == ["f", "g"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_sandbox_forwards_signals_sent_to_the_monitor(box: Box, number: int) -> None:
    name = signal.Signals(number).name[3:]

    def send(pid: int) -> None:
        for _ in range(200):
            if os.path.exists(f"{box.upper}/ready"):
                break
            time.sleep(0.02)
        os.kill(pid, number)

    done = box.sh(f"trap 'echo got; exit 7' {name}; touch ready; while :; do sleep 0.05; done", during=send)
    assert (done.code, done.text) == (7, "got\n")


def test_sandbox_leaves_nothing_behind(box: Box) -> None:
    before = set(os.listdir(f"{box.base}/run/scratch"))
    monitors: list[int] = []
    assert box.sh("echo x > x", during=monitors.append).code == 0
    assert set(os.listdir(f"{box.base}/run/scratch")) == before
    assert mounts_of(box.base) == []
    for path, folders, _ in os.walk("/sys/fs/cgroup"):
        assert [name for name in folders if name.startswith(f"interlock-{monitors[0]}-")] == [], path


def test_sandbox_process_limit_stops_a_fork_bomb(box: Box) -> None:
    done = box.py(
        "import os,sys\nn=0\ntry:\n while n<200:\n  if os.fork()==0:\n   import time; time.sleep(60)\n  n+=1\n"
        "except OSError as e: print('stopped', e.errno)\nprint(n)\n",
        limits=Limits(processes=40),
    )
    assert done.text.startswith("stopped 11\n")
    assert int(done.text.split()[-1]) < 40


def test_sandbox_file_size_limit(box: Box) -> None:
    done = box.sh("head -c 3000000 /dev/zero > big; echo $?", limits=Limits(file_size_bytes=1_000_000))
    assert done.text.split()[-1] != "0"
    assert os.stat(f"{box.upper}/big").st_size <= 1_000_000


def test_sandbox_receipt_names_what_is_enforced(box: Box) -> None:
    done = box.sh("true")
    assert done.degraded == ()
    assert set(done.receipt) >= {
        "seccomp",
        "landlock",
        "rlimits",
        "capabilities",
        "namespaces",
        "no_new_privs",
        "mounts",
    }
    assert len(done.receipt["seccomp"]) == 64


def test_sandbox_holds_the_command_until_run(box: Box) -> None:
    from interlock.boundary import start

    pid = os.fork()
    if pid == 0:
        box.become()
        sandbox = start(box.plan(("sh", "-c", "touch ran")))
        time.sleep(0.1)
        early = os.listdir(box.upper)
        sandbox.close()
        sandbox.close()
        os._exit(0 if early == [] and os.listdir(box.upper) == [] else 1)
    assert os.waitstatus_to_exitcode(wait_for(pid)) == 0


def test_sandbox_host_name_is_kept_and_loopback_is_up(box: Box) -> None:
    done = box.py(
        "import socket\nl=socket.socket(); l.bind(('127.0.0.1',0)); l.listen()\n"
        "c=socket.create_connection(l.getsockname()); print(socket.gethostname())\n"
        "s=socket.socket()\ntry: s.connect(('192.0.2.1',80))\nexcept OSError as e: print(e.errno)\n"
    )
    assert done.text == f"{os.uname().nodename}\n101\n"


def test_sandbox_stands_under_an_ordinary_subprocess_too(box: Box) -> None:
    # The monitor's own environment and threads must not matter.
    if box.uid:
        pytest.skip("not run: one standing is enough")
    code = (
        "import threading,time,sys\n"
        "threading.Thread(target=time.sleep,args=(30,),daemon=True).start()\n"
        "from interlock.boundary import *\n"
        f"b={box.base!r}; w={box.workspace!r}\n"
        "p=SandboxPlan(argv=('echo','hi'),environment={'PATH':'/usr/bin:/bin'},working_directory=w,home=b+'/home',scratch=b+'/run/scratch',\n"
        " overlays=(Overlay(name='workspace',target=w,lower=w,upper=b+'/run/upper',work=b+'/run/work',observed=True),))\n"
        "s=start(p); r=s.run(lambda e: None); s.close(); sys.exit(r.code)\n"
    )
    import sys

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr
