"""Events as payloads: what a plain reading of the rule gives, and back again."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model import events as ev
from interlock.monitor.codec import EVENT_NAMES, event_from_payload, event_payload, plain

LEAVES: dict[object, st.SearchStrategy[object]] = {
    str: st.sampled_from(["", "x", "y"]),
    int: st.sampled_from([0, 1, -1, 443]),
    bool: st.booleans(),
    type(None): st.none(),
}


def values(hint: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Return values of a field, defaults among them."""
    if hint in LEAVES:
        return LEAVES[hint]
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(values(arguments[0]), max_size=2).map(tuple)
        return st.tuples(*(values(one) for one in arguments))
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return st.one_of([values(one) for one in arguments])
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    return records(hint)


def records(cls: type) -> st.SearchStrategy[typing.Any]:
    hints = typing.get_type_hints(cls)
    given_fields: dict[str, st.SearchStrategy[typing.Any]] = {}
    for one in dataclasses.fields(cls):
        drawn = values(hints[one.name])
        left_out = one.default is dataclasses.MISSING
        given_fields[one.name] = drawn if left_out else st.just(one.default) | drawn
    return st.builds(cls, **given_fields)


def said_plainly(value: object) -> object:
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [said_plainly(item) for item in value]
    assert dataclasses.is_dataclass(value)
    return {
        one.name: said_plainly(getattr(value, one.name))
        for one in dataclasses.fields(value)
        if one.default is dataclasses.MISSING or getattr(value, one.name) != one.default
    }


@given(event=st.sampled_from(sorted(EVENT_NAMES, key=str)).flatmap(records))
def test_an_event_is_written_as_the_rule_says_and_read_back(event: ev.Event) -> None:
    payload = event_payload(event)
    assert payload == {
        **typing.cast(dict[str, object], said_plainly(event)),
        "event": EVENT_NAMES[type(event)],
    }
    assert event_from_payload(payload) == event


@pytest.mark.parametrize("value", [1.5, b"x", {"a": 1}, [1], object(), ev.FileRead, (1, 2.0)])
def test_what_the_vocabulary_does_not_hold_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="is no ledger value"):
        plain(value)
