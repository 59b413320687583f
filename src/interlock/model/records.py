"""Frozen, slotted, keyword-only dataclasses that cost a start little.

`interlock run` makes about a hundred of them before the command starts, and the standard decorator
compiles six functions for each, a large part of the time that a whole run may take (ADR-0007). This
one compiles `__init__` alone and shares the rest. To a type checker it is the standard one, and
`dataclasses.replace`, `fields` and `is_dataclass` work.

`changed` is `dataclasses.replace` at a fraction of its cost, for the steps that copy a large record at every request.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
    from dataclasses import replace as changed
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a record; for any other options than frozen, slots and kw_only, as the standard decorator."""
        if options != {"frozen": True, "slots": True, "kw_only": True}:
            return dataclasses.dataclass(cls, **options)
        return _record if cls is None else _record(cls)

    def changed(record: Any, /, **changes: object) -> Any:
        """Return a copy of a record with other values. Raises: TypeError, if it has no such field."""
        copier = _copiers.get(record.__class__)
        if copier is None:
            copier = _copiers[record.__class__] = _copier(record.__class__)
        return copier(record, changes)


__all__ = ["changed", "dataclass"]

_UNSET = object()
_assign = object.__setattr__
_copiers: dict[type, Any] = {}


def _record(cls: type) -> type:
    hints = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - inspect is slow to import
    if any(hasattr(base, "__dataclass_fields__") for base in cls.__mro__[1:]):
        raise TypeError(f"{cls.__name__}: a record inherits no fields")
    fields: dict[str, Any] = {}
    body = {key: value for key, value in cls.__dict__.items() if key not in ("__dict__", "__weakref__")}
    given: list[str] = []
    lines: list[str] = []
    scope: dict[str, Any] = {"_UNSET": _UNSET}
    for name, hint in hints.items():
        default = body.pop(name, dataclasses.MISSING)
        field: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
        field.name, field.type, field.kw_only = name, hint, True
        field._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
        fields[name] = field
        if field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            given.append(f"{name}=_UNSET")
            lines.append(f" _set_{name}(self, _make_{name}() if {name} is _UNSET else {name})")
            continue
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            given.append(f"{name}=_default_{name}")
        else:
            given.append(name)
        lines.append(f" _set_{name}(self, {name})")
    if "__post_init__" in body:
        lines.append(" self.__post_init__()")
    head = f"def __init__(self{', *, ' if given else ''}{', '.join(given)}):\n"
    exec(head + ("\n".join(lines) or " pass"), scope)  # noqa: S102 - names of fields alone
    values = attrgetter(*fields) if fields else _nothing
    body |= {
        "__slots__": tuple(fields),
        "__init__": scope["__init__"],
        "__dataclass_fields__": fields,
        "__match_args__": (),
        "__setattr__": _frozen_set,
        "__delattr__": _frozen_delete,
        "__getstate__": _state,
        "__setstate__": _restore,
        "__eq__": _equality(values),
        "__hash__": _hashing(values),
    }
    body.setdefault("__repr__", _shown)
    body["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    # A slot's own setter passes by the frozen one, and needs no search for the slot.
    scope |= {f"_set_{name}": made.__dict__[name].__set__ for name in fields}
    return made


def _nothing(_self: object) -> tuple[()]:
    return ()


def _equality(values: Any) -> Any:
    def __eq__(self: object, other: object) -> bool:
        if other.__class__ is self.__class__:
            return bool(values(self) == values(other))
        return NotImplemented

    return __eq__


def _hashing(values: Any) -> Any:
    def __hash__(self: object) -> int:
        return hash((self.__class__, values(self)))

    return __hash__


def _shown(self: Any) -> str:
    inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({inside})"


def _frozen_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _frozen_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, name) for name in self.__slots__]


def _restore(self: Any, state: list[object]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        _assign(self, name, value)


def _copier(cls: Any) -> Any:
    """Compile the copy of a record with other values: once a class, when it is first asked for."""
    if cls.__setattr__ is not _frozen_set:
        raise TypeError(f"{cls.__name__} is no record")
    # Of the same layout and not frozen: the interpreter stores a field of it without a call.
    opened = type(cls.__name__, cls.__bases__, {"__slots__": cls.__slots__})
    lines = ["def copy(old, changes):", " new = _new(_open)"]
    lines += [f" new.{name} = old.{name}" for name in cls.__slots__]
    lines += [" try:", "  for name, value in changes.items():", "   setattr(new, name, value)"]
    lines += [
        " except AttributeError:",
        "  raise TypeError(f'{_cls.__name__} has no field `{name}`') from None",
    ]
    lines += [" new.__class__ = _cls"]
    lines += [" new.__post_init__()"] if hasattr(cls, "__post_init__") else []
    scope: dict[str, Any] = {"_new": object.__new__, "_cls": cls, "_open": opened}
    exec("\n".join([*lines, " return new"]), scope)  # noqa: S102 - names of fields alone
    return scope["copy"]
