"""200 agents at once, streaming: each gets its own answer whole, nothing is lost or doubled, a refused call in none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.fakes.raw_provider import RawProvider, anthropic, called, said, streamed
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.gateway_process import a_gateway, post

pytestmark = [in_one_standing, pytest.mark.slow]

AGENTS = 200
POLICY = """\
version: 1
preset: none
trusted: [{task: true}]
tools:
  note: {effect: write, steers: {to: text}}
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""


def answers(_number: int, _fields: dict[str, str], body: bytes) -> Iterator[bytes]:
    """Call a tool as the request's own text says; the boundary's own request is answered by a text."""
    messages = json.loads(body)["messages"]
    word = messages[0]["content"]
    if len(messages) > 1:
        return streamed(anthropic(said(f"again {word}"), cuts=20))
    to = "everybody" if int(word.removeprefix("agent-")) % 2 else "board"
    return streamed(anthropic(said(f"hello {word}"), called("note", f"call-{word}", to=to), cuts=20))


def test_each_of_200_agents_gets_its_own_answer(cli: Cli) -> None:
    provider = RawProvider(answers)
    path = f"{cli.base}/policy.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(POLICY)
    cli.own()
    try:
        words = ("--upstream", f"anthropic={provider.at}", "--policy", path, "--task", "note it on the board")
        with a_gateway(cli, *words) as gateway, ThreadPoolExecutor(AGENTS) as pool:

            def ask(number: int) -> bytes:
                body = {"model": "m", "max_tokens": 9, "stream": True}
                message = {"role": "user", "content": f"agent-{number}"}
                session = {"x-interlock-session": f"s{number % 10}"}
                status, _fields, answer = post(
                    gateway.port, "/v1/messages", {**body, "messages": [message]}, session
                )
                assert status == 200, answer
                return answer

            found = [*pool.map(ask, range(AGENTS))]
            assert gateway.end() == (0, b"")
    finally:
        provider.close()
    for number, answer in enumerate(found):
        words_ = "".join(
            event["delta"].get("text", "")
            for event in (json.loads(line[6:]) for line in answer.splitlines() if line.startswith(b"data: "))
            if event["type"] == "content_block_delta"
        )
        refused = number % 2
        assert words_ == f"hello agent-{number}" + (f"again agent-{number}" if refused else "")
        assert (b"tool_use" in answer) is not bool(refused)
    assert len(provider.requests) == AGENTS * 3 // 2
    fates: Counter[tuple[str, str]] = Counter()
    for run in gateway.runs.values():
        assert cli.verdict(run, "--replay") == "complete"
        fates.update((one["operation"], one["fate"]) for one in cli.story(run)["effects"])
    assert fates == {
        ("net.model", "sent"): AGENTS * 3 // 2,
        ("tool.write", "refused"): AGENTS // 2,
        ("tool.write", "unknown"): AGENTS // 2,
    }
