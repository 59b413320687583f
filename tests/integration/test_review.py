"""Questions of a living run, answered from another terminal while the run goes on."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.integration.conftest import Cli, answers, in_one_standing
from tests.integration.test_net_run import READS_ALONE, Far, policy
from tests.integration.test_net_run import _at_a_terminal as at_a_terminal

pytestmark = in_one_standing


@pytest.fixture
def there() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


@contextmanager
def asking(cli: Cli, there: Far, script: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run whose writes wait for another terminal, under a policy that passes reads alone."""
    path = policy(cli, there, rules=READS_ALONE, preset="none")
    cli.put("agent.sh", script.replace("AT", there.at))
    with subprocess.Popen(
        cli.words("run", "--oracle", "review", *more, "--policy", path, "--task", "t", "--", "sh", "agent.sh"),
        cwd=cli.workspace, env=cli.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **cli.identity(),
    ) as running:  # fmt: skip
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def waiting(cli: Cli, count: int = 1) -> list[dict[str, str]]:
    """Return what waits, once so many do."""
    found: list[dict[str, str]] = []
    for _ in range(100):
        done = cli("review", "--list", "--json")
        if done.returncode == 0:
            found = json.loads(done.stdout)["waiting"]
            if len(found) == count:
                return found
        time.sleep(0.05)
    raise AssertionError(f"{count} were to wait, and there are {found}: {done.stderr!r}")


ONE = "curl -s -o /dev/null -w '%{http_code}\\n' -d x=1 AT/asked\n"


def test_a_question_waits_for_another_terminal_and_everything_else_goes_on(cli: Cli, there: Far) -> None:
    script = (
        f"({ONE}) & sleep 0.2; curl -s -o /dev/null -w 'read %{{http_code}}\\n' AT/read; touch seen; wait\n"
    )
    with asking(cli, there, script) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"read 200\n"
        (one,) = waiting(cli)
        assert one["object"] == f"{there.at}/asked"
        assert there.calls == ["GET /read"]  # nothing leaves before its answer
        done = cli("review", "--oracle", answers(cli, "- {match: '**', answer: release}\n"), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["released"] == 1
        assert running.stdout.readline() == b"201\n"
        running.wait(20)
    assert there.calls == ["GET /read", "POST /asked"]
    assert cli("verify", "last").returncode == 0


def test_several_questions_wait_and_the_first_answer_to_each_counts(cli: Cli, there: Far) -> None:
    script = f"({ONE.strip()}) & ({ONE.strip().replace('asked', 'other')}) & wait\n"
    with asking(cli, there, script) as running:
        waiting(cli, 2)
        who = answers(
            cli, "- {match: '**/other', answer: refuse, reason: unwanted}\n- {match: '**', answer: release}\n"
        )
        # Two terminals at once: each question has one winner, and the other is told.
        words = cli.words("review", "--oracle", who, "--json")
        two = [
            subprocess.Popen(
                words, cwd=cli.workspace, env=cli.environment(), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, **cli.identity(),
            )
            for _ in range(2)
        ]  # fmt: skip
        said = [one.communicate(timeout=20) for one in two]
        running.wait(20)
    assert there.calls == ["POST /asked"]
    told = [json.loads(out) for out, _error in said if out.startswith(b"{")]
    assert sum(one.get("released", 0) for one in told) == 1
    assert sum(one.get("refused", 0) for one in told if isinstance(one.get("refused"), int)) == 1
    assert cli("verify", "last").returncode == 0


def test_a_question_that_nobody_answers_in_time_is_refused(cli: Cli, there: Far) -> None:
    with asking(cli, there, ONE, "--answer-within", "0.3") as running:
        assert running.stdout is not None
        assert running.stdout.read() == b"403\n"
        running.wait(20)
    assert there.calls == []
    assert cli("verify", "last").returncode == 0


def test_a_question_still_open_when_the_command_ends_is_refused_and_a_kill_lets_nothing_out(
    cli: Cli, there: Far
) -> None:
    with asking(cli, there, f"({ONE}) & sleep 1; kill $!; echo kept > kept\n") as running:
        waiting(cli)
        running.wait(20)
    assert there.calls == []
    with asking(cli, there, ONE) as running:
        waiting(cli)
        running.kill()
    assert there.calls == []
    done = cli("verify", "last")
    assert done.returncode == 1, done.stdout  # unfinished, and true so far


def test_a_scope_of_a_run_that_is_reviewed_elsewhere_is_held_at_its_end_and_resolved_later(
    cli: Cli, there: Far
) -> None:
    with asking(cli, there, "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit\n") as running:
        running.wait(20)
    assert cli("review", "--list").returncode == 2
    done = cli("review", "--oracle", "strict", "--json")
    assert done.returncode in (0, 6), done.stderr
    assert not json.loads(done.stdout)["held"]


def test_bad_answers_change_nothing(cli: Cli, there: Far) -> None:
    from interlock.model.errors import InputError
    from interlock.runtime import control, folders

    with asking(cli, there, ONE) as running:
        waiting(cli)
        (run_id,) = os.listdir(os.path.join(cli.state, "runs"))
        path = os.path.join(cli.state, "runs", run_id)
        folder = folders.load(path)
        for wrong in (
            {"v": 1, "verb": "answer", "question": "0" * 16, "oracle": "human", "answers": []},
            {"v": 1, "verb": "answer", "oracle": "human", "answers": []},
            {"v": 1, "verb": "answer", "question": 7, "oracle": "human", "answers": []},
            {"v": 1, "verb": "answer", "question": "x", "oracle": "human", "answers": [{"effect": "e1"}]},
        ):
            with pytest.raises(InputError):
                control.ask(folder, wrong, lambda _line: None)
        waiting(cli)
        # An answer that names nothing of what was asked refuses.
        done = cli("review", "--oracle", "strict", "--json")
        assert done.returncode == 6, done.stderr
        running.wait(20)
    assert there.calls == []


def test_a_question_on_the_runs_own_terminal_is_answered_from_another_one(cli: Cli, there: Far) -> None:
    path = policy(cli, there, rules=READS_ALONE, preset="none")
    script = cli.put(
        "agent.sh", f"curl -s -d x=1 {there.at}/asked; echo; stty -a | grep -o isig; echo and-on\n"
    )
    who = answers(cli, "- {match: '**', answer: release}\n")
    told: list[subprocess.CompletedProcess[bytes]] = []
    thread = threading.Thread(target=lambda: (waiting(cli), told.append(cli("review", "--oracle", who))))
    thread.start()
    text, status = at_a_terminal(cli, [], "run", "--policy", path, "--task", "t", "--", "sh", script)
    thread.join()
    assert told[0].returncode == 0, told[0].stderr
    assert "the agent is stopped until you answer" in " ".join(text.split())
    assert "settled elsewhere" in text
    assert '"path": "/asked"' in text
    assert "and-on" in text
    assert there.calls == ["POST /asked"]
    assert status == 0


GONE = """\
import socket, struct, sys, time
host, port = sys.argv[1].removeprefix("http://").split(":")
client = socket.create_connection((host, int(port)))
client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it resets when it goes
client.sendall(b"POST /asked HTTP/1.1\\r\\nHost: %s:%s\\r\\nContent-Length: 1\\r\\n\\r\\nx" % (host.encode(), port.encode()))
time.sleep(1)
"""


def test_a_client_that_resets_its_connection_closes_its_question(cli: Cli, there: Far) -> None:
    cli.put("gone.py", GONE)
    script = (
        "/usr/bin/python3 gone.py AT & sleep 0.5\n"
        'echo "waits: $(curl -s "$INTERLOCK_NOTICES" | tr -d \' \\n\')"\nwait; sleep 0.3\n'
        'echo "then: $(curl -s "$INTERLOCK_NOTICES" | tr -d \' \\n\')"\n'
    )
    with asking(cli, there, script) as running:
        assert running.stdout is not None
        assert b'"waiting":["e1"]' in running.stdout.readline()
        then = running.stdout.readline()
        assert b'"waiting"' not in then
        assert b"whoevermadetherequestisgone" in then
        running.wait(20)
    assert there.calls == []
    assert cli("verify", "last", "--replay").returncode == 0
