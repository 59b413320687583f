"""The calls of one answer, read so that no two readers read two things: what could be read in two ways is a fault."""

from __future__ import annotations

import json
from typing import Any

from interlock.boundary.lens.calls import CALLS, GATHERED_CHARS
from interlock.boundary.lens.suspicion import strict
from interlock.model.actions import HeldCall

_NAME_CHARS = 200
_CUT = "the answer ended before the call did"


class Entry:
    """One call under way.

    Takes: `raw`, whether its argument is plain text. Holds: where it is `alone`, some readers join it with another one
    that has the same place, which gives no JSON where neither is empty.
    """

    __slots__ = ("alone", "call_id", "ended", "extra", "fault", "parts", "raw", "tool", "wholes")

    def __init__(self, *, raw: bool) -> None:
        self.call_id = ""
        self.tool = ""
        self.raw = raw
        self.parts: list[str] = []
        self.wholes: list[Any] = []
        self.ended = False
        self.alone = False
        self.fault = ""
        self.extra: dict[str, Any] = {}

    def faulted(self, why: str) -> None:
        """Note why it cannot be read; the first reason stays."""
        self.fault = self.fault or why

    def argument(self) -> tuple[Any, str]:
        """Return its argument, and why it cannot be read."""
        found = [*(["".join(self.parts)] if self.parts else []), *self.wholes]
        if self.raw:
            if not self.ended or not found:
                return None, _CUT
            if any(one != found[0] or not isinstance(one, str) for one in found):
                return None, "arguments that are told in two ways"
            return found[0], ""
        values = []
        for one in found:
            value, fault = _object(one)
            if fault:
                return None, fault if self.ended else _CUT
            values.append(value)
        if self.alone and (len(values) != 1 or not any(one.strip() for one in found if isinstance(one, str))):
            return None, "a call that readers join with another one"
        if not self.ended and not any(values):
            return None, _CUT
        written = {_canonical(one) for one in values} or {"{}"}
        if len(written) > 1 or "" in written:
            return (
                None,
                "arguments that are told in two ways" if "" not in written else "arguments that are no text",
            )
        return (values or [{}])[0], ""

    def held(self) -> HeldCall:
        """Return it as it is to be judged."""
        value, fault = self.argument()
        said = "" if fault else _canonical(value)
        fault = self.fault or fault or ("" if said else "arguments that are no text")
        if not self.tool:
            fault = fault or "a call without a name"
        for name in (self.call_id, self.tool):
            if len(name) > _NAME_CHARS or not _is_text(name):
                fault = fault or "a name that is longer than is read, or no text"
        return HeldCall(
            call_id=_shown(self.call_id), tool=_shown(self.tool), arguments="" if fault else said, fault=fault
        )


class Sheet:
    """Gathers calls by the wire's own key, in the order in which they began; bounded.

    Holds: `seen` and `opaque` are of the document under way: the identities of the values that were read as calls, and
    of those that are data.
    """

    def __init__(self) -> None:
        self.entries: dict[object, Entry] = {}
        self.strays: list[str] = []
        self.seen: set[int] = set()
        self.opaque: set[int] = set()
        self._chars = 0

    @property
    def is_empty(self) -> bool:
        """Say whether no call has begun, nor anything that looks like one."""
        return not (self.entries or self.strays)

    def stray(self, why: str) -> None:
        """Note a call of which nothing can be read."""
        if why not in self.strays:
            self.strays.append(why)

    def read(self, *values: Any) -> None:
        """Say that these values were read as calls, or as parts of some."""
        self.seen.update(map(id, values))

    def data(self, *values: Any) -> None:
        """Say that these values are data: nobody looks for calls in them."""
        self.opaque.update(map(id, values))

    def begin(self, key: object, *, raw: bool = False) -> Entry | None:
        """Return a call, a new one where it has not begun; None, and a stray, past the bound."""
        entry = self.entries.get(key)
        if entry is None:
            if len(self.entries) >= CALLS:
                self.stray("more calls than are read")
                return None
            entry = self.entries[key] = Entry(raw=raw)
        return entry

    def named(self, entry: Entry, *, call_id: Any, tool: Any) -> None:
        """Take a call's id and name, which may be told again, but not otherwise."""
        for field, value in (("call_id", call_id), ("tool", tool)):
            if value is None or value == "":
                continue
            known = getattr(entry, field)
            if not isinstance(value, str) or (known and known != value):
                entry.faulted(f"a call whose {'id' if field == 'call_id' else 'name'} is told in two ways")
            else:
                setattr(entry, field, value)

    def part(self, entry: Entry, value: Any) -> None:
        """Take a part of a call's arguments as text."""
        if not isinstance(value, str):
            if value is not None:
                entry.faulted("arguments in an unknown shape")
        elif value and self._counts(entry, len(value)):
            entry.parts.append(value)

    def whole(self, entry: Entry, value: Any) -> None:
        """Take a call's whole arguments, an object or a text."""
        if isinstance(value, str):
            if self._counts(entry, len(value)):
                entry.wholes.append(value)
        elif isinstance(value, dict):
            said = _canonical(value)
            if self._counts(entry, len(said)):
                entry.wholes.append(value)
        else:
            entry.faulted("arguments in an unknown shape")

    def held(self) -> tuple[HeldCall, ...]:
        """Return all calls, those that cannot be read last."""
        return (
            *(entry.held() for entry in self.entries.values()),
            *(HeldCall(call_id="", tool="", fault=why) for why in self.strays),
        )

    def _counts(self, entry: Entry, chars: int) -> bool:
        self._chars += chars
        if self._chars > 2 * GATHERED_CHARS:  # a wire may tell all arguments twice or more
            entry.faulted("arguments larger than are read")
            return False
        return True


def _object(value: Any) -> tuple[Any, str]:
    if isinstance(value, str):
        if not value.strip():
            return {}, ""
        value, fault = strict(value)
        if fault:
            return None, f"arguments that are {fault}"
    return (value, "") if isinstance(value, dict) else (None, "arguments that are no object")


def _canonical(value: Any) -> str:
    """Write a value as canonical JSON text, `""` for one that has none."""
    try:
        said = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return ""
    return said if _is_text(said) else ""


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: str) -> str:
    return value[:_NAME_CHARS].encode("utf-8", "replace").decode("utf-8")
