"""Parameters of a planned step against a tool's JSON Schema; a closed part of it, so that nothing passes unread."""

import math
import re
from collections.abc import Iterable

from interlock.manifest.canonical import canonical
from interlock.manifest.document import Document, Path, Tree, near

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
WORDS = ("title", "description", "default", "examples", "format", "$schema", "deprecated")
"""What says something to a reader and allows nothing."""
KEYWORDS = (
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    *WORDS,
)
_MAX_DEPTH = 20
_EXAMPLE = "{type: object, properties: {to: {type: string}}, required: [to]}"


def check_schema(document: Document, path: Path, depth: int = 0) -> None:
    """Check that a schema can be checked here. Raises: InputError."""
    given = document.section(path, KEYWORDS, _EXAMPLE)
    if depth > _MAX_DEPTH:
        raise document.mistake(path, "a schema that is too deep", "write it with fewer levels")
    types = given.get("type", [])
    for kind in types if isinstance(types, list) else [types]:
        if not isinstance(kind, str) or kind not in TYPES:
            raise document.mistake((*path, "type"), "no type of JSON", near(str(kind), TYPES))
    for key in ("required", "enum", "anyOf"):
        if key in given and not isinstance(given[key], list):
            raise document.mistake((*path, key), "it must be a list", f"write it as in `{_EXAMPLE}`")
    for key in ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"):
        if key in given and (isinstance(given[key], bool) or not isinstance(given[key], int | float)):
            raise document.mistake((*path, key), "it must be a number", f"write `{key}: 1`")
    if "pattern" in given:
        try:
            re.compile(given["pattern"])
        except (TypeError, re.error):
            raise document.mistake((*path, "pattern"), "no pattern", "write a regular expression") from None
    properties = given.get("properties", {})
    if not isinstance(properties, dict):
        raise document.mistake((*path, "properties"), "it must be a mapping", f"write it as in `{_EXAMPLE}`")
    for name in properties:
        check_schema(document, (*path, "properties", name), depth + 1)
    more = given.get("additionalProperties", False)
    if not isinstance(more, bool):
        check_schema(document, (*path, "additionalProperties"), depth + 1)
    if "items" in given:
        check_schema(document, (*path, "items"), depth + 1)
    for index in range(len(given.get("anyOf", ()))):
        check_schema(document, (*path, "anyOf", index), depth + 1)


def misfit(value: Tree, schema: Tree, holes: Iterable[str] = ()) -> str:
    """Return in words where a value does not fit a checked schema, `""` where it does.

    Takes: `holes`, pointers at which the value is not yet known, so that anything fits.
    Holds: a property that the schema does not name fits only where it says so by `additionalProperties`.
    """
    return _misfit(value, schema, frozenset(holes), "")


def _misfit(value: Tree, schema: Tree, holes: frozenset[str], here: str) -> str:
    if here in holes:
        return ""
    place = here or "the parameters"
    if "anyOf" in schema and all(_misfit(value, one, holes, here) for one in schema["anyOf"]):
        return f"{place}: it has none of the forms that it may have"
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(_is_a(value, kind) for kind in kinds):
        return f"{place}: it must be of the type {' or '.join(kinds)}"
    if "const" in schema and canonical(value) != canonical(schema["const"]):
        return f"{place}: it is not the value that it must be"
    if "enum" in schema and canonical(value) not in [canonical(one) for one in schema["enum"]]:
        return f"{place}: it must be one of {', '.join(canonical(one) for one in schema['enum'][:20])}"
    if isinstance(value, str):
        return _misfit_text(value, schema, place)
    if isinstance(value, int | float) and not isinstance(value, bool):
        within = schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
        return "" if within else f"{place}: it is out of its bounds"
    if isinstance(value, list):
        return _misfit_list(value, schema, holes, here)
    return _misfit_object(value, schema, holes, here) if isinstance(value, dict) else ""


def _is_a(value: Tree, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[kind])


def _misfit_text(value: str, schema: Tree, place: str) -> str:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf):
        return f"{place}: it is too short or too long"
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        return f"{place}: it is not of the form that it must have"
    return ""


def _misfit_list(value: list[Tree], schema: Tree, holes: frozenset[str], here: str) -> str:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
        return f"{here or 'the parameters'}: it has too few or too many entries"
    if "items" in schema:
        for index, item in enumerate(value):
            if wrong := _misfit(item, schema["items"], holes, f"{here}/{index}"):
                return wrong
    return ""


def _misfit_object(value: dict[str, Tree], schema: Tree, holes: frozenset[str], here: str) -> str:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{here or 'the parameters'}: `{name}` is missing"
    more = schema.get("additionalProperties", "properties" not in schema and bool(here))
    for name, inner in value.items():
        below = f"{here}/{name.replace('~', '~0').replace('/', '~1')}"
        if name in properties:
            wrong = _misfit(inner, properties[name], holes, below)
        elif isinstance(more, dict):
            wrong = _misfit(inner, more, holes, below)
        else:
            wrong = (
                "" if more else f"{here or 'the parameters'}: there is no `{name}`; {near(name, properties)}"
            )
        if wrong:
            return wrong
    return ""
