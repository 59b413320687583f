"""Agents that behave badly: what they leave behind, what they change of themselves, what they delete, what they are."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time

import pytest
from tests.integration.conftest import Cli

STRICT = ("--oracle", "strict")


def policy(cli: Cli, text: str) -> tuple[str, str]:
    path = os.path.join(cli.base, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"version: 1\npreset: coding\n{text}")
    cli.own()
    return "--policy", path


def effects(cli: Cli) -> list[tuple[str, str, str]]:
    return [(item["operation"], item["object"], item["fate"]) for item in cli.story()["effects"]]


DAEMON = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
open("first", "w").close()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(0.4)
        open("late", "w").close()
        time.sleep(300)
    os._exit(0)
os.wait()
"""


def test_a_daemon_that_ignores_every_signal_ends_with_the_agent(cli: Cli) -> None:
    started = time.monotonic()
    done = cli("run", *STRICT, "--", "/usr/bin/python3", "-c", DAEMON)
    assert (done.returncode, time.monotonic() - started < 20) == (0, True), done.stderr
    assert (cli.has("first"), cli.has("late")) == (True, False)
    assert cli.verdict("last", "--replay") == "complete"


@pytest.mark.slow
def test_an_agent_that_ignores_sigterm_is_still_ended_with_its_monitor(cli: Cli) -> None:
    script = "trap '' TERM HUP INT; echo up > made; echo up; while :; do sleep 0.05; done"
    with subprocess.Popen(
        cli.words("run", *STRICT, "--", "sh", "-c", script),
        cwd=cli.workspace,
        env=cli.environment(),
        stdout=subprocess.PIPE,
        **cli.identity(),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        running.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        assert running.poll() is None  # it was told, and ignores it
        running.kill()
        assert running.stdout.read() == b""  # nobody is left that holds the pipe
    assert not cli.has("made")
    assert cli("recover", "last").returncode in (0, 6)
    assert cli("discard", "last").returncode == 0
    assert not cli.has("made")


FORKS = """
import os, time
made = 0
try:
    for _ in range(1000):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError:
    pass
open("made", "w").write(str(made))
"""


@pytest.mark.slow
def test_a_thousand_processes_end_with_the_agent_and_the_policy_can_say_fewer(cli: Cli) -> None:
    done = cli("run", *STRICT, "--", "/usr/bin/python3", "-c", FORKS)
    assert (done.returncode, cli.get("made")) == (0, "1000"), done.stderr
    few = policy(cli, "limits: {processes: 100}\n")
    done = cli("run", *STRICT, *few, "--", "/usr/bin/python3", "-c", FORKS)
    assert done.returncode == 0, done.stderr
    assert int(cli.get("made")) < 100


def test_a_state_folder_that_is_filled_meets_the_limit_inside(cli: Cli) -> None:
    small = policy(cli, 'state: ["~/.agent"]\nlimits: {file_size: 1MiB}\n')
    done = cli.sh(
        "head -c 5000000 /dev/zero > ~/.agent/log || echo stopped; rm -f ~/.agent/log; echo ok > ~/.agent/notes",
        *STRICT,
        *small,
    )
    assert (done.returncode, done.stdout) == (0, b"stopped\n"), done.stderr
    assert os.listdir(os.path.join(cli.home, ".agent")) == ["notes"]


def test_an_agent_that_changes_itself_is_a_change_like_any_other(cli: Cli) -> None:
    cli.put("agent", '#!/bin/sh\nprintf "#!/bin/sh\\necho new\\n" > agent.new\nchmod +x agent.new\n'
            "mv agent.new agent\nexec ./agent\n", 0o755)  # fmt: skip
    done = cli("run", "--hold", "--", "./agent")
    assert (done.returncode, done.stdout) == (0, b"new\n"), done.stderr
    assert effects(cli) == [("file.modify", "workspace:agent", "held")]
    assert "exec ./agent" in cli.get("agent")


def test_an_update_below_the_install_prefix_or_in_home_reaches_no_host(cli: Cli) -> None:
    os.makedirs(os.path.join(cli.home, ".local", "bin"))
    installed = os.path.join(cli.home, ".local", "bin", "agent")
    with open(installed, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho old\n")
    cli.own()
    script = f"echo x > /usr/local/bin/il-new || echo no; printf 'echo new' > {installed}; sh {installed}"
    done = cli.sh(script, *STRICT)
    assert done.stdout.split() == [b"no", b"new"], done.stderr
    assert not os.path.exists("/usr/local/bin/il-new")
    with open(installed, encoding="utf-8") as file:
        assert "old" in file.read()


def test_a_deleted_workspace_is_listed_counted_and_can_be_had_back(cli: Cli) -> None:
    for number in range(20):
        cli.put(f"f{number}", "x")
        cli.put(f"core/deep/g{number}", "x")
    done = cli.sh("rm -rf ./* && ls", "--hold")
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    shown = cli("show", "last").stdout.decode()
    assert "file.delete  workspace:core with all below it" in shown
    assert "… 9 more (9 file.delete)" in shown
    assert len(effects(cli)) == 21
    assert cli("discard", "last").returncode == 0
    assert len(os.listdir(cli.workspace)) == 21
    done = cli.sh(f"rm -rf {cli.workspace}; mkdir -p {cli.workspace} 2>/dev/null; echo went on", "--hold")
    assert done.stdout == b"went on\n", (done.returncode, done.stderr)
    assert len(os.listdir(cli.workspace)) == 21


@pytest.mark.slow
def test_an_agent_may_be_any_program_or_is_said_to_be_none(cli: Cli) -> None:
    cli.put("script", "#!/bin/sh\necho script $1\n", 0o755)
    cli.put("sub/script", "#!/bin/sh\necho sub\n", 0o755)
    cli.put("bare", "echo bare\n", 0o755)
    cli.put("plain", "echo plain\n")
    cli.put("orphan", "#!/no/such/interpreter\n", 0o755)
    full = os.path.join(cli.workspace, "script")
    for words, said in (
        (("sub/script",), b"sub\n"),
        ((full, "b"), b"script b\n"),
        (("./bare",), b"bare\n"),
    ):
        done = cli("run", *STRICT, "--", *words)
        assert (done.returncode, done.stdout) == (0, said), (words, done.stderr)
    for word, status, said in (
        ("./plain", 2, b"`./plain` cannot be executed"),
        ("./none", 2, b"`./none` is not found"),
        ("./orphan", 127, b"./orphan"),
    ):
        done = cli("run", *STRICT, "--", word)
        assert done.returncode == status, (word, done.stderr)
        assert said in done.stderr
        assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_a_static_program_inside_the_workspace_runs(cli: Cli) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("not run: no C compiler")
    source = cli.put("agent.c", '#include <stdio.h>\nint main(void) { fopen("made", "w"); return 7; }\n')
    made = subprocess.run(
        [compiler, "-static", "-o", os.path.join(cli.workspace, "agent"), source],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("not run: no static C library")
    cli.own()
    assert cli("run", *STRICT, "--", "./agent").returncode == 7
    assert cli.has("made")


@pytest.mark.slow
def test_an_agent_that_ignores_sigterm_is_ended_by_stop_and_its_work_is_held(cli: Cli) -> None:
    script = "trap '' TERM HUP INT; echo up > made; echo up; while :; do sleep 0.05; done"
    with subprocess.Popen(
        cli.words("run", *STRICT, "--", "sh", "-c", script),
        cwd=cli.workspace,
        env=cli.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **cli.identity(),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        assert cli("stop", "last").returncode == 0
        assert running.wait(30) == 3
    assert not cli.has("made")
    assert cli("apply", "last").returncode == 0
    assert cli.get("made") == "up\n"
    assert cli.verdict("last", "--replay") == "complete"


def test_a_state_folder_filled_with_many_files_until_the_disk_is_full_loses_nothing(cli: Cli) -> None:
    if cli.uid:
        pytest.skip("not run: mounting needs root")
    agent = os.path.join(cli.home, ".agent")
    os.makedirs(agent)
    os.makedirs(cli.state)
    with open(f"{agent}/settings", "w", encoding="utf-8") as file:
        file.write("old\n")
    given = policy(cli, 'state: ["~/.agent"]\n')
    script = "i=0; while head -c 40000 /dev/zero > ~/.agent/log$i; do i=$((i+1)); done 2>/dev/null; echo full; exit 0"
    words = shlex.join(cli.words("run", *STRICT, *given, "--", "sh", "-c", script))
    done = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            f"mount -t tmpfs -o size=3m none {cli.state} && {words}; echo status $?",
        ],
        cwd=cli.workspace,
        env=cli.environment(),
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.stdout.startswith("full\n"), done.stderr
    assert "Traceback" not in done.stderr
    names = os.listdir(agent)
    merged = len(names) > 1
    assert "status 0" in done.stdout if merged else "status 0" not in done.stdout, (done.stdout, done.stderr)
    with open(f"{agent}/settings", encoding="utf-8") as file:
        assert file.read() == "old\n"
    assert not any(name.startswith(".interlock-") for name in names)
