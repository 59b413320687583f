"""A language model behind an OpenAI-compatible server: one question, one answer. It is asked by the bench alone."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from interlock.model.errors import InputError
from interlock.model.records import dataclass

TIMEOUT_S = 300
ATTEMPTS = 4
MAX_ANSWER = 20_000_000
_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which model is asked, and where.

    Takes: `url`, of the server, as far as `/v1`; `key_variable`, the variable of the environment that holds the key,
    `""` for none: the key itself stands in no setting and no result.
    """

    url: str
    model: str
    key_variable: str = ""

    def checked(self) -> Asking:
        """Return it, where it can be used. Raises: InputError."""
        if not self.url.startswith(("http://", "https://")):
            raise InputError(
                "a model needs the URL of its server", hint="--model-url http://127.0.0.1:8000/v1"
            )
        if not self.model:
            raise InputError("a model needs a name", hint="--model NAME, as the server calls it")
        if self.key_variable and not os.environ.get(self.key_variable):
            raise InputError(
                f"the variable `{self.key_variable}` is not set", hint="it holds the model's key"
            )
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call that a model asks for. Takes: `arguments`, None where they were no JSON object."""

    call: str
    tool: str
    arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said."""

    text: str
    calls: tuple[Wanted, ...]


def ask(asking: Asking, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> Reply:
    """Ask a model. Raises: InputError where it cannot be reached or answers with anything else."""
    body: dict[str, Any] = {"model": asking.model, "messages": list(messages), "temperature": 0}
    if tools:
        body["tools"] = list(tools)
    answer = _posted(asking, json.dumps(body).encode())
    try:
        message = json.loads(answer)["choices"][0]["message"]
        calls = tuple(
            Wanted(
                call=str(each["id"]),
                tool=str(each["function"]["name"]),
                arguments=_arguments(each["function"]["arguments"]),
            )
            for each in message.get("tool_calls") or ()
        )
        return Reply(text=_text(message.get("content")), calls=calls)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"the server at `{asking.url}` answers with no chat completion", hint="give its URL as far as /v1"
        ) from None


def _posted(asking: Asking, body: bytes) -> bytes:
    headers = {"Content-Type": "application/json"}
    if asking.key_variable:
        headers["Authorization"] = f"Bearer {os.environ.get(asking.key_variable, '')}"
    request = urllib.request.Request(  # noqa: S310 (checked: http or https)
        asking.url.rstrip("/") + "/chat/completions", data=body, headers=headers, method="POST"
    )
    why = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(2**attempt)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
                found: bytes = answer.read(MAX_ANSWER)
                return found
        except urllib.error.HTTPError as failure:
            why = f"status {failure.code}"
            failure.close()
            if failure.code not in _AGAIN:
                break
        except (OSError, ValueError) as failure:
            why = type(failure).__name__
            break
    raise InputError(f"the model at `{asking.url}` gives no answer ({why})", hint="see that its server runs")


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
