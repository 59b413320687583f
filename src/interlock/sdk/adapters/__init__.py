"""Adapters to agents' frameworks: their own tools, guarded; an agent reads refusals and placeholders as answers.

Each needs its framework, which is imported where it is used: `openai_agents`, `langchain` (LangGraph too),
`pydantic_ai`, `claude`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from interlock.model.errors import InputError
from interlock.sdk.arguments import canonical
from interlock.sdk.calling import Guarded
from interlock.sdk.errors import Refusal
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from interlock.sdk.monitor import Monitor

Roles = Mapping[str, Mapping[str, Any]]
"""By a tool's name, as the key `tools` of a policy has them; none where the policy says them."""
_TYPES = frozenset(("object", "string", "number", "integer", "boolean", "array", "null"))
_DEPTH = 20


class Guards:
    """The guards of an agent's tools, by name.

    Takes: `roles`, of the tools that the policy does not declare.
    Raises: InputError, for roles that cannot be read.
    """

    def __init__(self, monitor: Monitor, roles: Roles | None) -> None:
        self._monitor = monitor
        self._known: dict[str, Guarded] = {}
        for name, given in (roles or {}).items():
            self._known[name] = self._declared(name, given)

    def of(self, name: str) -> Guarded:
        """Return the guard of a tool."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._declared(name, {})
        return found

    def _declared(self, name: str, roles: Mapping[str, Any]) -> Guarded:
        return self._monitor.declare(
            _unmade, name=name, by_name=True, on_refusal="return", more=dict(roles) or None
        )


def _unmade(**_arguments: Any) -> None:
    raise AssertionError("an adapter makes each call by a function of its own")


def told(came: Any) -> Any:
    """Return what an agent reads: a refusal or a placeholder as text, any other answer as it is."""
    if isinstance(came, Refusal):
        return str(came)
    if isinstance(came, Placeholder):
        return came.told()
    return came


def arguments_of(tool: str, text: str) -> dict[str, Any]:
    """Read the arguments that a model wrote.

    Raises: InputError, where they are no JSON object, or one that can be read in two ways.
    """
    try:
        found = json.loads(text or "{}", object_pairs_hook=_once_each, parse_constant=_no_number)
        canonical(found)  # half a character is an error of values too
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(
            f"the arguments of `{tool}` are no JSON object, so it was not called",
            hint="write them as one JSON object, each key once",
        )
    return found


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def _no_number(_text: str) -> Any:
    raise ValueError


def parsed(text: str) -> Any:
    """Return what a text says: the values of a JSON object or list, else the text itself."""
    if text[:1] in ("{", "["):
        try:
            return json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_number)
        except (ValueError, RecursionError):
            return text
    return text


def check_schema(tool: str, schema: Any) -> None:
    """Check that a tool's schema is a JSON schema of an object, so that a model can know its arguments.

    Raises: InputError.
    """
    wrong = _wrong(schema, 0)
    if not wrong and schema.get("type", "object") != "object":
        wrong = "it describes no object"
    if wrong:
        raise InputError(
            f"the schema of `{tool}` is no JSON schema of an object: {wrong}",
            hint='give one like {"type": "object", "properties": {"to": {"type": "string"}}}',
        )


def _wrong(schema: Any, depth: int) -> str:
    if isinstance(schema, bool) and depth:
        return ""
    if not isinstance(schema, dict):
        return f"a `{type(schema).__name__}` stands where a schema should"
    if depth > _DEPTH:
        return "it is nested too deeply"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not all(isinstance(one, str) and one in _TYPES for one in kinds):
        return "its `type` is no type that JSON has"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        return "its `required` is no list of names"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return "its `properties` are no mapping"
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return next((wrong for one in inner if (wrong := _wrong(one, depth + 1))), "")


def needed(package: str, extra: str, load: Callable[[], Any]) -> Any:
    """Load a framework. Raises: InputError, where it is not installed."""
    try:
        return load()
    except ImportError as error:
        raise InputError(
            f"the package `{package}` is not installed ({error.name})",
            hint=f"install it: pip install 'interlock[{extra}]'",
        ) from error
