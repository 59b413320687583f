"""A model of the user's own file (models.yaml) as the agent: one call of a tool, or the answer, each time it is asked.

Whatever the provider, the answer is one JSON object; so a model needs no wire for tools.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from interlock.bench.chat_model import Reply, Wanted
from interlock.model.errors import InputError
from interlock.model.records import dataclass

if TYPE_CHECKING:
    from interlock.oracle.models import Message, ModelClient

ANSWER = "final_answer"
DEADLINE_S = 300.0
MAX_TOKENS = 4096
_HOW = (
    "You may call these tools, one at a time. Answer each time with a JSON object: `tool`, the name of one of them, "
    f"and `arguments`, its arguments as the text of a JSON object. When you are done, take `{ANSWER}` as the tool and "
    "write what you tell the user as `arguments`.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A model by its name in models.yaml."""

    model: str

    def checked(self) -> Configured:
        """Return it, where the file has such a model. Raises: InputError; PolicyError for a mistake in the file."""
        if not self.model:
            raise InputError(
                "a model needs a name", hint="--model NAME of models.yaml, or a server's with --model-url URL"
            )
        _client(self.model)
        return self


@cache
def _client(name: str) -> ModelClient:
    from interlock.oracle.models.configuring import load_models

    return load_models().open(name)


def ask_configured(
    asking: Configured, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]
) -> Reply:
    """Ask a model of models.yaml, as `chat_model.ask` asks a server. Raises: ModelError."""
    return ask_client(_client(asking.model), messages, tools)


def ask_client(
    client: ModelClient, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]
) -> Reply:
    """Ask a model for its next call, or its answer.

    Raises: ModelError. Holds: an answer that is none ends the run, as one that says nothing does.
    """
    from interlock.oracle.models import ModelError, Request

    known = [each["function"]["name"] for each in tools]
    schema = {
        "type": "object",
        "properties": {"tool": {"type": "string", "enum": [*known, ANSWER]}, "arguments": {"type": "string"}},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }
    request = Request(
        messages=_told(messages, tools), schema=schema, schema_name="next_step", max_tokens=MAX_TOKENS
    )
    try:
        said = json.loads(client.complete(request, deadline_s=DEADLINE_S).text)
    except ModelError as error:
        if error.kind != "garbage":
            raise
        return Reply(text="", calls=())
    if said["tool"] == ANSWER:
        return Reply(text=said["arguments"], calls=())
    call = Wanted(call=f"m{len(messages)}", tool=said["tool"], arguments=_arguments(said["arguments"]))
    return Reply(text="", calls=(call,))


def _told(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> tuple[Message, ...]:
    from interlock.oracle.models import Message

    listed = "\n".join(json.dumps(each["function"], sort_keys=True, ensure_ascii=False) for each in tools)
    found: list[Message] = []
    for each in messages:
        text = each["content"] or ""
        if each["role"] == "system":
            found.append(Message(role="system", text=f"{text}\n\n{_HOW}{listed}"))
        elif each["role"] == "tool":
            found.append(Message(role="user", text=f"What the call gave back:\n{text}"))
        elif each["role"] == "assistant":
            made = [
                {"arguments": one["function"]["arguments"], "tool": one["function"]["name"]}
                for one in each.get("tool_calls", ())
            ]
            said = made or [{"arguments": text, "tool": ANSWER}]
            found += [Message(role="assistant", text=json.dumps(one, ensure_ascii=False)) for one in said]
        else:
            found.append(Message(role="user", text=text))
    return tuple(found)


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
