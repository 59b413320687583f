"""Values of Python as the ledger and the policy read them: plain JSON values, or a clear no.

Holds: what has no JSON form is never guessed at. A call with such an argument is not made.
"""

from __future__ import annotations

import base64
import dataclasses
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from interlock.sdk.errors import ArgumentError
from interlock.sdk.placeholder import Placeholder

MAX_DEPTH = 30
MAX_LENGTH = 2_000_000
"""Characters of a call's arguments."""
_ATOMS = frozenset((str, int, bool, type(None)))
_AS_TEXT = ("datetime.date", "datetime.datetime", "datetime.time", "uuid.UUID", "decimal.Decimal")

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical(value: object) -> str:
    """Return plain values as the one JSON text: keys sorted, no white space, no needless escapes.

    Raises: UnicodeEncodeError, for half a character.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        # A number that takes more than 64 bits, or half a character.
        text = _encode(value)
        text.encode()
        return text


class Signature:
    """The parameters of a guarded function.

    Takes: `without`, parameters that are the program's own, which no agent chooses.
    Raises: ArgumentError, if one of these is no parameter.
    """

    def __init__(self, function: Callable[..., Any], without: Iterable[str]) -> None:
        self._name = getattr(function, "__name__", type(function).__name__)
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None  # some built-in functions tell no signature: named arguments alone then
        parameters = list(self._signature.parameters.values()) if self._signature is not None else []
        kinds = inspect.Parameter
        self._plain = tuple(one.name for one in parameters if one.kind is kinds.POSITIONAL_OR_KEYWORD)
        self._simple = bool(parameters) and all(
            one.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY) for one in parameters
        )
        self.names = tuple(one.name for one in parameters)
        self._all = frozenset(self.names)
        self._required = frozenset(one.name for one in parameters if one.default is kinds.empty)
        self.is_open = not parameters or any(one.kind is kinds.VAR_KEYWORD for one in parameters)
        self._spread = next((one.name for one in parameters if one.kind is kinds.VAR_KEYWORD), "")
        own = [*without]
        if self.names and self.names[0] in ("self", "cls") and _is_method(function):
            own.append(self.names[0])
        for name in own:
            if name not in self.names and not self.is_open:
                raise ArgumentError(f"`{self._name}` has no parameter `{name}`", hint=_near(name, self.names))
        self._without = frozenset(own)
        self.declarable = tuple(name for name in self.names if name not in self._without)

    def check(self, names: Iterable[str], what: str) -> None:
        """Check that a declaration names parameters. Raises: ArgumentError."""
        for name in names:
            bare = name.partition("[")[0].partition(".")[0]
            if bare not in self.declarable and not self.is_open:
                raise ArgumentError(
                    f"`{self._name}` has no parameter `{bare}`, which `{what}` names",
                    hint=_near(bare, self.declarable),
                )

    def named(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments that were given, by name.

        Raises: TypeError, as the function itself would.
        """
        if self._simple and len(args) <= len(self._plain):
            found = dict(zip(self._plain, args, strict=False))
            if not kwargs or (self._all.issuperset(kwargs) and found.keys().isdisjoint(kwargs)):
                found.update(kwargs)
                if self._required.issubset(found):
                    return self._chosen(found)
        if self._signature is None:
            if args:
                raise ArgumentError(
                    f"`{self._name}` tells no signature, so its arguments have no names",
                    hint="call it with named arguments, or guard a function of your own that calls it",
                )
            return self._chosen(dict(kwargs))
        bound = dict(self._signature.bind(*args, **kwargs).arguments)
        spread = bound.pop(self._spread, None) if self._spread else None
        if isinstance(spread, dict):
            bound.update(spread)
        return self._chosen(bound)

    def _chosen(self, found: dict[str, object]) -> dict[str, object]:
        for name in self._without:
            found.pop(name, None)
        return found


def _is_method(function: Callable[..., Any]) -> bool:
    outer, dot, _name = getattr(function, "__qualname__", "").rpartition(".")
    return bool(dot) and not outer.endswith("<locals>")


def _near(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    listed = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
    return f"did you mean `{close[0]}`? {listed}" if close else listed


def call_text(tool: str, named: Mapping[str, object]) -> str:
    """Return a call's arguments as canonical text.

    Raises: ArgumentError, where one has no JSON form.
    """
    values = {}
    for name, value in named.items():
        values[name] = value if type(value) in _ATOMS else plain(value, f"the argument `{name}` of `{tool}`")
    try:
        text = canonical(values)
    except UnicodeEncodeError:
        raise ArgumentError(
            f"the arguments of `{tool}` hold half a character (a lone surrogate)",
            hint="decode them with errors='replace' first",
        ) from None
    if len(text) > MAX_LENGTH:
        raise ArgumentError(
            f"the arguments of `{tool}` are longer than {MAX_LENGTH:,} characters",
            hint="hand on a file's name in place of its content",
        )
    return text


def plain(value: Any, what: str, depth: int = 0) -> Any:
    """Return a value as JSON values alone.

    Takes: `what` it is, for the message.
    Raises: ArgumentError, where it has no such form.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if depth > MAX_DEPTH:
        raise ArgumentError(f"{what} is nested too deeply, or holds itself", hint="hand on a flat value")
    if kind is float:
        if math.isfinite(value):
            return value
        raise ArgumentError(f"{what} is no number that JSON has", hint="give a finite number, or None")
    if isinstance(value, dict):
        return _object(value, what, depth)
    if isinstance(value, list | tuple):
        return [plain(one, what, depth + 1) for one in value]
    if isinstance(value, Placeholder):
        return value.token
    return _other(value, what, depth)


def _object(value: Mapping[Any, Any], what: str, depth: int) -> dict[str, Any]:
    found = {}
    for key, one in value.items():
        if not isinstance(key, str):
            raise ArgumentError(
                f"{what} has a key of type {type(key).__name__}", hint="use text keys, as JSON does"
            )
        found[str(key)] = plain(one, what, depth + 1)
    return found


def _other(value: Any, what: str, depth: int) -> Any:
    import enum
    import pathlib

    if isinstance(value, enum.Enum):
        return plain(value.value, what, depth + 1)
    if isinstance(value, bool | int | float | str):  # a subclass of one of them
        base = next(one for one in (str, int, float) if isinstance(value, one))
        return plain(base(value), what, depth + 1)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    if isinstance(value, pathlib.PurePath) or _named(type(value)) in _AS_TEXT:
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted((plain(one, what, depth + 1) for one in value), key=canonical)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump(mode="json"), what, depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return plain(fields, what, depth + 1)
    raise ArgumentError(
        f"{what} is a `{_named(type(value))}`, which has no JSON form",
        hint="give plain values; if it is the program's own and no agent chooses it: guard(…, without=[NAME])",
    )


def _bytes(value: bytes) -> object:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def _named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
