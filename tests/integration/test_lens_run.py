"""A scripted agent and its model, both real: what the model announced stands on the effects that follow."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.integration.conftest import Cli

AGENT = """
import json, subprocess, sys, urllib.request
base, wire = sys.argv[1], "/v1/messages"
messages = [{"role": "user", "content": "go"}]
def ask():
    body = json.dumps({"stream": True, "messages": messages}).encode()
    asked = urllib.request.Request(base + wire, data=body, headers={"content-type": "application/json"})
    calls, parts = {}, {}
    for line in urllib.request.urlopen(asked).read().decode().splitlines():
        if line.startswith("data: "):
            event = json.loads(line[6:])
            if event["type"] == "content_block_start":
                calls[event["index"]] = event["content_block"]
            elif event["type"] == "content_block_delta":
                parts[event["index"]] = parts.get(event["index"], "") + event["delta"]["partial_json"]
    return [dict(call, input=json.loads(parts[at])) for at, call in calls.items()]
while calls := ask():
    messages.append({"role": "assistant", "content": calls})
    results = []
    for call in calls:
        if call["name"] == "Write":
            open(call["input"]["file_path"], "w").write(call["input"]["content"])
        else:
            subprocess.run(call["input"]["command"], shell=True)
        results.append({"type": "tool_result", "tool_use_id": call["id"], "content": "done"})
    messages.append({"role": "user", "content": results})
print("done")
"""


class Model:
    """A provider whose answers are scripted: a list of calls for each turn, `None` to break off in mid-stream."""

    def __init__(self, turns: list[list[tuple[str, dict[str, Any]]] | None]) -> None:
        self.turns = turns
        self.asked = 0
        model = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(200, "text/plain", b"ok")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", "0")))
                if not self.path.startswith("/v1/messages"):
                    self._send(200, "text/plain", b"ok")
                    return
                turn = model.turns[model.asked] if model.asked < len(model.turns) else []
                model.asked += 1
                if turn is None:
                    self.send_response(200)
                    self.send_header("content-type", "text/event-stream")
                    self.send_header("content-length", "5000")
                    self.end_headers()
                    self.wfile.write(b'data: {"type": "message_start"}\n\n')
                    self.close_connection = True
                    return
                self._send(200, "text/event-stream", _events(model.asked, turn))

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                if "gzip" in self.headers.get("accept-encoding", ""):
                    body = gzip.compress(body)
                    self.send_header("content-encoding", "gzip")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def _events(turn: int, calls: list[tuple[str, dict[str, Any]]]) -> bytes:
    out: list[dict[str, Any]] = [{"type": "message_start", "message": {"content": []}}]
    for index, (tool, given) in enumerate(calls):
        block = {"type": "tool_use", "id": f"toolu_{turn}_{index}", "name": tool, "input": {}}
        out.append({"type": "content_block_start", "index": index, "content_block": block})
        said = json.dumps(given)
        for start in range(0, len(said), 7):
            delta = {"type": "input_json_delta", "partial_json": said[start : start + 7]}
            out.append({"type": "content_block_delta", "index": index, "delta": delta})
        out.append({"type": "content_block_stop", "index": index})
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in out)


@pytest.fixture
def models() -> Iterator[list[Model]]:
    made: list[Model] = []
    yield made
    for one in made:
        one.close()


def run_agent(cli: Cli, model: Model, *, hosts: int = 0, more: str = "", agent: str = AGENT) -> Any:
    path = os.path.join(cli.base, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f"version: 1\npreset: coding\nenvironment: {{pass: [PATH, HOME]}}\nnetwork:\n"
            f'  models: ["127.0.0.1:{model.port}"]\n'
            f'  hosts: [{{host: "127.0.0.1", port: {hosts or model.port}, methods: ["*"]}}]\n'
            f'  publish:\n    - {{port: {model.port}, to: "127.0.0.1:{model.port}"}}\n'
            + (f'    - {{port: {hosts}, to: "127.0.0.1:{hosts}"}}\n' if hosts else "")
            + more
        )
    cli.put("agent.py", agent)
    cli.own()
    return cli(
        "run",
        "--policy",
        path,
        "--oracle",
        "strict",
        "--",
        "/usr/bin/python3",
        "agent.py",
        f"http://127.0.0.1:{model.port}",
    )


def test_each_effect_names_the_call_that_announced_it(cli: Cli, models: list[Model]) -> None:
    far = Model([])
    models.append(far)
    post = f"curl -s -X POST -d hello http://127.0.0.1:{far.port}/notes"
    model = Model(
        [
            [("Write", {"file_path": "notes.txt", "content": "hello"})],
            [("Bash", {"command": post})],
            [("Bash", {"command": "mkdir out && python3 -c \"open('out/x.bin','w')\"; sh ./make.sh"})],
        ]
    )
    models.append(model)
    cli.put("make.sh", "echo made > made.txt\n")
    done = run_agent(cli, model, hosts=far.port)
    assert (done.returncode, done.stdout.decode().split()) == (0, ["okdone"]), done.stderr
    found = {item["object"]: item["action"] for item in cli.story()["effects"]}
    named = {key: (value["relation"], value.get("call", "")) for key, value in found.items() if value}
    assert named == {
        f"http://127.0.0.1:{far.port}/notes": ("announced", "toolu_2_0"),
        "workspace:made.txt": ("covered", "toolu_3_0"),
        "workspace:notes.txt": ("announced", "toolu_1_0"),
        "workspace:out": ("announced", "toolu_3_0"),
        "workspace:out/x.bin": ("announced", "toolu_3_0"),
    }
    assert found[f"http://127.0.0.1:{model.port}/v1/messages"] is None
    shown = cli("show", "last").stdout.decode()
    assert "by Write(file_path=notes.txt, …)" in shown
    assert f"by Bash({post[:50]}" in shown
    why = cli("why", "last", "notes.txt").stdout.decode()
    assert "the model's call names it (toolu_1_0, exchange e1):" in why
    assert 'Write {"content":"hello","file_path":"notes.txt"}' in why
    assert cli.verdict("last", "--replay") == "complete"


def test_a_model_server_that_breaks_off_ends_the_agent_cleanly(cli: Cli, models: list[Model]) -> None:
    model = Model([[("Write", {"file_path": "notes.txt", "content": "hello"})], None])
    models.append(model)
    done = run_agent(cli, model)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith((b"http.client.IncompleteRead", b"ConnectionReset"))
    fates = [(item["operation"], item["fate"]) for item in cli.story()["effects"]]
    assert fates == [("net.model", "sent"), ("net.model", "unknown"), ("file.create", "committed")]
    assert cli.verdict("last", "--replay") == "complete"


def test_a_model_server_that_is_not_there_is_told_to_the_agent(cli: Cli, models: list[Model]) -> None:
    model = Model([])
    model.close()
    done = run_agent(cli, model)
    assert done.returncode == 1
    assert b"HTTP Error 502" in done.stderr.splitlines()[-1]
    assert [(item["operation"], item["fate"]) for item in cli.story()["effects"]] == [("net.model", "failed")]
    assert cli.verdict("last", "--replay") == "complete"
