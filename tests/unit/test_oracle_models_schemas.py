"""The part of JSON Schema that answers are held to, keyword by keyword."""

import pytest

from interlock.oracle.models.schemas import AnswerError, check_schema, read_answer


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, "1", "1.0"),
        ({"type": "integer"}, "-1", "true"),
        ({"type": "number"}, "1.5", "false"),
        ({"type": "boolean"}, "true", "1"),
        ({"type": "null"}, "null", "0"),
        ({"type": "string"}, '""', "1"),
        ({"type": "array"}, "[]", "{}"),
        ({"type": "object"}, "{}", "[]"),
        ({"const": 1}, "1", "true"),
        ({"const": [1]}, "[1]", "[true]"),
        ({"enum": ["a", 0]}, "0", "false"),
        ({"type": "string", "pattern": "^[a-z]+$"}, '"abc"', '"a1"'),
        ({"type": "string", "minLength": 2}, '"ab"', '"a"'),
        ({"type": "string", "maxLength": 2}, '"ab"', '"abc"'),
        ({"type": "integer", "minimum": 2}, "2", "1"),
        ({"type": "integer", "maximum": 2}, "2", "3"),
        ({"type": "array", "minItems": 1}, "[1]", "[]"),
        ({"type": "array", "maxItems": 1}, "[1]", "[1,2]"),
        ({"type": "array", "items": {"type": "integer"}}, "[1,2]", '[1,"2"]'),
        ({"type": "object", "required": ["a"]}, '{"a":1}', '{"b":1}'),
        ({"type": "object", "properties": {"a": {"type": "null"}}}, '{"a":null}', '{"a":1}'),
        ({"type": "object", "additionalProperties": False}, "{}", '{"a":1}'),
        ({"anyOf": [{"type": "null"}, {"const": 1}]}, "1", "2"),
        ({"anyOf": [{"type": "integer"}], "maximum": 3}, "3", "4"),
        ({"$ref": "#/$defs/one", "$defs": {"one": {"const": 1}}}, "1", "2"),
        (
            {"type": "array", "items": {"$ref": "#/$defs/tree"}, "$defs": {"tree": {"type": "array"}}},
            "[[]]",
            "[1]",
        ),
        ({}, '{"a":[1,null]}', '{"a":[1,null]'),
        ({}, "1", "1 2"),
        ({}, '"a"', "'a'"),
        ({}, "1", "NaN"),
        ({}, "1", "-Infinity"),
        ({}, "1", "1e999"),
        ({}, '{"a":1}', '{"a":1,"a":1}'),
        ({}, '"\\ud83d\\ude00"', '"\\ud83d"'),
        ({}, "1", ""),
        ({}, "1", "\ufeff1"),
        ({}, "1", "[" * 3000 + "]" * 3000),
    ],
)
def test_what_fits_is_read_and_what_does_not_is_not(schema: dict[str, object], good: str, bad: str) -> None:
    check_schema(schema)
    assert read_answer(good, schema)
    with pytest.raises(AnswerError):
        read_answer(bad, schema)


def test_a_value_is_handed_on_in_canonical_form() -> None:
    read = read_answer('\n{ "b" : "\\u00e9" , "a" : [ 1 , 2.50 ] }\t', {"type": "object"})
    assert read == '{"a":[1,2.5],"b":"é"}'


def test_a_schema_that_was_not_checked_permits_nothing() -> None:
    for schema in ({"$ref": "#/$defs/none"}, {"anyOf": [1]}, {"type": "array", "items": 1}):
        with pytest.raises(AnswerError):
            read_answer("[1]", schema)
