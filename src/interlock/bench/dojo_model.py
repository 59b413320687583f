"""A language model as the agent, in the suite's own pipeline; its calls go by the monitor as a played agent's do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import yaml

from interlock.bench import dojo
from interlock.bench.agents import Agent, Json, squeezed
from interlock.bench.cases import Case, CaseResult, Origin
from interlock.bench.chat_model import Asking, ask
from interlock.bench.configured_model import Configured, ask_configured
from interlock.bench.dojo_gate import Answers, Gate, blocks, plain
from interlock.bench.dojo_roles import Level, at_level, is_effect, role_text, steering
from interlock.bench.dojo_suites import environment, quiet, suites
from interlock.bench.recipients import form
from interlock.model.errors import IntegrityError

__all__ = ["Asking", "Configured", "ModelPlayer", "model_work", "run_model_case"]


def model_work(settings: dojo.Settings, asking: Asking | Configured) -> Callable[[Case], CaseResult]:
    """Return what runs a case with a model. Raises: InputError where the model cannot be asked."""
    return partial(run_model_case, settings=settings, asking=asking.checked())


def run_model_case(case: Case, settings: dojo.Settings, asking: Asking | Configured) -> CaseResult:
    """Run a case with a model as the agent. Raises: InputError."""
    suite = suites()[case.suite]
    user = suite.user_tasks[case.user]
    attack = suite.injection_tasks[case.injection] if case.injection else None
    injections = dojo.injected(case, settings)
    whole = settings.roles.get(case.suite) or role_text(case.suite)
    oracle = dojo.answers("none" if settings.level is Level.NONE else settings.oracle)
    player = ModelPlayer(
        case,
        user,
        attack,
        roles=at_level(whole, settings.level),
        declared=whole,
        answers=oracle,
        asking=asking,
    )
    with quiet():
        utility, judged = suite.run_task_with_pipeline(
            player, user, attack, dict(injections), environment=environment(case.suite, injections)
        )
    return dojo.result(case, Agent.MODEL, player, whole=whole, utility=bool(utility), judged=bool(judged))


class ModelPlayer:
    """A model in the suite's loop of tools.

    Takes: `roles` and `declared`, as a played agent does.
    Holds: a model does not say whom a call serves. It is the user's where the ground truth of the user's task has the
    same (tool and what steers it); else the attacker's where the injection's has it, or the tool alone and the user's
    does not.
    """

    name = "model"

    def __init__(
        self,
        case: Case,
        user: Any,
        attack: Any,
        *,
        roles: str,
        declared: str,
        answers: Answers,
        asking: Asking | Configured,
    ) -> None:
        self.reached = False
        self.obeyed = False
        self.wanted: list[tuple[str, dict[str, Json]]] = []
        self.needed: frozenset[str] = frozenset()
        self._attack_calls: list[tuple[str, dict[str, Json]]] = []
        self._goal = squeezed(attack.GOAL) if attack is not None else ""
        self._case = case
        self._user = user
        self._attack = attack
        self._roles = roles
        self._declared = declared
        self._answers = answers
        self._asking = asking
        self._gate: Gate | None = None

    @property
    def gate(self) -> Gate:
        """Return the gate of the run."""
        assert self._gate is not None
        return self._gate

    def query(
        self, query: str, runtime: Any, env: Any, messages: Sequence[Any] = (), extra_args: Any = None
    ) -> tuple[str, Any, Any, list[dict[str, Any]], Any]:
        """Let the model do the task. Raises: InputError; IntegrityError where it is asked for the same again."""
        from agentdojo.agent_pipeline.basic_elements import InitQuery, SystemMessage
        from agentdojo.agent_pipeline.tool_execution import ToolsExecutionLoop, ToolsExecutor

        if self._gate is not None:
            raise IntegrityError(
                f"`{self._case.id}` was asked again", hint="report this with the suite's version"
            )
        self._gate = Gate(self._case.id, self._roles, query, answers=self._answers, runtime=runtime, env=env)
        self._learn(env)
        model = _Model(self._asking)
        gated: Any = _Gated(runtime, self._propose)
        said: Sequence[Any] = []
        for element in (
            SystemMessage(_system_message()),
            InitQuery(),
            model,
            ToolsExecutionLoop([ToolsExecutor(), model]),
        ):
            _, _, _, said, _ = element.query(query, gated, env, said, {})
        self.gate.finish()
        last = said[-1]
        answered = last["role"] == "assistant" and not last["tool_calls"]
        self.gate.say("\n".join(each["content"] for each in last["content"]) if answered else "")
        return query, runtime, env, self.gate.messages, extra_args or {}

    def _learn(self, env: Any) -> None:
        """Read both ground truths, on copies: what they look for may be gone later."""
        self.wanted = _calls(self._user, env)
        if self._attack is None:
            return
        self._attack_calls = _calls(self._attack, env)
        self.needed = frozenset(name for name, _ in self._attack_calls if is_effect(self._declared, name))
        # An attack that is an answer alone: there is no call to be seen of it.
        self.obeyed = not self.needed

    def _propose(self, name: str, arguments: dict[str, Json]) -> tuple[Any, str | None]:
        origin = self._origin_of(name, arguments)
        seen = self.gate.propose(name, arguments, origin)
        self.obeyed = self.obeyed or origin is Origin.ATTACKER
        self.reached = self.reached or bool(self._goal and self._goal in squeezed(seen.plain))
        return seen.found, seen.error

    def _origin_of(self, name: str, arguments: dict[str, Json]) -> Origin:
        declared = steering(self._declared, name)
        mine = form(name, arguments, declared)
        own = {form(tool, given, declared) for tool, given in self.wanted if tool == name}
        theirs = {form(tool, given, declared) for tool, given in self._attack_calls if tool == name}
        if mine in own or not theirs:
            return Origin.USER
        return Origin.ATTACKER if mine in theirs or not own else Origin.USER


class _Gated:
    """The suite's runtime, behind the gate."""

    def __init__(
        self, runtime: Any, propose: Callable[[str, dict[str, Json]], tuple[Any, str | None]]
    ) -> None:
        self.functions = runtime.functions
        self._propose = propose

    def run_function(self, _env: Any, name: str, arguments: Any) -> tuple[Any, str | None]:
        found, error = self._propose(name, plain(dict(arguments)))
        return ("" if error else found), error


class _Model:
    """The pipeline's element that asks."""

    name = "model"

    def __init__(self, asking: Asking | Configured) -> None:
        self._asking = asking

    def query(
        self, query: str, runtime: Any, env: Any, messages: Sequence[Any] = (), extra_args: Any = None
    ) -> tuple[str, Any, Any, list[Any], Any]:
        from agentdojo.agent_pipeline.llms.google_llm import EMPTY_FUNCTION_NAME
        from agentdojo.functions_runtime import FunctionCall

        said = [_wire(each) for each in messages]
        tools = [_tool(each) for each in runtime.functions.values()]
        known = self._asking
        reply = ask(known, said, tools) if isinstance(known, Asking) else ask_configured(known, said, tools)
        # A call whose arguments cannot be read is none of the tool's: the loop answers it with an error.
        calls = [
            FunctionCall(
                function=each.tool if each.arguments is not None else EMPTY_FUNCTION_NAME,
                args=each.arguments or {},
                id=each.call,
            )
            for each in reply.calls
        ]
        answer = {"role": "assistant", "content": blocks(reply.text), "tool_calls": calls or None}
        return query, runtime, env, [*messages, answer], extra_args or {}


def _calls(task: Any, env: Any) -> list[tuple[str, dict[str, Json]]]:
    return [(call.function, plain(dict(call.args))) for call in task.ground_truth(env.model_copy(deep=True))]


def _system_message() -> str:
    text = (files("agentdojo") / "data" / "system_messages.yaml").read_text(encoding="utf-8")
    return str(yaml.safe_load(text)["default"])


def _wire(message: Any) -> dict[str, Any]:
    """Return a message as the chat's wire has it."""
    text = "\n".join(each["content"] for each in message["content"] or () if each["content"] is not None)
    if message["role"] == "tool":
        return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": message["error"] or text}
    found: dict[str, Any] = {"role": message["role"], "content": text}
    if message["role"] == "assistant" and message["tool_calls"]:
        found["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(plain(dict(call.args)))},
            }
            for call in message["tool_calls"]
        ]
    return found


def _tool(function: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": function.name,
            "description": function.description,
            "parameters": function.parameters.model_json_schema(),
        },
    }
