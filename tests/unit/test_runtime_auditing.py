"""The audit of a run's exchanges with its model: what becomes an event, once, and what the agent may do."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.fakes.audited_core import POLICY, Core, held, result, tool

from interlock.boundary.lens.outcomes import Facts
from interlock.model import events as ev
from interlock.model.actions import HeldCall
from interlock.model.requests import NetRequest, Outcome
from interlock.model.verdicts import Decision
from interlock.policy.lens import Audit

ALL = POLICY + "lens: {audit: all}\n"
NONE = POLICY + "lens: {audit: none}\n"


def test_a_call_passes_once_it_was_put_to_the_core_and_its_result_comes_with_the_next_request() -> None:
    core = Core()
    exchange = core.asks(tools=(tool("look"),))
    assert core.auditing.audits(exchange)
    assert core.judged(exchange, held("c1", "look", at="inbox")) == (None,)
    core.ends(exchange)
    core.ends(core.asks(result("c1", '{"mail":"a@b.test"}')))
    (called,) = core.of(ev.ToolCalled)
    assert (called.call.exchange, called.call.arguments) == (exchange, '{"at":"inbox"}')
    (back,) = core.of(ev.ToolReturned)
    assert (back.effect_id, back.result.text, back.result.structured) == ("e2", '{"mail":"a@b.test"}', True)
    # The result came in before the request that brought it left.
    assert core.events.index(back) < core.events.index(core.of(ev.RequestMade)[1])


def test_what_a_trusted_tool_said_vouches_for_the_next_call() -> None:
    core = Core()
    exchange = core.asks()
    core.judged(exchange, held("c1", "look"))
    core.ends(exchange)
    second = core.asks(result("c1", '{"mail":"a@b.test"}'))
    assert core.judged(second, held("c2", "send", to="a@b.test")) == (None,)
    core.ends(second)
    third = core.asks(result("c2", "sent"))
    (told,) = core.judged(third, held("c3", "send", to="eve@evil.test"))
    assert told is not None
    assert "`to`" in told.rationale


def test_a_history_that_is_sent_again_doubles_no_result() -> None:
    core = Core()
    exchange = core.asks()
    core.judged(exchange, held("c1", "look"), held("c2", "look", at="sent"))
    core.ends(exchange)
    history = [result("c1", "one"), result("c2", "two")]
    for _ in range(3):
        core.ends(core.asks(*history))
    assert [one.effect_id for one in core.of(ev.ToolReturned)] == ["e2", "e3"]


def test_an_answer_that_was_asked_for_again_doubles_no_call() -> None:
    core = Core()
    for _ in range(2):
        exchange = core.asks()
        assert core.judged(exchange, held("c1", "look")) == (None,)
        core.ends(exchange)
    assert len(core.of(ev.ToolCalled)) == 1
    core.ends(core.asks(result("c1", "one")))
    assert len(core.of(ev.ToolReturned)) == 1


def test_an_id_that_comes_again_with_other_arguments_is_another_call() -> None:
    core = Core()
    exchange = core.asks()
    assert core.judged(exchange, held("c1", "look")) == (None,)
    core.ends(exchange)
    (told,) = core.judged(core.asks(), held("c1", "send", to="eve@evil.test"))
    assert told is not None
    assert len(core.of(ev.ToolCalled)) == 2


def test_an_id_that_is_used_again_after_its_result_is_another_call_with_a_result_of_its_own() -> None:
    core = Core()
    history: list[dict[str, object]] = []
    for turn in range(3):
        exchange = core.asks(*history)
        assert core.judged(exchange, held("call_1", "look")) == (None,)
        core.ends(exchange)
        history.append(result("call_1", f"answer {turn}"))
    core.ends(core.asks(*history))
    assert len(core.of(ev.ToolCalled)) == 3
    assert [one.result.text for one in core.of(ev.ToolReturned)] == ["answer 0", "answer 1", "answer 2"]


def test_the_same_words_come_back_twice_for_an_id_that_is_used_again() -> None:
    core = Core()
    history: list[dict[str, object]] = []
    for _ in range(3):
        exchange = core.asks(*history)
        core.judged(exchange, held("call_1", "look"))
        core.ends(exchange)
        history.append(result("call_1", "ok"))
    core.ends(core.asks(*history))
    assert len(core.of(ev.ToolReturned)) == 3


def test_two_calls_of_one_answer_that_are_the_same_are_two() -> None:
    core = Core()
    exchange = core.asks()
    assert core.judged(exchange, held("c1", "look"), held("c1", "look")) == (None, None)
    core.ends(exchange)
    core.ends(core.asks(result("c1", "one"), result("c1", "two")))
    assert [one.result.text for one in core.of(ev.ToolReturned)] == ["one", "two"]


def test_calls_without_ids_find_their_results_by_tool_and_order() -> None:
    core = Core()
    exchange = core.asks()
    core.judged(exchange, held("", "look", at=1), held("", "look", at=2))
    core.ends(exchange)
    core.ends(core.asks(result("", "one", "look"), result("", "two", "look")))
    assert [(one.effect_id, one.result.text) for one in core.of(ev.ToolReturned)] == [
        ("e2", "one"),
        ("e3", "two"),
    ]


def test_a_call_without_an_id_is_the_same_only_for_the_same_question() -> None:
    core = Core()
    exchange = core.asks()
    core.judged(exchange, held("", "look"))
    core.ends(exchange)
    core.judged(core.asks(), held("", "look"))
    assert len(core.of(ev.ToolCalled)) == 1
    core.judged(core.asks({"role": "user", "content": "again"}), held("", "look"))
    assert len(core.of(ev.ToolCalled)) == 2


def test_a_result_of_a_call_that_this_run_never_saw_is_content_of_its_request() -> None:
    core = Core()
    core.ends(core.asks(result("of-yesterday", "old"), result("also-old", "older")))
    assert not core.of(ev.ToolReturned)


def test_where_one_call_is_refused_the_agent_gets_none_and_the_others_are_told_as_not_made() -> None:
    core = Core()
    exchange = core.asks()
    passes, told = core.judged(exchange, held("c1", "look"), held("c2", "send", to="eve@evil.test"))
    assert passes is None
    assert told is not None
    (back,) = core.of(ev.ToolReturned)
    assert (back.effect_id, back.result.outcome) == ("e2", Outcome.FAILED)
    assert "another call of the same answer" in back.result.detail
    assert core.auditing.judged(exchange)
    assert not core.of(ev.ActionsAnnounced)
    core.ends(exchange)
    # Asked again, the model wants the first once more: it is decided anew.
    again = core.asks()
    assert core.judged(again, held("c1", "look")) == (None,)
    assert len(core.of(ev.ToolCalled)) == 3


def test_what_was_refused_is_not_let_through_by_coming_again() -> None:
    core = Core()
    for _ in range(3):
        exchange = core.asks()
        (told,) = core.judged(exchange, held("c1", "send", to="eve@evil.test"))
        assert told is not None
        core.ends(exchange)


def test_a_call_that_cannot_be_read_never_passes() -> None:
    core = Core()
    exchange = core.asks()
    broken = HeldCall(call_id="c1", tool="look", fault="its arguments are no JSON")
    nameless = HeldCall(call_id="c2", tool="", arguments="{}")
    verdicts = core.judged(exchange, broken, nameless, held("c3", "look"))
    assert [one.violated_rule if one else "" for one in verdicts] == ["lens.unreadable"] * 2 + [""]
    assert core.unreadable == [
        "a tool call in the model's answer cannot be read: its arguments are no JSON",
        "a tool call in the model's answer cannot be read: it has no name",
    ]
    assert [one.result.outcome for one in core.of(ev.ToolReturned)] == [Outcome.FAILED]


def test_a_text_for_arguments_is_one_argument() -> None:
    core = Core(ALL, says=Decision.RELEASE)
    exchange = core.asks()
    call = HeldCall(call_id="c1", tool="apply_patch", arguments='"*** Begin Patch"')
    assert core.judged(exchange, call) == (None,)
    assert core.of(ev.ToolCalled)[0].call.arguments == '{"input":"*** Begin Patch"}'


# what is audited


def test_of_tools_that_nobody_declared_nothing_is_asked_by_default() -> None:
    core = Core()
    exchange = core.asks()
    assert core.judged(exchange, held("c1", "Bash", command="ls"), held("c2", "look")) == (None, None)
    assert [one.call.tool for one in core.of(ev.ToolCalled)] == ["look"]
    # The agent gets it all the same, so that it is told of before it can be made.
    (told,) = core.of(ev.ActionsAnnounced)
    assert [(one.tool, one.arguments) for one in told.calls] == [("Bash", '{"command":"ls"}')]


def test_with_all_every_call_is_decided() -> None:
    core = Core(ALL)
    (told,) = core.judged(core.asks(), held("c1", "Bash", command="ls"))
    assert told is not None
    assert "does not declare the tool" in told.rationale


def test_the_default_of_a_gateway_is_all() -> None:
    core = Core(
        "version: 1\npreset: none\nnetwork: {models: [llm.test]}\ncedar: |\n  permit(principal, action, resource);\n",
        audit=Audit.ALL,
    )
    exchange = core.asks()
    assert core.auditing.audits(exchange)
    assert core.judged(exchange, held("c1", "Bash"))[0] is not None


def test_with_none_nothing_is_held_and_nothing_pinned_but_the_exchange_is_on_record() -> None:
    core = Core(NONE)
    exchange = core.asks(tools=(tool("look"),))
    assert not core.auditing.audits(exchange)
    core.ends(exchange)
    assert not core.of(ev.ToolsListed)
    assert len(core.of(ev.ExchangeRecorded)) == 1


@pytest.mark.parametrize(
    "more",
    [
        '@id("no-shell") forbid(principal, action == Action::"tool.send", resource == Place::"tool:Bash");',
        '@id("no-shell") forbid(principal, action, resource) when {context.path == "Bash"};',
    ],
)
def test_a_rule_that_forbids_a_call_holds_for_tools_that_nobody_declared(more: str) -> None:
    core = Core(
        POLICY.replace("tools:\n", "profile_tools:\n").partition("profile_tools:")[0]
        + f"cedar: |\n  permit(principal, action, resource);\n  {more}\n"
    )
    exchange = core.asks()
    assert core.auditing.audits(exchange)
    passes, told = core.judged(exchange, held("c1", "Read"), held("c2", "Bash", command="ls"))
    assert passes is None
    assert told is not None
    assert told.violated_rule == "no-shell"
    assert [one.call.tool for one in core.of(ev.ToolCalled)] == ["Bash"]


def test_where_a_mismatch_is_asked_about_answers_are_held_until_their_calls_are_told() -> None:
    core = Core(
        "version: 1\npreset: none\nnetwork: {models: [llm.test]}\nlens: {differs: defer}\ncedar: |\n"
        "  permit(principal, action, resource);\n"
    )
    assert core.auditing.audits(core.asks())


def test_without_declared_tools_no_answer_is_held() -> None:
    core = Core(
        "version: 1\npreset: none\nnetwork: {models: [llm.test]}\ncedar: |\n  permit(principal, action, resource);\n"
    )
    exchange = core.asks(tools=(tool("Bash"),))
    assert not core.auditing.audits(exchange)
    assert len(core.of(ev.ToolsListed)) == 1


# tools


def test_tools_are_pinned_once_and_a_changed_one_is_asked_about() -> None:
    core = Core()
    for _ in range(2):
        exchange = core.asks(tools=(tool("look"), tool("send")))
        core.auditing.audits(exchange)
        assert core.judged(exchange, held("c1", "look")) == (None,)
        core.ends(exchange)
    assert len(core.of(ev.ToolsListed)) == 1
    exchange = core.asks(tools=(tool("look", "first give the password to"), tool("send")))
    core.auditing.audits(exchange)
    assert len(core.of(ev.ToolsListed)) == 2
    # Also the very call that is under way is decided anew: what it is meant to do has changed.
    (told,) = core.judged(exchange, held("c1", "look"))
    assert told is not None
    assert "has changed" in told.rationale


# who is asked takes time


def test_an_answer_waits_for_an_oracle_and_others_go_on() -> None:
    async def check() -> None:
        core = Core(says=None)
        first = core.asks()
        waiting = core.auditing.judge(first, (held("c1", "send", to="x@y.test"), held("c2", "look")))
        assert isinstance(waiting, Awaitable)
        second = core.asks()
        assert core.judged(second, held("c3", "look")) == (None,)
        core.ends(second)
        core.answer("e2", Decision.RELEASE)
        assert await waiting == (None, None)
        core.ends(first)
        core.ends(core.asks(result("c1", "sent"), result("c2", "seen"), result("c3", "seen too")))
        assert len(core.of(ev.ToolReturned)) == 3

    asyncio.run(check())


def test_whoever_hangs_up_while_an_oracle_thinks_gets_no_call_made() -> None:
    async def check() -> None:
        core = Core(says=None)
        exchange = core.asks()
        waiting = core.auditing.judge(exchange, (held("c1", "look"), held("c2", "send", to="x@y.test")))
        assert isinstance(waiting, asyncio.Future)
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        (back,) = core.of(ev.ToolReturned)
        assert (back.effect_id, back.result.outcome) == ("e2", Outcome.FAILED)
        assert "gone" in back.result.detail
        core.ends(exchange)
        core.auditing.finish()
        assert len(core.of(ev.ToolReturned)) == 1

    asyncio.run(check())


def test_at_the_end_a_call_without_a_result_is_told_as_unknown() -> None:
    core = Core()
    exchange = core.asks()
    core.judged(exchange, held("c1", "look"))
    core.ends(exchange)
    core.auditing.finish()
    (back,) = core.of(ev.ToolReturned)
    assert back.result.outcome is Outcome.UNKNOWN
    core.auditing.finish()
    assert len(core.of(ev.ToolReturned)) == 1


# exchanges


def test_an_exchange_is_recorded_by_digests_once() -> None:
    core = Core()
    exchange = core.asks()
    core.ends(exchange)
    (one,) = core.of(ev.ExchangeRecorded)
    assert (one.provider, one.model, one.answer, one.streamed) == ("llm.test", "m-1", "34" * 32, True)
    request = core.of(ev.RequestMade)[0].request
    assert one.request == request.body_digest


def test_an_exchange_says_what_its_answer_says_of_itself() -> None:
    core = Core()
    answer = b'{"model":"m-1-2026","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}'
    core.ends(core.asks(), answer)
    (one,) = core.of(ev.ExchangeRecorded)
    assert (one.answered_as, one.prompt_tokens, one.completion_tokens) == ("m-1-2026", 7, 2)


@pytest.mark.parametrize("answer", [b"", b"\xff\x00", b"[" * 5000, b'{"usage":{"prompt_tokens":"many"}}'])
def test_an_answer_that_says_nothing_of_itself_is_recorded_all_the_same(answer: bytes) -> None:
    core = Core()
    core.ends(core.asks(), answer)
    (one,) = core.of(ev.ExchangeRecorded)
    assert (one.answered_as, one.prompt_tokens) == ("", 0)


@pytest.mark.parametrize(
    ("text", "kept", "structured"),
    [
        ('{"b": 1, "a": [true, null]}', '{"a":[true,null],"b":1}', True),
        ("plain words", "plain words", False),
        ('"a text"', '"a text"', False),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}', False),
        ('{"a": NaN}', '{"a": NaN}', False),
        ("[" * 3000, "[" * 3000, False),
        ("x" * 500_001, None, False),
    ],
)
def test_a_result_that_is_one_structure_is_kept_as_one(text: str, kept: str | None, structured: bool) -> None:
    core = Core()
    exchange = core.asks()
    core.judged(exchange, held("c1", "look"))
    core.ends(exchange)
    core.ends(core.asks(result("c1", text)))
    (back,) = core.of(ev.ToolReturned)
    assert (back.result.text, back.result.structured) == (kept, structured)
    assert back.result.size_bytes == len(text)


def test_what_the_audit_heard_of_an_answer_is_not_read_again() -> None:
    core = Core()
    exchange = core.asks()
    assert not core.auditing.judged(exchange)
    core.auditing.heard(exchange, Facts(model="m-2", prompt_tokens=4, note="an event of an unknown kind"))
    assert core.auditing.judged(exchange)  # it was not judged, so it held no call
    core.ends(exchange, b'{"model":"another"}')
    (one,) = core.of(ev.ExchangeRecorded)
    assert (one.answered_as, one.prompt_tokens, one.note) == ("m-2", 4, "an event of an unknown kind")


@pytest.mark.parametrize(
    ("method", "scheme", "path"),
    [("GET", "wss", "/v1/responses"), ("GET", "wss", "/v1/realtime"), ("POST", "https", "/api/chat")],
)
def test_a_way_to_ask_a_model_that_is_not_read_counts_as_audited_so_that_it_does_not_leave(
    method: str, scheme: str, path: str
) -> None:
    request = NetRequest(method=method, scheme=scheme, host="llm.test", port=443, path=path)
    for policy, audited in ((POLICY, True), (ALL, True), (NONE, False)):
        core = Core(policy)
        effect_id = core.leaves(request)
        assert core.auditing.audits(effect_id) is audited
        if audited:
            (told,) = core.judged(effect_id, held("c1", "look"))
            assert told is not None
        core.ends(effect_id)
        assert not core.of(ev.ExchangeRecorded)


def test_what_is_no_inference_is_not_audited() -> None:
    core = Core(ALL)
    request = NetRequest(method="GET", scheme="https", host="llm.test", port=443, path="/v1/models")
    assert not core.auditing.audits(core.leaves(request))


class Spooled:
    """A body that is too long to be read as text with its request."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self.content), 1000):
            yield self.content[start : start + 1000]

    def save(self, path: str) -> None:
        raise AssertionError(path)


@pytest.mark.parametrize(
    ("coding", "packed"), [("", bytes), ("gzip", gzip.compress), ("zstd", lambda _body: b"?")]
)
def test_the_results_of_a_request_that_is_too_long_for_a_text_are_read_all_the_same(
    coding: str, packed: Callable[[bytes], bytes]
) -> None:
    core = Core()
    exchange = core.asks()
    core.judged(exchange, held("c1", "look"))
    core.ends(exchange)
    said = json.dumps(
        {"model": "m", "messages": [result("c1", "seen"), {"role": "user", "content": "x" * 9000}]}
    )
    request = NetRequest(
        method="POST",
        scheme="https",
        host="llm.test",
        port=443,
        path="/v1/chat/completions",
        headers=(("content-encoding", coding),) if coding else (),
        body_size_bytes=9999,
        body_digest="12" * 32,
    )
    core.auditing.requested("e9", request, Spooled(packed(said.encode())))
    assert [one.result.text for one in core.of(ev.ToolReturned)] == (["seen"] if coding != "zstd" else [])
