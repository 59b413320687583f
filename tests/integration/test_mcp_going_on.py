"""Requests that take more than one answer: a server that asks back, tasks, input that is required first."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from tests.fakes.guarded import fates, quick_folder, results
from tests.fakes.mcp_pair import FORMS, POLICY, Pair, ended, meta, refusal_in, until

from interlock.model.requests import Outcome
from interlock.runtime.story import Fate


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quick_folder() as folder:
        monkeypatch.setenv("INTERLOCK_STATE", os.path.join(folder, "state"))
        yield


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_what_the_server_asks_is_answered_and_on_record() -> None:
    async def test() -> None:
        pair = Pair()
        await pair.start({"sampling": {}})

        async def sample(message: dict[str, Any]) -> None:
            await pair.says(
                {"jsonrpc": "2.0", "id": message["id"], "result": {"role": "assistant", "content": {}}}
            )

        pair.on_asked = sample
        asked = {"messages": [{"role": "user", "content": {"type": "text", "text": "say x"}}]}
        await pair.server_says(
            {"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage", "params": asked}
        )
        await until(lambda: any(one.get("id") == 9 for one in pair.to_server))
        assert pair.to_server[-1]["result"]["role"] == "assistant"
        scope = await ended(pair)
        assert fates(scope) == [("mail/mcp:sampling.createMessage", Fate.SENT)]
        assert "say x" in results(scope)[0]["text"]

    run(test())


def test_a_policy_may_hold_what_a_server_is_told() -> None:
    async def test() -> None:
        role = "  mail/mcp:elicitation.create: {effect: send, steers: {answer: text}}\n"
        pair = Pair(POLICY + role)
        await pair.server_says(
            {"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"message": "key?"}}
        )
        await pair.says(
            {"jsonrpc": "2.0", "id": 9, "result": {"action": "accept", "content": {"key": "s3cret"}}}
        )
        assert "error" in pair.to_server[-1]
        assert "s3cret" not in json.dumps(pair.to_server)
        await ended(pair)

    run(test())


def test_a_server_that_wants_to_know_more_is_told_and_the_call_counts_once() -> None:
    async def test() -> None:
        pair = Pair()

        async def server(message: dict[str, Any]) -> None:
            if "requestState" not in message["params"]:
                form = {"method": "elicitation/create", "params": {"message": "which?"}}
                wants = {"resultType": "input_required", "inputRequests": {"k": form}, "requestState": "s1"}
                await pair.answers(message["id"], wants)
            else:
                assert message["params"]["inputResponses"]["k"]["content"] == {"a": 1}
                await pair.answers(message["id"], {"resultType": "complete", "content": []})

        pair.on_request = server
        first = await pair.call("send", more=meta(FORMS), to="ann@a.test")
        assert first["result"]["resultType"] == "input_required"
        more = {
            **meta(FORMS),
            "requestState": "s1",
            "inputResponses": {"k": {"action": "accept", "content": {"a": 1}}},
        }
        again = await pair.call("send", more=more, to="ann@a.test")
        assert again["result"]["resultType"] == "complete"
        scope = await ended(pair)
        assert fates(scope) == [("mail/send", Fate.SENT), ("mail/mcp:elicitation.create", Fate.SENT)]

    run(test())


def test_a_state_of_the_servers_releases_no_other_call() -> None:
    async def test() -> None:
        pair = Pair()
        wants = {"resultType": "input_required", "requestState": "s1"}
        pair.on_request = lambda message: pair.answers(message["id"], wants)
        await pair.call("send", more=meta(), to="ann@a.test")
        refusal_in(await pair.call("send", more={**meta(), "requestState": "s1"}, to="eve@evil.test"))
        assert len(pair.calls) == 1
        await ended(pair)

    run(test())


def test_a_call_that_becomes_a_task_ends_with_the_tasks_result() -> None:
    async def test() -> None:
        pair = Pair()

        async def server(message: dict[str, Any]) -> None:
            if message["method"] == "tools/call":
                await pair.answers(message["id"], {"task": {"taskId": "t1", "status": "working"}})
            else:
                await pair.answers(message["id"], {"content": [{"type": "text", "text": "done at last"}]})

        pair.on_request = server
        made = await pair.call("send", more={"task": {"ttl": 1000}}, to="ann@a.test")
        assert made["result"]["task"]["taskId"] == "t1"
        await pair.server_says(
            {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {"taskId": "t1"}}
        )
        assert (await pair.ask("tasks/result", {"taskId": "t1"}))["result"]["content"]
        await pair.ask("tasks/result", {"taskId": "t1"})
        scope = await ended(pair)
        assert fates(scope) == [("mail/send", Fate.SENT), ("mail/mcp:tasks.result", Fate.SENT)]
        assert results(scope)[0]["text"] == "done at last"

    run(test())


def test_a_task_that_nobody_asks_about_stays_unknown() -> None:
    async def test() -> None:
        pair = Pair()
        pair.on_request = lambda message: pair.answers(message["id"], {"task": {"taskId": "t1"}})
        await pair.call("send", more={"task": {}}, to="ann@a.test")
        (result,) = results(await ended(pair))
        assert result["outcome"] == Outcome.UNKNOWN.value

    run(test())
