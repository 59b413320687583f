"""Laws of reading answers and of hiding keys: what is not of the schema is never taken, what is a key is never told."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.oracle.models.keys import without_key
from interlock.oracle.models.schemas import AnswerError, check_schema, read_answer
from interlock.oracle.models.wires import is_same_model

EXAMPLES = int(os.environ.get("INTERLOCK_EXAMPLES", "60"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, -2.0]) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def schema_of(value: object) -> dict[str, object]:
    """The narrowest schema of this form that a value fits."""
    match value:
        case None:
            return {"type": "null"}
        case bool():
            return {"type": "boolean", "const": value}
        case int():
            return {"type": "integer", "minimum": value, "maximum": value}
        case float():
            return {"type": "number", "enum": [value]}
        case str():
            return {"type": "string", "minLength": len(value), "maxLength": len(value), "enum": [value]}
        case list():
            return {
                "type": "array",
                "minItems": len(value),
                "maxItems": len(value),
                **({"items": {"anyOf": [schema_of(one) for one in value]}} if value else {}),
            }
        case dict():
            return {
                "type": "object",
                "properties": {name: schema_of(inner) for name, inner in value.items()},
                "required": sorted(value),
                "additionalProperties": False,
            }
    raise AssertionError(value)


def same(left: object, right: object) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@settings(max_examples=EXAMPLES, deadline=None)
@given(value=VALUES, other=VALUES, indent=st.sampled_from([None, 2]))
def test_a_value_fits_its_own_schema_and_another_does_not(
    value: object, other: object, indent: int | None
) -> None:
    schema = schema_of(value)
    check_schema(schema)
    read = read_answer(json.dumps(value, indent=indent), schema)
    assert same(json.loads(read), value)
    assert read == read_answer(read, schema)
    scalar = not isinstance(value, list)
    if scalar and not same(value, other) and not isinstance(value, dict):
        with pytest.raises(AnswerError):
            read_answer(json.dumps(other), schema)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    text=st.text(max_size=30) | st.binary(max_size=30).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
)
def test_no_text_is_taken_that_is_no_answer(text: str) -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
    try:
        read = read_answer(text, schema)
    except AnswerError:
        pass
    else:
        assert json.loads(read)["a"] == 1


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    key=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=60),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
    start=st.integers(0, 20),
)
def test_no_eight_characters_of_a_key_are_told(key: str, before: str, after: str, start: int) -> None:
    told = without_key(f"{before}{key[start:]}{after}{key}", key)
    pieces = {key[at : at + 8] for at in range(len(key) - 7)}
    left = told.replace("[key]", "\0")
    assert not any(piece in left for piece in pieces)


@given(name=st.text(st.sampled_from("abc-0123456789@"), min_size=1, max_size=12), rest=st.text(max_size=12))
def test_only_a_date_or_a_number_may_follow_a_models_name(name: str, rest: str) -> None:
    assert is_same_model(name, name)
    if is_same_model(name, name + rest) and rest:
        assert rest[0] in "-@"
        assert set(rest[1:]) <= set("0123456789-")
        assert 3 <= len(rest[1:]) <= 10
