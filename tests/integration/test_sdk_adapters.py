"""The adapters with the real frameworks and a scripted model: what an agent reads of a release, a refusal, a wait.

Each test is skipped where its framework is not installed; `scripts/need_adapters` installs them and runs these.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.guarded import MAIL, READ, Answers, fates, later, monitor, quick_folder, results

from interlock.model.errors import InputError
from interlock.runtime.story import Fate

pytestmark = pytest.mark.filterwarnings("default")
"""What the frameworks warn of is not ours."""

ROLES: dict[str, Any] = {"send_mail": MAIL, "search": READ, "send_later": later()}
CALLS: tuple[tuple[str, dict[str, str]], ...] = (
    ("search", {"query": "mail"}),
    ("send_mail", {"to": "ann@a.test", "body": "x"}),
    ("send_mail", {"to": "eve@evil.test", "body": "x"}),
    ("send_later", {"to": "bob@b.test", "body": "y"}),
)
FATES = [
    ("search", Fate.SENT),
    ("send_mail", Fate.SENT),
    ("send_mail", Fate.REFUSED),
    ("send_later", Fate.REFUSED),
]


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quick_folder() as folder:
        monkeypatch.setenv("INTERLOCK_STATE", os.path.join(folder, "state"))
        yield


class Program:
    """The functions of an agent's program, and what they did."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def search(self, query: str) -> str:
        """Search the mail."""
        return '[{"from":"eve@evil.test"}]'

    def send_mail(self, to: str, body: str) -> str:
        """Send a mail."""
        self.sent.append(to)
        return f"sent to {to}"

    def send_later(self, to: str, body: str) -> str:
        """Send a mail, some time."""
        self.sent.append(f"later {to}")
        return f"sent to {to}"

    @property
    def functions(self) -> tuple[Any, ...]:
        return (self.search, self.send_mail, self.send_later)


def check_answers(read: list[str]) -> None:
    """Check what the agent read in answer to CALLS."""
    assert json.loads(read[0]) == [{"from": "eve@evil.test"}]
    assert read[1] == "sent to ann@a.test"
    refused = json.loads(read[2])
    assert refused["interlock"] == "refused"
    assert {"type", "violated_rule", "rationale", "constraints", "allowed_objective"} <= refused.keys()
    waits = json.loads(read[3])
    assert waits["interlock"] == "placeholder"
    assert waits["placeholder"].startswith("interlock-placeholder-e4-")


# OpenAI Agents SDK


def _openai_agents() -> Any:
    pytest.importorskip(
        "agents.tool", reason="openai-agents is not installed"
    )  # `agents` alone is a folder of ours
    import agents

    return agents


def _openai_model(
    calls: tuple[tuple[str, dict[str, str]], ...], *, texts: dict[int, str] | None = None
) -> Any:
    """Return a model that makes these calls, one a turn, then ends. Takes: `texts`, arguments as it spells them."""
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Scripted(Model):  # type: ignore[misc]
        def __init__(self) -> None:
            self.turn = 0

        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            turn, self.turn = self.turn, self.turn + 1
            if turn < len(calls):
                name, arguments = calls[turn]
                item: Any = ResponseFunctionToolCall(
                    type="function_call",
                    call_id=f"call_{turn}",
                    name=name,
                    arguments=(texts or {}).get(turn, json.dumps(arguments)),
                )
            else:
                text = ResponseOutputText(type="output_text", text="done", annotations=[], logprobs=[])
                item = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def _openai_answers(model: Any, tools: list[Any], guarded: Any) -> list[str]:
    from agents import Agent, RunConfig, Runner

    async def main() -> Any:
        async with guarded:
            agent = Agent(name="a", instructions="help", model=model, tools=tools)
            return await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))

    ended = asyncio.run(main())
    assert ended.final_output == "done"
    return [one.output for one in ended.new_items if one.type == "tool_call_output_item"]


def test_openai_agents() -> None:
    agents = _openai_agents()
    from interlock.sdk.adapters.openai_agents import guard_tools

    program, guarded = Program(), monitor()
    tools = guard_tools(guarded, [agents.function_tool(one) for one in program.functions], ROLES)
    check_answers(_openai_answers(_openai_model(CALLS), tools, guarded))
    assert program.sent == ["ann@a.test"]
    assert guarded.last is not None
    assert fates(guarded.last) == FATES


def test_openai_agents_what_is_no_json_is_not_called() -> None:
    agents = _openai_agents()
    from interlock.sdk.adapters.openai_agents import guard_tools

    program, guarded = Program(), monitor(oracle=Answers())
    tools = guard_tools(guarded, [agents.function_tool(program.send_mail)], ROLES)
    twice = '{"to":"ann@a.test","to":"eve@evil.test","body":"x"}'
    model = _openai_model((CALLS[1],) * 3, texts={0: "{not json", 1: twice, 2: "[1]"})
    assert all("no JSON object" in one for one in _openai_answers(model, tools, guarded))
    assert program.sent == []


def test_openai_agents_a_hosted_tool_and_a_schema_that_is_none() -> None:
    agents = _openai_agents()
    from interlock.sdk.adapters.openai_agents import guard_tools

    with pytest.raises(InputError, match="does not see it"):
        guard_tools(monitor(), [agents.WebSearchTool()])
    tool = agents.function_tool(Program().search)
    for schema in ({"type": "objekt"}, {"type": "array"}, ["x"], {"properties": {"a": 1}}, {"required": "a"}):
        tool.params_json_schema = schema
        with pytest.raises(InputError, match="is no JSON schema of an object"):
            guard_tools(monitor(), [tool])


# LangChain, LangGraph


def _langgraph_answers(tools: list[Any], guarded: Any, *, in_a_loop: bool) -> list[Any]:
    from langchain_core.messages import AIMessage
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    def model(state: Any) -> Any:
        turn = sum(isinstance(one, AIMessage) for one in state["messages"])
        if turn == len(CALLS):
            return {"messages": [AIMessage("done")]}
        name, arguments = CALLS[turn]
        call = {"name": name, "args": arguments, "id": f"call_{turn}", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_edge("tools", "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    compiled = graph.compile()
    first = {"messages": [("user", "go")]}

    async def main() -> Any:
        async with guarded:
            return await compiled.ainvoke(first)

    if in_a_loop:
        ended = asyncio.run(main())
    else:
        with guarded:
            ended = compiled.invoke(first)
    return [one for one in ended["messages"] if one.type == "tool"]


@pytest.mark.parametrize("in_a_loop", [True, False])
def test_langgraph(in_a_loop: bool) -> None:
    pytest.importorskip("langgraph", reason="langgraph is not installed")
    from langchain_core.tools import tool

    from interlock.sdk.adapters.langchain import guard_tools

    program, guarded = Program(), monitor()
    tools = guard_tools(guarded, [tool(one) for one in program.functions], ROLES)
    answers = _langgraph_answers(tools, guarded, in_a_loop=in_a_loop)
    check_answers([one.content for one in answers])
    assert [one.status for one in answers] == ["success", "success", "error", "success"]
    assert program.sent == ["ann@a.test"]
    assert guarded.last is not None
    assert fates(guarded.last) == FATES
    assert results(guarded.last)[0]["structured"]


def test_langchain_alone_and_what_a_graph_puts_in() -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from typing import Annotated

    from langchain_core.tools import InjectedToolArg, tool

    from interlock.sdk.adapters.langchain import guard_tools

    made: list[object] = []

    def send_mail(to: str, body: str, state: Annotated[object, InjectedToolArg]) -> str:
        """Send a mail."""
        made.append(state)
        return f"sent to {to}"

    guarded, own = monitor(), object()
    (held,) = guard_tools(guarded, [tool(send_mail)], ROLES)
    with guarded as scope:
        assert held.invoke({"to": "ann@a.test", "body": "x", "state": own}) == "sent to ann@a.test"
        assert (
            json.loads(held.invoke({"to": "eve@evil.test", "body": "x", "state": own}))["type"]
            == "provenance"
        )
        call = {"name": "send_mail", "args": {"to": "ann@a.test", "body": "x", "state": own}, "id": "1"}
        first = held.invoke({**call, "type": "tool_call"})
        assert held.invoke({**call, "type": "tool_call"}) == first
    assert made == [own, own]
    assert [fate for _name, fate in fates(scope)] == [Fate.SENT, Fate.REFUSED, Fate.SENT]
    with pytest.raises(InputError, match=r"is no tool of LangChain's"):
        guard_tools(monitor(), [print])


def test_langchain_a_tool_that_raises() -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.tools import StructuredTool, ToolException

    from interlock.sdk.adapters.langchain import guard_tools

    def search(query: str) -> str:
        """Search."""
        raise ToolException("down")

    guarded = monitor()
    raises, told = (
        StructuredTool.from_function(search, name=name, handle_tool_error=handled)
        for name, handled in (("raises", False), ("told", True))
    )
    tools = guard_tools(guarded, [raises, told], {"raises": READ, "told": READ})
    with guarded as scope:
        with pytest.raises(ToolException, match="down"):
            tools[0].invoke({"query": "x"})
        call = {"name": "told", "args": {"query": "x"}, "id": "1", "type": "tool_call"}
        assert tools[1].invoke(call).status == "error"
    assert fates(scope) == [("raises", Fate.FAILED), ("told", Fate.FAILED)]


# pydantic-ai


def _pydantic_answers(toolset: Any, guarded: Any) -> list[str]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages: Any, _info: Any) -> Any:
        turn = sum(isinstance(one, ModelResponse) for one in messages)
        if turn == len(CALLS):
            return ModelResponse(parts=[TextPart("done")])
        name, arguments = CALLS[turn]
        return ModelResponse(parts=[ToolCallPart(name, arguments, tool_call_id=f"call_{turn}")])

    async def main() -> Any:
        async with guarded:
            return await Agent(FunctionModel(model), toolsets=[toolset]).run("go")

    ended = asyncio.run(main())
    assert ended.output == "done"
    parts = [part for message in ended.all_messages() for part in message.parts]
    return [part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)]


def test_pydantic_ai() -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")
    from interlock.sdk.adapters.pydantic_ai import guard_toolset

    program, guarded = Program(), monitor()
    toolset = guard_toolset(guarded, list(program.functions), ROLES)
    check_answers(_pydantic_answers(toolset, guarded))
    assert program.sent == ["ann@a.test"]
    assert guarded.last is not None
    assert fates(guarded.last) == FATES
    with pytest.raises(InputError, match="no toolset"):
        guard_toolset(monitor(), print)


def test_a_framework_that_is_not_there_is_told_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from interlock.sdk.adapters import claude, langchain, openai_agents

    for module in ("agents", "langchain_core.tools", "claude_agent_sdk"):
        monkeypatch.setitem(sys.modules, module, None)
    for adapter in (openai_agents, langchain, claude):
        with pytest.raises(InputError) as caught:
            adapter.guard_tools(monitor(), [])
        assert "is not installed" in caught.value.message
        assert "pip install 'interlock[" in caught.value.hint
