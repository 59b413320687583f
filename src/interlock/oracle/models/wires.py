"""What a provider's wire needs to say, and how its answer is read: the part that all of them share."""

import re
from collections.abc import Mapping
from typing import Protocol

from interlock.model.records import dataclass
from interlock.oracle.models.client import Request, Usage
from interlock.oracle.models.schemas import AnswerError, read_answer

_COUNT_LIMIT = 1 << 40
"""Sums of more could leave what the ledger's numbers hold."""
LACKS = ("temperature", "seed", "schema", "bounds", "max_tokens")
"""What an endpoint may not take: temperature, seed, a schema at all, the schema's bounds on sizes, `max_tokens` under
that name."""

SIZES = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern"))
"""A schema's bounds on sizes: an endpoint that lacks them is not told; the answer is checked here all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One model of one provider. Takes: `lacks`, of `LACKS`; `api_version`, where the provider's wire has one."""

    provider: str
    base_url: str
    model: str
    lacks: frozenset[str] = frozenset()
    api_version: str = ""

    def takes(self, word: str) -> bool:
        """Say whether the endpoint takes this."""
        return word not in self.lacks

    @property
    def sampling(self) -> str:
        """Return how answers are drawn, as far as it can be asked for: no provider promises the same bytes twice."""
        says = {"temperature": "temperature 0", "seed": "the request's seed"}
        asked = ", ".join(said for word, said in says.items() if self.takes(word))
        return f"{asked}: asked for, not promised" if asked else "the provider's own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request on the wire: where below the endpoint, with which headers, and the JSON document."""

    path: str
    headers: Mapping[str, str]
    document: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What an answer's document says. Takes: `usage`, None where it tells none."""

    text: str
    model: str
    finish: str
    usage: Usage | None = None


class WireError(ValueError):
    """An answer is not of the provider's form; the message holds nothing of the answer."""


class Wire(Protocol):
    """How one provider is spoken to."""

    def write(self, endpoint: Endpoint, request: Request, key: str) -> Sent:
        """Return the request on the wire. Takes: `key`, `""` where the endpoint needs none."""

    def read(self, document: object, request: Request) -> Heard:
        """Read an answer. Raises: WireError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A JSON value under reading: what is not there, or of another type, is an error and no guess."""

    value: object
    where: str = "the answer"

    def at(self, key: str | int) -> "Reading":
        """Go into an object or a list."""
        if isinstance(key, str) and isinstance(self.value, dict) and key in self.value:
            return Reading(value=self.value[key], where=f"`{key}`")
        if isinstance(key, int) and isinstance(self.value, list) and len(self.value) > key:
            return Reading(value=self.value[key], where=f"{self.where}[{key}]")
        raise WireError(f"{self.where} has no `{key}`")

    def get(self, key: str) -> object:
        """Return what stands there, None where nothing does."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def text(self) -> str:
        """Return it as text."""
        if not isinstance(self.value, str):
            raise WireError(f"{self.where} is no text")
        return self.value

    def only(self) -> "Reading":
        """Go into the one item of a list."""
        if not isinstance(self.value, list) or len(self.value) != 1:
            raise WireError(f"{self.where} is not a list of one")
        return self.at(0)

    def items(self) -> "list[Reading]":
        """Return the items of a list."""
        if not isinstance(self.value, list):
            raise WireError(f"{self.where} is no list")
        return [self.at(place) for place in range(len(self.value))]


def counted(record: object, *names: str) -> int | None:
    """Return the sum of an object's counts of these names, None where none of them stands there.

    Raises: WireError, for a count that is none.
    """
    found = [record[name] for name in names if isinstance(record, dict) and record.get(name) is not None]
    for number in found:
        if type(number) is not int or not 0 <= number < _COUNT_LIMIT:
            raise WireError("a count of tokens is none")
    return sum(found) if found else None


def usage_of(prompt: int | None, completion: int | None) -> Usage | None:
    """Return the tokens that an answer tells, None where it does not tell both."""
    if prompt is None or completion is None:
        return None
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def answer_of(heard: Heard, request: Request) -> str:
    """Return an answer's text, held to the request's schema where it has one.

    Raises: AnswerError, also where the model was stopped before its end: what it would have said is not known.
    """
    schema = request.answer_schema()
    if schema is None:
        return heard.text
    if heard.finish == "length":
        raise AnswerError("it is cut off at `max_tokens`")
    if heard.finish != "stop":
        raise AnswerError("it was broken off by the provider")
    return read_answer(heard.text, schema)


def is_same_model(asked: str, answered: str) -> bool:
    """Say whether a provider's name is the one that was asked for, or a dated or numbered variant of it."""
    asked, answered = asked.removeprefix("models/"), answered.removeprefix("models/")
    if asked == answered:
        return True
    rest = answered.removeprefix(asked) if answered.startswith(asked) else ""
    return re.fullmatch(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{3})", rest) is not None


def without(schema: object, dropped: frozenset[str]) -> object:
    """Return a schema without some keywords, at any depth; names of properties are left as they are."""
    if isinstance(schema, list | tuple):
        return [without(one, dropped) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, object] = {}
    for key, value in schema.items():
        if key in dropped:
            continue
        if key in ("properties", "$defs") and isinstance(value, Mapping):
            kept[key] = {name: without(inner, dropped) for name, inner in value.items()}
        elif key in ("enum", "const", "required"):
            kept[key] = list(value) if isinstance(value, tuple) else value
        else:
            kept[key] = without(value, dropped)
    return kept
