"""What a model announces in a compressed stream, over TLS and to real clients, stands on the effects that follow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.model import COMMAND
from tests.fakes.internet.standing import Standing, standing_with

AGENT = """
import json, subprocess, sys
client, at = sys.argv[1:]
NODE = "fetch(process.argv[1], {method: 'POST', body: process.argv[2]}).then(a => a.text()).then(console.log)"
words = ["curl", "-sSN", "--compressed", at, "-d"] if client == "curl" else ["node", "-e", NODE, at]
messages = [{"role": "user", "content": "go"}]
def ask():
    body = json.dumps({"stream": True, "messages": messages})
    calls, parts = {}, {}
    for line in subprocess.check_output([*words, body], text=True).splitlines():
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
"""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture(params=["root", pytest.param("user", marks=pytest.mark.slow)])
def standing(request: pytest.FixtureRequest, world: World) -> Iterator[Standing]:
    yield from standing_with(world, request.param, {})


@pytest.mark.parametrize(
    ("client", "host", "encoding"),
    [
        ("curl", "h2.test", "zstd"),
        ("node", "api.test", "br"),
        pytest.param("curl", "api.test", "gzip", marks=pytest.mark.slow),
        pytest.param("curl", "api.test", "deflate", marks=pytest.mark.slow),
    ],
)
def test_a_compressed_stream_names_the_call(
    client: str, host: str, encoding: str, standing: Standing, world: World
) -> None:
    if reason := clients.missing(client):
        pytest.skip(reason)
    standing.put("agent.py", AGENT)
    mark = world.mark()
    network = {"models": [host], "hosts": [{"host": host, "methods": ["*"]}]}
    done = standing.sh(
        f"/usr/bin/python3 agent.py {client} 'https://{host}/v1/messages?as={encoding}'", network
    )
    assert done.returncode == 0, done.stderr.decode()
    asked = [dict(one.headers).get("accept-encoding", "") for one in world.requests(mark)]
    if len(asked) == 3 and not all(re.search(rf"\b{encoding}\b", one) for one in asked):
        pytest.skip(f"not run: this {client} does not ask for {encoding}")
    story = json.loads(standing("show", "last", "--json").stdout)
    found = {item["object"]: item["action"] for item in story["effects"]}
    named = {key: (value["tool"], value["relation"]) for key, value in found.items() if value}
    assert named == {
        "workspace:notes.txt": ("Write", "announced"),
        "workspace:made.txt": ("Bash", "announced"),
    }
    assert f"by Bash({COMMAND}" in standing("show", "last").stdout.decode()
    why = standing("why", "last", "notes.txt").stdout.decode()
    assert 'Write {"content":"hello","file_path":"notes.txt"}' in why
    verdict = json.loads(standing("verify", "last", "--replay", "--json").stdout)["verdict"]
    assert verdict == "complete"
