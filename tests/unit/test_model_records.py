"""Our records behave as the standard library's frozen, slotted, keyword-only dataclasses."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field

import pytest

from interlock.model.records import changed, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """A record."""

    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)

    @property
    def double(self) -> int:
        """A property lives on."""
        return self.a * 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """The same."""

    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """No field at all."""


def test_values_defaults_and_properties() -> None:
    made = Ours(a=2)
    assert (made.a, made.b, made.c, made.double) == (2, "x", [], 4)
    assert Ours(a=1).c is not Ours(a=1).c


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_wrong_arguments_are_refused(kind: type) -> None:
    for bad in ({}, {"a": 1, "d": 2}):
        with pytest.raises(TypeError):
            kind(**bad)
    with pytest.raises(TypeError):
        kind(1)


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_frozen_and_slotted(kind: type) -> None:
    made = kind(a=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.a
    assert not hasattr(made, "__dict__")


def test_equality_hash_and_text() -> None:
    assert Ours(a=1) == Ours(a=1)
    assert Ours(a=1) != Ours(a=2)
    assert Ours(a=1).__eq__(Theirs(a=1)) is NotImplemented
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert repr(Ours(a=1)) == repr(Theirs(a=1)).replace("Theirs", "Ours")
    with pytest.raises(TypeError):
        hash(Ours(a=1))


def test_the_standard_functions_know_it() -> None:
    assert dataclasses.is_dataclass(Ours)
    assert [one.name for one in dataclasses.fields(Ours)] == [one.name for one in dataclasses.fields(Theirs)]
    assert dataclasses.replace(Ours(a=1), b="y") == Ours(a=1, b="y")
    assert dataclasses.asdict(Ours(a=1)) == {"a": 1, "b": "x", "c": []}


def test_it_is_copied_and_pickled() -> None:
    made = Ours(a=1, c=[3])
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled:
    """A record that makes a field of another at its end."""

    a: int
    old: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "old", self.a * 2)


def test_a_changed_copy_is_what_replace_makes() -> None:
    first = Ours(a=1, c=[3])
    for changes in (
        {},
        {"a": 2},
        {"b": "y"},
        {"c": [4], "a": 5},
        {"a": 5, "c": [4]},
        {"a": 1, "b": "", "c": []},
    ):
        made = changed(first, **changes)  # type: ignore[arg-type]
        assert made == dataclasses.replace(first, **changes)  # type: ignore[arg-type]
        assert type(made) is Ours
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.a = 2  # type: ignore[misc]
    assert first == Ours(a=1, c=[3])
    assert changed(first, a=2).c is first.c
    assert changed(Doubled(a=1), a=4) == dataclasses.replace(Doubled(a=1), a=4) == Doubled(a=4)


def test_a_copy_is_changed_in_known_fields_of_a_record_alone() -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            changed(Ours(a=1), d=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        changed(Theirs(a=1), a=2)
    with pytest.raises(TypeError):
        changed(7, a=2)  # type: ignore[type-var]


def test_a_record_that_would_inherit_fields_is_refused() -> None:
    with pytest.raises(TypeError):

        @dataclass(frozen=True, slots=True, kw_only=True)
        class Sub(Ours):
            d: int


def test_other_options_are_the_standard_decorators() -> None:
    @dataclass(slots=True)
    class Plain:
        a: int = 1

    plain = Plain()
    plain.a = 2
    assert plain.a == 2
