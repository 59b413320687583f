"""What of Python's values has a JSON form, and what a call with any other is told."""

import dataclasses
import datetime
import enum
import math
import pathlib
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from interlock.model.errors import InputError
from interlock.sdk.adapters import arguments_of
from interlock.sdk.answers import MAX_TEXT, done, failed
from interlock.sdk.arguments import MAX_LENGTH, Signature, call_text
from interlock.sdk.errors import ArgumentError


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: list[str]


class Name(str):
    __slots__ = ()


class Model:
    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"mode": mode}


def _text(value: object) -> str:
    return call_text("f", {"a": value}).removeprefix('{"a":').removesuffix("}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é", '"é"'),
        (2**80, str(2**80)),
        (True, "true"),
        (1.5, "1.5"),
        (None, "null"),
        ({"b": 1, "a": (2, [3])}, '{"a":[2,[3]],"b":1}'),
        (Colour.RED, '"red"'),
        (Name("n"), '"n"'),
        (Point(1, ["a"]), '{"x":1,"y":["a"]}'),
        (Model(), '{"mode":"json"}'),
        ({"b", "a"}, '["a","b"]'),
        (b"text", '"text"'),
        (b"\xff\x00", '{"base64":"/wA="}'),
        (pathlib.PurePosixPath("/a/b"), '"/a/b"'),
        (datetime.date(2026, 5, 1), '"2026-05-01"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    ],
)
def test_a_value_has_one_text(value: object, text: str) -> None:
    assert _text(value) == text


def _holds_itself() -> object:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "has no JSON form"),
        (print, "has no JSON form"),
        ({1: "a"}, "a key of type int"),
        (math.nan, "no number that JSON has"),
        (math.inf, "no number that JSON has"),
        ("\ud800", "half a character"),
        ({"\ud800": 1}, "half a character"),
        (_holds_itself(), "nested too deeply"),
        ("x" * MAX_LENGTH, "longer than"),
        (iter([1]), "has no JSON form"),
    ],
)
def test_what_has_no_json_form_is_told_with_the_next_step(value: object, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        _text(value)
    assert said in caught.value.message
    assert caught.value.hint


def _plain(a: str, b: int = 2, *, c: bool = False) -> None: ...
def _spread(a: str, *rest: int, **named: str) -> None: ...
def _only(a: str, /, b: int) -> None: ...


class Tool:
    def method(self, a: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "named"),
    [
        (_plain, ("x",), {}, {"a": "x"}),
        (_plain, ("x", 1), {"c": True}, {"a": "x", "b": 1, "c": True}),
        (_plain, (), {"c": True, "a": "x"}, {"a": "x", "c": True}),
        (_spread, ("x", 1, 2), {"k": "v"}, {"a": "x", "rest": (1, 2), "k": "v"}),
        (_only, ("x",), {"b": 1}, {"a": "x", "b": 1}),
        (Tool.method, (Tool(), "x"), {}, {"a": "x"}),
        (Tool().method, ("x",), {}, {"a": "x"}),
        (Tool(), (), {}, None),
    ],
)
def test_arguments_have_the_names_of_the_parameters(
    function: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, Any],
    named: dict[str, Any] | None,
) -> None:
    if named is None:
        return
    assert Signature(function, ()).named(args, kwargs) == named


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), (("x", 1, 2), {}), (("x",), {"a": "y"}), (("x",), {"d": 1})]
)
def test_a_call_that_the_function_would_not_take_is_its_own_type_error(
    args: tuple[object, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(TypeError):
        Signature(_plain, ()).named(args, kwargs)


def test_a_parameter_of_the_programs_own_is_no_argument() -> None:
    assert Signature(_plain, ["b"]).named(("x", 1), {}) == {"a": "x"}
    with pytest.raises(ArgumentError, match="no parameter `bb`"):
        Signature(_plain, ["bb"])


def test_a_role_of_no_parameter_is_a_mistake_with_the_nearest_name() -> None:
    with pytest.raises(ArgumentError) as caught:
        Signature(_plain, ()).check(["aa"], "steers")
    assert "did you mean `a`" in caught.value.hint


def test_an_answer_without_a_json_form_counts_as_read_and_vouches_for_nothing() -> None:
    result = done(object())
    assert result.text is None
    assert result.size_bytes > 0
    assert "has no JSON form" in result.detail


def test_an_answer_is_written_as_arguments_are() -> None:
    values: list[Any] = [
        {"b": 1, "a": [1.5, None, True]}, [Point(1, ["a"])], {"c": Colour.RED, "d": datetime.date(2026, 5, 1)},
        (Name("n"), b"text", uuid.UUID(int=1)), {"k": {"b", "a"}}, 2**80, Model(), None, 7,
    ]  # fmt: skip
    for value in values:
        assert done(value).text == _text(value)
        assert done(value).structured


def test_a_long_answer_is_kept_by_its_digest_alone() -> None:
    result = done("x" * (MAX_TEXT + 1))
    assert result.text is None
    assert len(result.digest) == 64


def test_half_a_character_in_an_answer_is_no_fault_of_the_ledger() -> None:
    result = done({"a": "\ud800"})
    assert result.text is None
    assert result.size_bytes > 0


@pytest.mark.parametrize(
    "text",
    ["{not json", "[1]", '"x"', "1", "null", '{"a":1,"a":2}', '{"a":NaN}', r'{"a":"\ud800"}', "[" * 100_000],
)
def test_what_a_model_wrote_is_one_json_object_or_nothing_is_called(text: str) -> None:
    with pytest.raises(InputError, match="no JSON object"):
        arguments_of("f", text)
    assert arguments_of("f", "") == {}
    assert arguments_of("f", '{"a":[1.5,"é"]}') == {"a": [1.5, "é"]}


def test_what_an_error_says_counts_as_read() -> None:
    result = failed(ValueError("mail to eve@evil.test"))
    assert result.text == "ValueError: mail to eve@evil.test"
    assert result.detail == "it raised ValueError"
