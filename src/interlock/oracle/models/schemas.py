"""JSON schemas that an answer is held to, and the strict reading of an answer.

A closed part of JSON Schema, small enough to be checked here: whatever a provider promises, an answer that does not fit
is no answer.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from interlock.model.errors import InputError
from interlock.oracle.models.client import Schema

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_LISTED = frozenset(("anyOf", "enum", "required"))
_COUNTS = frozenset(("minLength", "maxLength", "minItems", "maxItems"))
_BOUNDS = frozenset(("minimum", "maximum"))
_WORDS = frozenset(("title", "description"))
_KEYWORDS = (
    frozenset(("type", "properties", "additionalProperties", "items", "const", "pattern", "$ref", "$defs"))
    | _LISTED
    | _COUNTS
    | _BOUNDS
    | _WORDS
)
_LOCAL = "#/$defs/"
_DEPTH = 32
_SIZE_CHARACTERS = 64 << 10


class AnswerError(ValueError):
    """An answer is no JSON value of the schema; the message holds nothing of the answer."""


def check_schema(schema: Schema) -> None:
    """Check that a schema can be checked here. Raises: InputError, with the place of what cannot."""
    if not isinstance(schema, Mapping):
        _bad("", "is no object")
    try:
        size = len(json.dumps(schema, default=dict))
    except (TypeError, ValueError, RecursionError):
        _bad("", "is no JSON")
    if size > _SIZE_CHARACTERS:
        _bad("", f"has more than {_SIZE_CHARACTERS} characters")
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, Mapping):
        _bad("$defs", "is no object")
    for name, inner in definitions.items():
        _check(inner, f"$defs.{name}", definitions, 1)
    _check(schema, "", definitions, 0)
    _check_circles(schema, definitions)


def _check(schema: object, where: str, definitions: Mapping[str, object], depth: int) -> None:
    if not isinstance(schema, Mapping):
        _bad(where, "is no schema")
    if depth > _DEPTH:
        _bad(where, "is too deep")
    if unknown := sorted(map(str, schema.keys() - _KEYWORDS)):
        _bad(where, f"has the keyword `{unknown[0]}`, which cannot be checked")
    for key in sorted(_LISTED & schema.keys()):
        value = schema[key]
        if not isinstance(value, Sequence) or isinstance(value, str) or (not value and key != "required"):
            _bad(where, f"has `{key}` that is no list")
    for key in sorted(_COUNTS & schema.keys()):
        if type(schema[key]) is not int or schema[key] < 0:
            _bad(where, f"has `{key}` that is no count")
    for key in sorted(_BOUNDS & schema.keys()):
        if type(schema[key]) not in (int, float) or not math.isfinite(schema[key]):
            _bad(where, f"has `{key}` that is no number")
    if "type" in schema and (not isinstance(schema["type"], str) or schema["type"] not in TYPES):
        _bad(where, "has a `type` that there is not")
    if "pattern" in schema:
        try:
            re.compile(schema["pattern"])
        except (TypeError, re.error):
            _bad(where, "has a `pattern` that is none")
    if "$ref" in schema and _referred(schema["$ref"], definitions) is None:
        _bad(where, "has a `$ref` to nothing here")
    if not isinstance(schema.get("additionalProperties", False), bool):
        _bad(where, "has `additionalProperties` that is neither true nor false")
    if not all(isinstance(name, str) for name in schema.get("required", ())):
        _bad(where, "requires what is no name")
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        _bad(where, "has `properties` that are no object")
    for name, inner in properties.items():
        _check(inner, f"{where}.{name}".lstrip("."), definitions, depth + 1)
    if "items" in schema:
        _check(schema["items"], f"{where}[]", definitions, depth + 1)
    for number, inner in enumerate(schema.get("anyOf", ())):
        _check(inner, f"{where}|{number}", definitions, depth + 1)


def _check_circles(schema: Schema, definitions: Mapping[str, object]) -> None:
    """Refuse a `$ref` that leads back to itself without a value between."""
    for start in definitions:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            name = waiting.pop()
            inner = definitions[name]
            assert isinstance(inner, Mapping)
            nexts = [inner, *inner.get("anyOf", ())]
            for one in nexts:
                if isinstance(one, Mapping) and isinstance(one.get("$ref"), str):
                    target = one["$ref"].removeprefix(_LOCAL)
                    if target == start:
                        _bad(f"$defs.{start}", "refers to itself")
                    if target not in seen:
                        seen.add(target)
                        waiting.append(target)


def _referred(reference: object, definitions: Mapping[str, object]) -> object:
    if not isinstance(reference, str) or not reference.startswith(_LOCAL):
        return None
    return definitions.get(reference.removeprefix(_LOCAL))


def _bad(where: str, message: str) -> NoReturn:
    place = f"at `{where}` it " if where else "it "
    raise InputError(
        f"a JSON schema cannot be used: {place}{message}",
        hint=f"the keywords are {', '.join(sorted(_KEYWORDS))}",
    )


def read_answer(text: str, schema: Schema) -> str:
    """Read an answer as exactly one JSON value of the schema.

    Returns: the value in canonical JSON. Raises: AnswerError.
    """
    value = read_json(text)
    _fits(value, schema, schema.get("$defs", {}), 0)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_json(text: str) -> object:
    """Read exactly one JSON value: no key twice, no half characters, no number beyond all bounds.

    Raises: AnswerError.
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
        text.encode("utf-8")
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise AnswerError("it is not one JSON value") from error
    return value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise AnswerError("a key stands there twice")
    return record


def _no_constant(_name: str) -> NoReturn:
    raise AnswerError("a number is none")


def _fits(value: object, schema: object, definitions: object, depth: int) -> None:
    """Check a value. Holds: a schema that was not checked before is no permission: what is unknown does not fit."""
    if not isinstance(schema, Mapping) or not isinstance(definitions, Mapping) or depth > 2 * _DEPTH:
        raise AnswerError("there is no schema for it")
    if "$ref" in schema:
        _fits(value, _referred(schema["$ref"], definitions), definitions, depth + 1)
    if "anyOf" in schema:
        _fits_any(value, schema["anyOf"], definitions, depth)
    kind = schema.get("type")
    if kind is not None:
        types = TYPES[kind]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise AnswerError(f"a value is no {kind}")
    if "const" in schema and not _same(value, schema["const"]):
        raise AnswerError("a value is not the one that it must be")
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        raise AnswerError("a value is none of those that it may be")
    if isinstance(value, str):
        _fits_text(value, schema)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf):
            raise AnswerError("a number is out of its bounds")
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
            raise AnswerError("a list is too short or too long")
        if "items" in schema:
            for item in value:
                _fits(item, schema["items"], definitions, depth + 1)
    elif isinstance(value, dict):
        _fits_object(value, schema, definitions, depth)


def _fits_any(value: object, choices: Sequence[object], definitions: object, depth: int) -> None:
    for choice in choices:
        try:
            _fits(value, choice, definitions, depth + 1)
        except AnswerError:
            continue
        return
    raise AnswerError("a value is of none of the forms that it may have")


def _fits_text(value: str, schema: Mapping[str, object]) -> None:
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    if not least <= len(value) <= most:  # type: ignore[operator]
        raise AnswerError("a text is too short or too long")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and re.search(pattern, value) is None:
        raise AnswerError("a text is not of its pattern")


def _fits_object(
    value: Mapping[str, object], schema: Mapping[str, object], definitions: object, depth: int
) -> None:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    assert isinstance(properties, Mapping)
    assert isinstance(required, Sequence)
    if any(name not in value for name in required):
        raise AnswerError("a key is missing")
    if schema.get("additionalProperties", True) is False and value.keys() - properties.keys():
        raise AnswerError("a key is there that may not be")
    for name, inner in value.items():
        if name in properties:
            _fits(inner, properties[name], definitions, depth + 1)


def _same(left: object, right: object) -> bool:
    """Compare JSON values without taking `true` for 1."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True, default=list)
