"""Events as node payloads and back: what replay and recovery read is what `step` was given.

The encoding is canonical: a field that has its default is left out, enums are their values, tuples are
lists. Decoding is strict, since it reads evidence: an unknown or missing field, or a value of another type,
is an error and never a guess.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache

from interlock.model import events as ev
from interlock.model.errors import IntegrityError

EVENT_NAMES: dict[type, str] = {
    ev.TaskGiven: "task-given",
    ev.BoundaryStood: "boundary-stood",
    ev.ActivityObserved: "activity-observed",
    ev.ActivityLost: "activity-lost",
    ev.LabelsKnown: "labels-known",
    ev.RequestMade: "request-made",
    ev.MessageMade: "message-made",
    ev.ToolCalled: "tool-called",
    ev.ToolReturned: "tool-returned",
    ev.ToolsListed: "tools-listed",
    ev.ExchangeRecorded: "exchange-recorded",
    ev.ActionsAnnounced: "actions-announced",
    ev.ResponseReceived: "response-received",
    ev.TrafficRefused: "traffic-refused",
    ev.CallDenied: "call-denied",
    ev.TurnTaken: "turn-taken",
    ev.StopReached: "stop-reached",
    ev.CommandExited: "command-exited",
    ev.ChangesListed: "changes-listed",
    ev.ModelAsked: "model-asked",
    ev.OracleAnswered: "oracle-answered",
    ev.IntentRecorded: "intent-recorded",
    ev.ScopeCommitted: "scope-committed",
    ev.CommitFailed: "commit-failed",
    ev.ScopeDiscarded: "scope-discarded",
    ev.Interrupted: "interrupted",
    ev.Resumed: "resumed",
    ev.ResolutionAsked: "resolution-asked",
    ev.ViewRestored: "view-restored",
    ev.GrantChanged: "grant-changed",
    ev.StuckSettled: "stuck-settled",
    ev.DiscardRequested: "discard-requested",
    ev.Faulted: "faulted",
}
_SCALARS = frozenset((str, int, bool, type(None)))
_EVENT_TYPES = {name: cls for cls, name in EVENT_NAMES.items()}


@cache
def _defaults(cls: type) -> tuple[tuple[str, object], ...]:
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls.__name__} is no ledger value")
    return tuple((f.name, f.default) for f in dataclasses.fields(cls))


def plain(value: object) -> object:
    """Return a model value as JSON values. Raises: TypeError for a type that the vocabulary does not hold."""
    kind: type = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, Enum):
        return value._value_
    if isinstance(value, tuple):
        return [item if type(item) in _SCALARS else plain(item) for item in value]
    record: dict[str, object] = {}
    for name, default in _defaults(kind):
        item = getattr(value, name)
        # Most fields of most events hold the very default.
        if item is default or (default is not dataclasses.MISSING and item == default):
            continue
        record[name] = item if type(item) in _SCALARS else plain(item)
    return record


def event_payload(event: ev.Event) -> dict[str, object]:
    """Return the payload of the event's node: its fields and, under `event`, its name."""
    payload = plain(event)
    assert isinstance(payload, dict)
    payload["event"] = EVENT_NAMES[type(event)]
    return payload


def event_from_payload(payload: Mapping[str, object]) -> ev.Event:
    """Read an event back.

    Raises: IntegrityError, naming the field, if the payload is not exactly one event.
    """
    name = payload.get("event")
    cls = _EVENT_TYPES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise IntegrityError("a node's payload names no known event")
    fields = {key: value for key, value in payload.items() if key != "event"}
    return typing.cast(ev.Event, _read_record(cls, fields, str(name)))


def is_event(payload: Mapping[str, object]) -> bool:
    """Tell whether a node's payload is an event, i.e. an input of the fold and not derived by it."""
    return "event" in payload


@cache
def _hints(cls: type) -> dict[str, typing.Any]:
    return typing.get_type_hints(cls)


def _read_record(cls: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise IntegrityError(f"{where}: a record is needed")
    hints = _hints(cls)
    if unknown := value.keys() - hints.keys():
        raise IntegrityError(f"{where}: unknown field `{min(unknown)}`")
    arguments = {}
    for name, default in _defaults(cls):
        if name in value:
            arguments[name] = _read(hints[name], value[name], f"{where}.{name}")
        elif default is dataclasses.MISSING:
            raise IntegrityError(f"{where}: field `{name}` is missing")
    return cls(**arguments)


def _read(hint: typing.Any, value: object, where: str) -> object:
    if hint in (str, int, bool):
        if type(value) is hint:
            return value
        raise IntegrityError(f"{where}: {hint.__name__} is needed")
    origin = typing.get_origin(hint)
    if origin is tuple:
        if not isinstance(value, list):
            raise IntegrityError(f"{where}: a list is needed")
        arguments = typing.get_args(hint)
        if arguments[-1] is Ellipsis:
            return tuple(_read(arguments[0], item, where) for item in value)
        if len(arguments) != len(value):
            raise IntegrityError(f"{where}: a list of {len(arguments)} is needed")
        return tuple(_read(arg, item, where) for arg, item in zip(arguments, value, strict=True))
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        (inner,) = (arg for arg in typing.get_args(hint) if arg is not type(None))
        return _read(inner, value, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            raise IntegrityError(f"{where}: not a known {hint.__name__}") from None
    return _read_record(hint, value, where)
