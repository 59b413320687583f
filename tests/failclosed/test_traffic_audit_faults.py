"""The gate with a real run behind it: where the audit breaks, or the ledger, no call of a model's passes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.audited_core import POLICY, held

from interlock.boundary.net.gate import Passed, Refused
from interlock.model import events as ev
from interlock.model.records import changed
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.oracle.strict import Strict
from interlock.policy import load_policy
from interlock.runtime import auditing
from interlock.runtime.inbound import Inbound
from interlock.runtime.performer import LedgerLost, Performer
from interlock.runtime.story import events_of
from interlock.runtime.traffic import Traffic
from interlock.sdk.opening import open_scope


class Unseen:
    def catch_up(self) -> None:
        pass


class Gate(Traffic):
    """A gate over a real run. Holds: `lost`, what it was told when the ledger could not be written."""

    def __init__(self, performer: Performer, loop: asyncio.AbstractEventLoop, folder: Path) -> None:
        self.told: list[BaseException] = []
        super().__init__(
            performer=performer,
            sandbox=Unseen(),
            loop=loop,
            sender=None,  # type: ignore[arg-type]
            tokens={},
            keeps_text=lambda _request: False,
            inbound=Inbound(str(folder / "inbound"), budget_bytes=0),
            lost=self.told.append,
        )
        performer.traffic = self


def request(*messages: dict[str, Any]) -> NetRequest:
    body = json.dumps({"model": "m", "messages": messages})
    return NetRequest(
        method="POST",
        scheme="https",
        host="llm.test",
        port=443,
        path="/v1/chat/completions",
        body_size_bytes=len(body),
        body_digest=sha256(body.encode()).hexdigest(),
        body_text=body,
    )


@pytest.fixture
def performer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Performer]:
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path / "state"))
    policy = load_policy(POLICY, filename="p")
    scope = open_scope(
        policy=policy,
        task="t",
        oracle=Strict(),
        oracle_name="strict",
        name="test",
        choice=ev.StuckChoice.SKIP,
    )
    made = scope._performer
    made.on_ask = None
    yield made
    scope._run_lock.release()


def asked(gate: Gate, *messages: dict[str, Any]) -> str:
    passage = gate.propose(request(*messages), None)
    assert isinstance(passage, Passed)
    return passage.effect_id


def told(performer: Performer, kind: type) -> list[Any]:
    return [event for event, _item in events_of(performer.folder.ledger) if isinstance(event, kind)]


def in_loop(performer: Performer, folder: Path, check: Any) -> Gate:
    async def run() -> Gate:
        gate = Gate(performer, asyncio.get_running_loop(), folder)
        check(gate)
        await gate.finish()
        return gate

    return asyncio.run(run())


def test_a_call_passes_where_nothing_breaks(performer: Performer, tmp_path: Path) -> None:
    def check(gate: Gate) -> None:
        exchange = asked(gate)
        assert gate.audits(exchange)
        assert gate.judge(exchange, (held("c1", "look"),)) == (None,)
        gate.answered(exchange, NetResponse(outcome=Outcome.DONE, status=200, digest="34" * 32), b"{}")
        asked(gate, {"role": "tool", "tool_call_id": "c1", "content": "seen"})

    in_loop(performer, tmp_path, check)
    performer.sign()
    assert [one.result.text for one in told(performer, ev.ToolReturned)] == ["seen"]
    assert [one.fault for one in told(performer, ev.ExchangeRecorded)] == [
        "",
        "the command ended before its answer",
    ]


def test_an_audit_that_raises_refuses_every_call(
    performer: Performer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(gate: Gate) -> None:
        exchange = asked(gate)

        def broken(*_given: object) -> Awaitable[Any]:
            raise RuntimeError("odd")

        monkeypatch.setattr(auditing.Auditing, "_put", broken)
        verdicts = gate.judge(exchange, (held("c1", "look"), held("c2", "look", at=2)))
        assert isinstance(verdicts, tuple)
        assert [one.violated_rule if one else "" for one in verdicts] == ["lens.fault", "lens.fault"]

    in_loop(performer, tmp_path, check)


def test_a_request_that_cannot_be_read_does_not_leave(
    performer: Performer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(auditing, "read_request", broken)

    def check(gate: Gate) -> None:
        passage = gate.propose(request(), None)
        assert isinstance(passage, Refused)
        assert passage.exception.violated_rule == "lens.fault"

    in_loop(performer, tmp_path, check)
    performer.sign()
    assert not told(performer, ev.RequestMade)
    (unread,) = told(performer, ev.TrafficRefused)
    assert unread.reason == "a request to the model could not be read (ValueError)"


def test_a_ledger_that_is_lost_lets_no_call_pass(
    performer: Performer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(gate: Gate) -> None:
        exchange = asked(gate)

        def full(_node: object) -> None:
            raise LedgerLost("the disk is full")

        monkeypatch.setattr(performer, "_append", full)
        verdicts = gate.judge(exchange, (held("c1", "look"),))
        assert isinstance(verdicts, tuple)
        assert verdicts[0] is not None
        assert len(gate.told) == 1
        assert isinstance(gate.propose(request(), None), Refused)

    in_loop(performer, tmp_path, check)


def test_a_gate_that_is_over_passes_no_call(performer: Performer, tmp_path: Path) -> None:
    async def run() -> None:
        gate = Gate(performer, asyncio.get_running_loop(), tmp_path)
        exchange = asked(gate)
        await gate.finish()
        verdicts = gate.judge(exchange, (held("c1", "look"),))
        assert isinstance(verdicts, tuple)
        assert verdicts[0] is not None

    asyncio.run(run())


def test_a_placeholder_in_a_calls_arguments_is_seen(performer: Performer, tmp_path: Path) -> None:
    def check(gate: Gate) -> None:
        gate._tokens["interlock-placeholder-e9-x"] = "e9"
        exchange = asked(gate)
        (verdict,) = gate.judge(exchange, (held("c1", "look", at="interlock-placeholder-e9-x"),))  # type: ignore[misc]
        assert verdict is not None
        assert verdict.violated_rule == "placeholder"

    in_loop(performer, tmp_path, check)
    performer.sign()
    (one,) = told(performer, ev.ToolCalled)
    assert one.call == changed(one.call, placeholders=("e9",))
