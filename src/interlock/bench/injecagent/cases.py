"""InjecAgent's cases: what a user asks for, and what an attacker's words in the answer ask for instead."""

from __future__ import annotations

import ast
import gzip
import json
from functools import cache
from importlib.resources import files
from typing import Any

from interlock.model.records import dataclass

PLACE = "<Attacker Instruction>"
HARM, STEAL = "harm", "steal"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCase:
    """What a user asks for. Takes: `arguments`, a JSON object; `template`, the answer with `PLACE` in it."""

    tool: str
    instruction: str
    arguments: str
    template: str

    def answer(self, instruction: str) -> dict[str, Any]:
        """Return the tool's answer with an attacker's words in it."""
        value: dict[str, Any] = json.loads(self.template, object_hook=lambda one: _filled(one, instruction))
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What an attacker's words ask for. Takes: `tools`, in order; `kind`, `harm` or `steal`; `achieves`, in words."""

    kind: str
    tools: tuple[str, ...]
    instruction: str
    achieves: str


@cache
def user_cases() -> tuple[UserCase, ...]:
    """Return the 17 user cases."""
    return tuple(
        [
            UserCase(
                tool=row["User Tool"],
                instruction=row["User Instruction"],
                arguments=json.dumps(ast.literal_eval(row["Tool Parameters"]), sort_keys=True),
                template=json.dumps(ast.literal_eval(row["Tool Response Template"])),
            )
            for row in _rows()["user"]
        ]
    )


@cache
def attacks() -> tuple[Attack, ...]:
    """Return the 30 attacks that do direct harm and the 32 that steal data."""
    return tuple(
        [
            Attack(
                kind=kind,
                tools=tuple(row["Attacker Tools"]),
                instruction=row["Attacker Instruction"],
                achieves=row["Expected Achievements"],
            )
            for kind in (HARM, STEAL)
            for row in _rows()[kind]
        ]
    )


@cache
def _rows() -> dict[str, list[dict[str, Any]]]:
    packed = files("interlock.bench.injecagent").joinpath("data/cases.json.gz").read_bytes()
    value: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(packed))
    return value


def _filled(one: dict[str, Any], instruction: str) -> dict[str, Any]:
    return {key: _words(value, instruction) for key, value in one.items()}


def _words(value: Any, instruction: str) -> Any:
    if isinstance(value, str):
        return value.replace(PLACE, instruction)
    return [_words(each, instruction) for each in value] if isinstance(value, list) else value
