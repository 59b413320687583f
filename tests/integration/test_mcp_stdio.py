"""`interlock mcp -- SERVER` as the program that a client starts: what it says, what it leaves, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.guarded import quick_folder
from tests.fakes.mcp_pair import POLICY, TASK

from interlock.verify import verify_path

SERVER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fakes", "mcp_server.py")


@pytest.fixture
def place() -> Iterator[str]:
    with quick_folder() as folder:
        Path(folder, "policy.yaml").write_text(POLICY, encoding="utf-8")
        yield folder


class Program:
    """The program, and a client on its pipes. Takes: `words`, what the server does; `options`, of the verb."""

    def __init__(
        self, place: str, *words: str, options: tuple[str, ...] = (), server: tuple[str, ...] = ()
    ) -> None:
        self.place = place
        policy = os.path.join(place, "policy.yaml")
        command = [
            sys.executable,
            "-m",
            "interlock",
            "mcp",
            "--policy",
            policy,
            "--task",
            TASK,
            "--server",
            "mail",
        ]
        self.process = subprocess.Popen(
            [*command, *options, "--", *(server or (sys.executable, SERVER, *words))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                **os.environ,
                "INTERLOCK_STATE": os.path.join(place, "state"),
                "MAIL_TOKEN": "t0ken",
                "OTHER": "x",
            },
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        self._count = 0

    def say(self, *lines: bytes | dict[str, Any]) -> None:
        for line in lines:
            self.input.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self.input.flush()

    def hear(self) -> dict[str, Any]:
        line = self.output.readline()
        assert line.endswith(b"\n"), line
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        self.say({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        answer = self.hear()
        assert answer["id"] == self._count, answer
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=tool, arguments=arguments)

    def end(self) -> tuple[int, str]:
        """Hang up. Returns: the exit status, and what was said on stderr."""
        self.input.close()
        status = self.process.wait(30)
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        self.process.stderr.close()
        self.output.close()
        return status, said

    def ledgers(self) -> list[str]:
        runs = Path(self.place, "state", "runs")
        return [str(one / "ledger") for one in runs.iterdir()] if runs.is_dir() else []


def sealed(program: Program) -> None:
    (ledger,) = program.ledgers()
    assert verify_path(ledger, replay=True).verdict == "complete"


def test_a_session_from_its_first_word_to_its_seal(place: str) -> None:
    program = Program(place)
    assert program.ask("initialize", protocolVersion="2025-06-18", capabilities={})["result"]["serverInfo"]
    program.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert len(program.ask("tools/list")["result"]["tools"]) == 2
    assert "isError" not in program.call("send", to="ann@a.test")["result"]
    assert program.call("send", to="eve@evil.test")["result"]["isError"] is True
    status, said = program.end()
    assert status == 0, said
    assert "a word on stderr" in said
    assert "interlock show" in said
    sealed(program)


def test_what_was_asked_before_the_client_hung_up_is_answered(place: str) -> None:
    program = Program(place)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {}}}
    program.say(call, {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}})
    program.input.close()
    assert {program.hear()["id"], program.hear()["id"]} == {1, 2}
    assert program.end()[0] == 0
    sealed(program)


def test_a_client_that_stops_reading_ends_it(place: str) -> None:
    program = Program(place)
    program.call("search", query="x")
    program.output.close()
    program.say({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}})
    program.process.wait(30)
    assert program.end()[0] == 0
    sealed(program)


def test_bad_lines_of_either_side_go_nowhere_and_the_session_goes_on(place: str) -> None:
    program = Program(place, "banner", "twice")
    for bad in (b"{", b"hello", b"[]", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call"}'):
        program.say(bad)
        assert "error" in program.hear()
    program.say(b"", b"  ")
    assert "error" in program.hear()  # white space alone is no message, an empty line is nothing
    assert "content" in program.call("search", query="x")["result"]
    assert "content" in program.call("search", query="y")["result"]
    status, said = program.end()
    assert (status, program.output.closed) == (0, True)
    assert "went nowhere" in said
    sealed(program)


def test_a_line_that_is_too_long_is_not_kept(place: str) -> None:
    program = Program(place, "flood")
    assert "content" in program.call("search", query="x")["result"]
    program.say(b"x" * (33 * 1024 * 1024))
    assert "longer than" in program.hear()["error"]["message"]
    assert program.end()[0] == 0


@pytest.mark.parametrize(("word", "status"), [("dies", 1), ("half", 1)])
def test_a_server_that_ends_within_a_call_leaves_it_unknown(place: str, word: str, status: int) -> None:
    program = Program(place, word)
    assert "not known" in program.call("send", to="ann@a.test")["error"]["message"]
    assert program.end()[0] == status
    sealed(program)


@pytest.mark.parametrize("word", ["hangs", "deaf"])
def test_a_server_that_does_not_end_is_ended(place: str, word: str) -> None:
    program = Program(place, word)
    program.ask("tools/list")
    if word == "hangs":
        program.say(
            {
                "jsonrpc": "2.0",
                "id": 9,
                "method": "tools/call",
                "params": {"name": "send", "arguments": {"to": "ann@a.test"}},
            }
        )
    status, said = program.end()
    assert status == 0, said
    sealed(program)


def test_a_signal_ends_and_seals(place: str) -> None:
    program = Program(place)
    program.call("search", query="x")
    program.process.send_signal(signal.SIGTERM)
    program.process.wait(30)
    assert program.end()[0] == 0
    sealed(program)


def test_a_server_gets_the_variables_that_the_policy_names(place: str) -> None:
    program = Program(place, "env")
    found = json.loads(program.call("search")["result"]["content"][0]["text"])
    assert found["OTHER"] == "x"
    assert "INTERLOCK_STATE" not in found
    program.end()
    Path(place, "policy.yaml").write_text(POLICY + "mcp: {mail: {environment: [MAIL_*]}}\n", encoding="utf-8")
    narrow = Program(place, "env")
    found = json.loads(narrow.call("search")["result"]["content"][0]["text"])
    assert "OTHER" not in found
    assert found["MAIL_TOKEN"] == "t0ken"
    narrow.end()


def test_notes_are_json_where_that_is_asked_for(place: str) -> None:
    program = Program(place, options=("--json",))
    program.call("search")
    _status, said = program.end()
    notes = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert any("interlock show" in note["note"] for note in notes)


@pytest.mark.parametrize(
    ("options", "server", "says"),
    [
        ((), ("/no/such/server",), "cannot be started"),
        (("--oracle", "human"), ("true",), "terminal"),
        (("--policy", "/no/such/policy"), ("true",), "policy"),
    ],
)
def test_a_mistake_ends_it_before_anything_is_passed(
    place: str, options: tuple[str, ...], server: tuple[str, ...], says: str
) -> None:
    program = Program(place, options=options, server=server)
    status, said = program.end()
    assert status == 2
    assert says in said
    assert program.ledgers() == []


def test_words_that_name_no_server_are_a_mistake() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "mcp"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "a server is needed" in done.stderr
