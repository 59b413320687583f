"""What fails while MCP is guarded refuses: no call reaches the server that is not decided and on record."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from tests.fakes.guarded import quick_folder, results
from tests.fakes.mcp_pair import FORMS, Pair, until

from interlock.model.errors import InterlockError
from interlock.model.requests import Outcome


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quick_folder() as folder:
        monkeypatch.setenv("INTERLOCK_STATE", os.path.join(folder, "state"))
        yield


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_where_the_run_cannot_be_opened_no_call_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setenv("INTERLOCK_STATE", "/proc/no-such-place")
        pair = Pair()
        assert "not made" in (await pair.call("search", query="x"))["error"]["message"]
        assert "not made" in (await pair.call("send", to="ann@a.test"))["error"]["message"]
        listed = await pair.ask("tools/list")
        assert listed == {} or "error" in listed
        assert pair.calls == []
        await pair.session.closed()

    run(test())


def test_where_the_ledger_is_lost_no_further_call_is_made() -> None:
    async def test() -> None:
        pair = Pair()
        await pair.call("search", query="x")
        decider = pair.session._decider
        assert decider is not None
        for descriptor in decider.scope._performer.ledger._files.values():
            full = os.open("/dev/full", os.O_WRONLY)
            os.dup2(full, descriptor)
            os.close(full)
        for number in range(3):
            told = await pair.call("send", to="ann@a.test", body=str(number))
            assert "error" in told
        assert pair.calls == [("search", {"query": "x"})]
        with pytest.raises(InterlockError, match="ledger"):
            await pair.session.closed()

    run(test())


def test_a_fault_of_the_decision_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        pair = Pair()
        await pair.call("search", query="x")
        decider = pair.session._decider
        assert decider is not None

        def broken(*_arguments: object) -> object:
            raise RuntimeError("odd")

        monkeypatch.setattr(decider.scope, "propose", broken)
        told = await pair.call("send", to="ann@a.test")
        assert "fault" in told["error"]["message"]
        assert "odd" not in told["error"]["message"]
        assert len(pair.calls) == 1

    run(test())


def test_a_client_that_cannot_be_reached_releases_nothing() -> None:
    async def test() -> None:
        pair = Pair()
        await pair.start(FORMS)

        async def gone(_raw: bytes) -> None:
            raise BrokenPipeError

        call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send","arguments":{"to":"eve@evil.test"}}}'
        await pair.session.client_said(call, back=gone, onward=pair._hear_server)
        assert pair.calls == []
        await pair.session.closed()

    run(test())


def test_a_server_that_answers_a_held_call_early_is_not_believed() -> None:
    async def test() -> None:
        pair = Pair()
        await pair.start(FORMS)
        calling = asyncio.ensure_future(
            pair.ask("tools/call", {"name": "send", "arguments": {"to": "eve@evil.test"}}, number=3)
        )
        await until(lambda: any(one.get("method") == "elicitation/create" for one in pair.to_client))
        forged = {"content": [{"type": "text", "text": "sent"}]}
        await pair.answers(3, forged)
        assert not any(one.get("result") == forged for one in pair.to_client)
        await pair.answers(pair.to_client[-1]["id"], {"action": "accept", "content": {"decision": "allow"}})
        await asyncio.sleep(0.05)
        assert not calling.done()
        await pair.session.closed()
        await calling
        assert pair.calls == []

    run(test())


def test_a_server_that_goes_leaves_calls_unknown_and_none_is_sent_after_it() -> None:
    async def test() -> None:
        pair = Pair()
        pair.on_request = lambda _message: None
        calling = asyncio.ensure_future(pair.call("send", to="ann@a.test"))
        await until(lambda: pair.calls)
        pair.session.server_gone("the server ended")
        assert "not known" in (await calling)["error"]["message"]
        assert "not made" in (await pair.call("send", to="ann@a.test", body="again"))["error"]["message"]
        assert len(pair.calls) == 1
        decider = pair.session._decider
        assert decider is not None
        await pair.session.closed()
        assert [one["outcome"] for one in results(decider.scope)] == [
            Outcome.UNKNOWN.value,
            Outcome.FAILED.value,
        ]

    run(test())


def test_a_client_that_goes_while_calls_are_under_way_leaves_them_on_record() -> None:
    async def test() -> None:
        pair = Pair()
        pair.on_request = lambda _message: None
        calling = asyncio.ensure_future(pair.call("send", to="ann@a.test"))
        await until(lambda: pair.calls)
        decider = pair.session._decider
        assert decider is not None
        await pair.session.closed()
        await calling
        assert [one["outcome"] for one in results(decider.scope)] == [Outcome.UNKNOWN.value]

    run(test())


def test_nothing_is_decided_after_the_end() -> None:
    async def test() -> None:
        pair = Pair()
        await pair.call("search", query="x")
        await pair.session.closed()
        assert "error" in await pair.call("send", to="ann@a.test")
        assert len(pair.calls) == 1

    run(test())


@pytest.mark.parametrize("value", [[1] * 10, {"a": {"b": 1}}, "x" * 2_100_000, True, 10**30])
def test_arguments_of_any_kind_are_decided_or_refused_never_passed_unseen(value: Any) -> None:
    async def test() -> None:
        pair = Pair()
        answer = await pair.call("send", to=value)
        assert answer.get("error") or answer["result"]["isError"]
        assert pair.calls == []
        await pair.session.closed()

    run(test())
