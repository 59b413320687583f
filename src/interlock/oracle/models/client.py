"""The port to a language model: what is asked, what comes back, and how it can fail."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Literal, Protocol

from interlock.model.errors import InterlockError
from interlock.model.records import dataclass

Role = Literal["system", "user", "assistant"]
Kind = Literal[
    "timeout", "status", "garbage", "too-large", "wrong-model", "no-key", "context", "budget", "unavailable"
]
Schema = Mapping[str, object]

DEFAULT_SEED = 7
DEFAULT_MAX_TOKENS = 1024
_BYTES_A_TOKEN = 3
"""A count on the safe side for text in English; only where the provider itself tells none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool that the answer may call. Takes: `parameters`, the JSON schema of its arguments, an object's."""

    name: str
    parameters: Schema
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a model is asked; the temperature is 0 wherever the provider takes one.

    Takes: `schema`, of the JSON value that the answer must be (the subset of `schemas`), None for free text;
    `schema_name`, letters, digits and `_`; `tools`, of which the answer must call exactly one: it is then the JSON
    object `{"arguments": …, "tool": NAME}`, and `schema` is None.
    """

    messages: tuple[Message, ...]
    schema: Schema | None = None
    schema_name: str = "answer"
    seed: int | None = DEFAULT_SEED
    max_tokens: int = DEFAULT_MAX_TOKENS
    tools: tuple[ToolSpec, ...] = ()

    def answer_schema(self) -> Schema | None:
        """Return the schema that the answer is held to, that of a tool's call included."""
        return calls_schema(self.tools) if self.tools else self.schema

    def digest(self) -> str:
        """Return SHA-256 in hex of the request in canonical JSON: H(x) of the ledger."""
        document = {
            "messages": [{"role": one.role, "text": one.text} for one in self.messages],
            "schema": self.schema,
            "schema_name": self.schema_name,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "tools": [
                {"name": one.name, "description": one.description, "parameters": one.parameters}
                for one in self.tools
            ],
        }
        return sha256(canonical(document)).hexdigest()

    def estimated_tokens(self) -> int:
        """Return about how many tokens the prompt has."""
        return estimated_tokens(*(one.text for one in self.messages)) + 4 * len(self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that one call took."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a model answered.

    Takes: `text`, canonical JSON that fits the schema where one was asked for; `model`, the name that the provider
    answered with; `finish`, why it ended (`stop`, `length` …); `attempts`, how often the request was sent.
    """

    text: str
    usage: Usage
    model: str
    finish: str
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who answers. Takes: `weights_hash`, `sha256:…` of a local file; `sampling`, how answers are drawn."""

    provider: str
    model: str
    weights_hash: str = ""
    engine: str = ""
    sampling: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, in millionths of a USD a million tokens: whole numbers, so that sums are exact."""

    micros_in: int = 0
    micros_out: int = 0

    def of(self, usage: Usage) -> int:
        """Return the cost of a call in millionths of a USD, rounded up."""
        total = self.micros_in * usage.prompt_tokens + self.micros_out * usage.completion_tokens
        return -(-total // 1_000_000)


class ModelError(InterlockError):
    """A model gave no usable answer.

    Takes: `kind`, what went wrong; `attempts`, how often the request was sent; `usage`, tokens that were spent all
    the same. Holds: neither the message nor the hint holds a key.
    """

    code = "model"
    exit_status = 2

    def __init__(
        self, kind: Kind, message: str, *, hint: str = "", attempts: int = 0, usage: Usage | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind: Kind = kind
        self.attempts = attempts
        self.usage = usage or Usage()


class ModelClient(Protocol):
    """Whoever completes a request."""

    @property
    def identity(self) -> Identity:
        """Return who answers; a local file of weights is hashed when this is first asked for."""

    @property
    def context_tokens(self) -> int:
        """Return how many tokens prompt and answer have together at most."""

    @property
    def price(self) -> Price:
        """Return what a call costs."""

    def complete(self, request: Request, *, deadline_s: float) -> Completion:
        """Answer within so many seconds. Raises: ModelError."""


def canonical(value: object) -> bytes:
    """Return a JSON value's canonical bytes: sorted keys, no white space, UTF-8; half characters are escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=dict)
    return text.encode("utf-8", "backslashreplace")


def estimated_tokens(*texts: str) -> int:
    """Return about how many tokens the texts have, rather too many than too few."""
    return sum(-(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN) for text in texts)


def calls_schema(tools: tuple[ToolSpec, ...]) -> dict[str, object]:
    """Return the schema of a call of one of the tools."""
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "tool": {"const": one.name, "type": "string"},
                    "arguments": {"type": "object", **one.parameters},
                },
                "required": ["tool", "arguments"],
                "additionalProperties": False,
            }
            for one in tools
        ]
    }


__all__ = [
    "Completion",
    "Identity",
    "Kind",
    "Message",
    "ModelClient",
    "ModelError",
    "Price",
    "Request",
    "Role",
    "Schema",
    "ToolSpec",
    "Usage",
    "calls_schema",
    "canonical",
    "estimated_tokens",
]
