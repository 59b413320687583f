"""InjecAgent's toolkits as `Toolkit`s: the authors' descriptions and parameters, our roles."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from interlock.bench.injecagent.annotations import KitReading, Reading, readings
from interlock.bench.injecagent.needs import kit_needs, tool_needs
from interlock.bench.injecagent.shapes import Kind, Shape, schema_of, trusted_leaves
from interlock.manifest.canonical import canonical
from interlock.manifest.toolkits import toolkit_of
from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.model.toolkits import Toolkit, ToolSpec

Tree = Any
_DATA = "interlock.bench.injecagent"
_OBJECTS = re.compile(r"\b(?:objects|each (?:is|object))\b")
_OPEN = frozenset(("constructor_args", "function_args"))
"""Lists whose entries may be anything: the arguments of a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """How a tool may refuse. Takes: `name` of the exception; when, in the authors' words."""

    name: str
    description: str


def toolkits() -> tuple[Toolkit, ...]:
    """Return all 38 toolkits, in the data's order."""
    return tuple(_kits().values())


def toolkit(name: str) -> Toolkit:
    """Return a toolkit by its name, whatever its case. Raises: InputError."""
    for one in _kits().values():
        if one.name.lower() == name.lower():
            return one
    raise InputError(
        f"`{name}` is no toolkit of InjecAgent", hint=f"they are {', '.join(one for one in _kits())}"
    )


def spec(name: str) -> ToolSpec:
    """Return a tool by its whole name, as in `GmailSendEmail`. Raises: InputError."""
    found = _specs().get(name)
    if found is None:
        raise InputError(f"`{name}` is no tool of InjecAgent", hint="write it as in `GmailSendEmail`")
    return found


def toolkit_name(tool: str) -> str:
    """Return whose a tool is. Raises: InputError."""
    spec(tool)
    return next(kit.name for kit in toolkits() if any(one.name == tool for one in kit.tools))


def answer_shapes(name: str) -> tuple[Shape, ...]:
    """Return the shapes of a tool's answer."""
    return _shapes()[name]


def refusals(name: str) -> tuple[Refused, ...]:
    """Return the named ways in which a tool may refuse."""
    return _refusals()[name]


@cache
def _raw() -> list[dict[str, Tree]]:
    packed = files(_DATA).joinpath("data/tools.json.gz").read_bytes()
    value: list[dict[str, Tree]] = json.loads(gzip.decompress(packed))
    return value


def _pairs() -> list[tuple[dict[str, Tree], KitReading, list[tuple[str, dict[str, Tree], Reading]]]]:
    known = readings()
    found = []
    for kit in _raw():
        name = kit["toolkit"]
        ours = {one.name: one for one in known[name].tools}
        found.append(
            (kit, known[name], [(name + one["name"], one, ours[one["name"]]) for one in kit["tools"]])
        )
    return found


@cache
def _kits() -> dict[str, Toolkit]:
    specs = _specs()
    return {
        kit["toolkit"]: toolkit_of(
            kit["toolkit"],
            tuple([specs[name] for name, _, _ in tools]),
            needs=kit_needs(reading),
            description=kit["description_for_model"],
        )
        for kit, reading, tools in _pairs()
    }


@cache
def _specs() -> dict[str, ToolSpec]:
    return {name: _spec(name, raw, ours) for _, _, tools in _pairs() for name, raw, ours in tools}


@cache
def _shapes() -> dict[str, tuple[Shape, ...]]:
    return {name: _answer(raw, ours) for _, _, tools in _pairs() for name, raw, ours in tools}


@cache
def _refusals() -> dict[str, tuple[Refused, ...]]:
    return {
        name: tuple(
            [Refused(name=one["name"], description=one["description"]) for one in raw.get("exceptions", ())]
        )
        for _, _, tools in _pairs()
        for name, raw, _ in tools
    }


def _spec(name: str, raw: dict[str, Tree], ours: Reading) -> ToolSpec:
    parameters = {one["name"]: _parameter(one) for one in raw["parameters"]}
    required = [one["name"] for one in raw["parameters"] if one.get("required")]
    schema: dict[str, Tree] = {"type": "object", "properties": parameters}
    if required:
        schema["required"] = required
    shapes = _answer(raw, ours)
    returns = {"type": "object", "properties": {one.name: schema_of(one) for one in shapes}}
    steering = dict(ours.steers)
    return ToolSpec(
        name=name,
        description=raw["summary"].strip(),
        parameters=canonical(schema),
        returns=canonical(returns),
        effect=ours.effect,
        steers=tuple(sorted(ours.steers)),
        carries=tuple([one for one in parameters if one not in steering]),
        output=tuple(sorted(trusted_leaves(shapes))),
        discloses=ours.discloses,
        needs=tool_needs(ours),
    )


def _parameter(raw: dict[str, Tree]) -> dict[str, Tree]:
    kind, said = raw["type"], raw["description"]
    schema: dict[str, Tree] = {"type": kind, "description": said}
    if kind == Kind.LIST and raw["name"] not in _OPEN:
        schema["items"] = {"type": "object" if _OBJECTS.search(said) else "string"}
    return schema


def _answer(raw: dict[str, Tree], ours: Reading) -> tuple[Shape, ...]:
    """The parts that the data names; of scalars the data says the type, and of the rest the annotation the shape."""
    known = {one.name: one for one in ours.answer}
    found = []
    for one in raw["returns"]:
        shape = known.get(one["name"])
        if one["type"] in (Kind.LIST, Kind.OBJECT):
            found.append(shape or Shape(name=one["name"], kind=Kind(one["type"])))
        else:
            trusted = shape.trusted if shape is not None else ""
            found.append(Shape(name=one["name"], kind=Kind(one["type"]), trusted=trusted))
    return tuple(found)
