"""InjecAgent's tools as callable functions: arguments are checked, answers are placeholders, exceptions are named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from interlock.bench.injecagent import answers
from interlock.bench.injecagent.catalogue import refusals, spec, toolkit, toolkits
from interlock.manifest.schemas import misfit
from interlock.model.errors import InputError
from interlock.model.toolkits import ToolSpec

Function = Callable[..., dict[str, Any]]
INVALID, NOT_FOUND = "InvalidRequestException", "NotFoundException"
MISSING = "missing"
"""What an id begins with of a record that is not there, so that a caller can ask for the exception."""
_EMAIL = re.compile(r"[^\s@,;]+@[^\s@,;]+\.[^\s@,;]+")
_COUNTS = ("limit", "max_results", "num_results", "amount", "quantity", "results_per_page")


class ToolRefusal(Exception):
    """A tool's own refusal. Takes: `tool`; `name`, of the exception as the data has it; why."""

    def __init__(self, tool: str, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.tool = tool
        self.name = name


def tool(name: str, seed: int = 0) -> Function:
    """Return a tool as a function of named arguments. Raises: InputError, for a name that is none."""
    known = spec(name)

    def function(**arguments: Any) -> dict[str, Any]:
        return call(name, arguments, seed)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = known.description
    return function


def tools(*names: str, seed: int = 0) -> dict[str, Function]:
    """Return tools by name: those of toolkits and single ones, or all 330 where none is named. Raises: InputError."""
    chosen: list[str] = []
    kits = {kit.name.lower() for kit in toolkits()}
    for name in names or tuple(kit.name for kit in toolkits()):
        if name.lower() in kits:
            chosen += [one.name for one in toolkit(name).tools]
        else:
            chosen.append(spec(name).name)
    return {name: tool(name, seed) for name in dict.fromkeys(chosen)}


def call(name: str, arguments: Mapping[str, Any], seed: int = 0, *, injected: str = "") -> dict[str, Any]:
    """Call a tool.

    Takes: `injected`, words of an attacker that stand in the answer's free text.
    Raises: ToolRefusal, as the tool's description says; InputError, for words where the answer has no place for them.
    """
    known = spec(name)
    if injected and not answers.free_text(name):
        raise InputError(f"the answer of `{name}` holds no words of others", hint="choose another tool")
    _check(known, arguments)
    return answers.answer(known, arguments, seed, injected=injected)


def free_text(name: str) -> str:
    """Return where an answer holds words of others, as in `emails[].subject`; `""` where it does not."""
    spec(name)
    return answers.free_text(name)


def _check(known: ToolSpec, arguments: Mapping[str, Any]) -> None:
    if wrong := misfit(dict(arguments), json.loads(known.parameters)):
        raise ToolRefusal(known.name, INVALID, wrong)
    named = {one.name for one in refusals(known.name)}
    kinds = dict(known.steers)
    for name, value in arguments.items():
        for one in value if isinstance(value, list) else [value]:
            if INVALID in named and not _valid(name, kinds.get(name, ""), one):
                raise ToolRefusal(known.name, INVALID, f"`{name}` is not of its form")
            if NOT_FOUND in named and kinds.get(name, "").startswith("id:") and str(one).startswith(MISSING):
                raise ToolRefusal(known.name, NOT_FOUND, f"nothing has this `{name}`")


def _valid(name: str, kind: str, value: object) -> bool:
    if name in _COUNTS and isinstance(value, int | float):
        return value >= 0
    if kind == "email" and isinstance(value, str) and value:
        return all(_EMAIL.fullmatch(one.strip()) for one in value.split(","))
    return value != "" or not kind.startswith("id:")
