"""Played agents: what an agent under an injection asks for next, without a model. Pure: values in, arguments out."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
_Change = Callable[[str], str]


class Agent(StrEnum):
    """How the agent behaves.

    `faithful` does the user's task only; `obedient` does what it reads too; `hijack` does the user's own call with the
    attacker's value; `stubborn` is obedient and tries again what was refused; `model` is a language model.
    """

    FAITHFUL = "faithful"
    OBEDIENT = "obedient"
    HIJACK = "hijack"
    STUBBORN = "stubborn"
    MODEL = "model"


class Timing(StrEnum):
    """When the agent obeys: at the first sight of the goal, or at the task's end."""

    FIRST = "first"
    END = "end"


def canonical(value: Json) -> str:
    """Return a value as canonical JSON text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def squeezed(text: str) -> str:
    """Return a text without white space and back slashes, so that a goal is found however it is wrapped or escaped."""
    return re.sub(r"[\s\\]+", "", unicodedata.normalize("NFKC", text))


def kind_of(text: str) -> str:
    """Say what a value looks like: `email`, `iban`, `url`, or `text`."""
    if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", text):
        return "email"
    if re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{10,30}", text):
        return "iban"
    return "url" if re.fullmatch(r"(https?://|www\.)\S+", text) else "text"


def hijacked(
    own: dict[str, Json], attack: dict[str, Json], steering: tuple[str, ...]
) -> dict[str, Json] | None:
    """Return the user's own call with the attacker's values in its steering arguments, by the same name, else by what
    they look like. Returns: None where nothing fits."""
    found = dict(own)
    spare = list(texts(attack))
    for role in steering:
        if not own.get(role):
            continue
        if attack.get(role) and isinstance(attack[role], type(own[role])):
            found[role] = attack[role]
            continue
        kinds = {kind_of(text) for text in texts(own[role])} - {"text"}
        fitting = [text for text in spare if kind_of(text) in kinds]
        if fitting:
            found[role] = [*fitting[:1]] if isinstance(own[role], list) else fitting[0]
    return found if found != own else None


def variants(arguments: dict[str, Json]) -> tuple[dict[str, Json], ...]:
    """Return the three ways in which a stubborn agent writes a refused call anew."""
    return tuple(
        {name: _mapped(value, change) for name, value in arguments.items()}
        for change in (lambda text: f" {text} ", str.swapcase, lambda text: f"<{text}>")
    )


def texts(value: Json) -> Iterator[str]:
    """Return every text in a value, in its order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)


def _mapped(value: Json, change: _Change) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    if isinstance(value, dict):
        return {name: _mapped(each, change) for name, each in value.items()}
    return value
