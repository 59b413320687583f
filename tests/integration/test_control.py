"""A run reached from another terminal while its command lives."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from tests.integration.conftest import Cli, in_one_standing
from tests.integration.test_net_run import _at_a_terminal as at_a_terminal

pytestmark = in_one_standing


@contextmanager
def living(cli: Cli, script: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script behind the boundary until it made the file `ready`."""
    run = subprocess.Popen(
        cli.words("run", "--task", "look around", *options, "--", "sh", "-c", script),
        cwd=cli.workspace,
        env=cli.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **cli.identity(),
    )
    try:
        until(lambda: b"ready" in cli("diff", "last", "--stat").stdout)
        yield run
    finally:
        if run.poll() is None:
            run.terminate()
        run.communicate(timeout=20)


def steer(folder: str, request: dict[str, object]) -> dict[str, object]:
    """Say a request as another program would, and return the last line of the answer."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(os.path.join(folder, "control"))
        sock.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(sock.makefile("rb").readlines()[-1])
    assert isinstance(answer, dict)
    return answer


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_stop_ends_the_command_and_holds_what_it_did(cli: Cli) -> None:
    with living(cli, "echo work >made; touch ready; exec sleep 60") as run:
        done = cli("stop", "last", "--json")
        assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "held"), done.stderr
        _out, err = run.communicate(timeout=20)
    assert b"stopped" in err
    assert not cli.has("made")
    again = cli("stop", "last")
    assert again.returncode == 2
    assert b"is not under way: its command has ended, and what it did is held" in again.stderr
    assert b"next: resolve it: interlock review " in again.stderr
    assert cli("apply", "last").returncode == 0
    assert cli.get("made") == "work\n"
    assert cli.verdict("last", "--replay") == "complete"


def test_a_command_reads_why_its_files_are_gone_while_it_goes_on(cli: Cli) -> None:
    cli.put("setup.cfg", "old\n")
    script = (
        "echo new >setup.cfg; mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; touch ready; read line; "
        "curl -s $INTERLOCK_NOTICES; read line; curl -s $INTERLOCK_NOTICES; cat setup.cfg"
    )
    with living(cli, script, "--oracle", "strict") as run:
        assert cli("discard", "last").returncode == 0
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write(b"go on\n")
        run.stdin.flush()
        dropped = notices_in(run.stdout)
        out, _err = run.communicate(b"go on\n", timeout=20)
    assert [(one["object"], one["violated_rule"]) for one in dropped] == [
        ("all that was staged", "discarded")
    ]
    assert dropped[0]["constraints"] == [
        "nothing of it reached the host, and no request that waited was sent",
        "the files are as the host has them",
    ]
    assert out.endswith(b"old\n")
    assert json.loads(out.removesuffix(b"old\n"))["notices"] == dropped
    later = json.loads(cli("notices", "last", "--json").stdout)["notices"]
    assert [one | {"number": 1} for one in dropped] == later
    assert not os.path.exists(os.path.join(cli.state, "runs", cli.story()["run"], "control"))


def test_a_command_reads_which_files_a_commit_refused_while_it_goes_on(cli: Cli) -> None:
    script = (
        "mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; echo fine >fine.txt; touch ready; read line; "
        "curl -s $INTERLOCK_NOTICES"
    )
    with living(cli, script, "--oracle", "strict") as run:
        folder = os.path.join(cli.state, "runs", cli.story()["run"])
        done = steer(folder, {"v": 1, "verb": "apply", "oracle": "strict"})
        assert done["ok"], done
        out, _err = run.communicate(b"go on\n", timeout=20)
    told = json.loads(out)["notices"]
    assert "workspace:.git/hooks/pre-commit" in [one["object"] for one in told]
    assert all(one["constraints"] and one["rationale"] and one["allowed_objective"] for one in told)
    assert cli.get("fine.txt") == "fine\n"
    later = json.loads(cli("notices", "last", "--json").stdout)["notices"]
    assert [one["object"] for one in later] == [one["object"] for one in told]


def test_a_person_reviews_in_another_terminal_while_the_command_goes_on(cli: Cli) -> None:
    script = (
        "mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; echo fine >fine.txt; touch ready; read line; "
        "echo later >later.txt"
    )
    with living(cli, script, "--oracle", "strict") as run:
        text, status = at_a_terminal(cli, [(b"help] >", b"\x03")], "apply", "last", "--review")
        assert "pre-commit" in text
        assert (status, cli.has("fine.txt")) == (0, False), text
        text, status = at_a_terminal(
            cli, [(b"help] >", b"a\n"), (b"confirm? [y/n]", b"y\n")], "apply", "last", "--review"
        )
        assert (status, cli.get("fine.txt"), cli.get(".git/hooks/pre-commit")) == (0, "fine\n", "x\n"), text
        assert run.poll() is None
        run.communicate(b"go on\n", timeout=20)
    assert run.returncode == 0
    assert cli.get("later.txt") == "later\n"
    assert cli.verdict("last", "--replay") == "complete"


def notices_in(stream: IO[bytes]) -> list[dict[str, object]]:
    """Read one document of notices from a command that goes on."""
    text = b""
    while not text.endswith(b"}\n") or text.count(b"{") != text.count(b"}"):
        text += stream.readline()
    notices = json.loads(text)["notices"]
    assert isinstance(notices, list)
    return notices
