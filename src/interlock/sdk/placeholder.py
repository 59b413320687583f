"""What a call gives that was not made yet: its token may be handed on, and its value may not be used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from interlock.sdk.errors import NoAttributeYet, NotMadeYet

if TYPE_CHECKING:
    from interlock.sdk.scope import Scope

_NEEDS_VALUE = (
    "bool iter len getitem setitem delitem contains int float index complex call next enter exit "
    "aenter aexit aiter anext add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow "
    "and rand or ror xor rxor neg pos abs invert lt le gt ge bytes round reversed"
)


class Placeholder:
    """A call that waits until its scope is resolved (KAIROS, speculation).

    Takes: `token`, by which it is known again in the arguments of another guarded call; `str()` gives it.
    Holds: `value()` has it resolved now; whatever else needs the value raises `NotMadeYet`.
    """

    __slots__ = ("_scope", "effect_id", "token", "tool")

    def __init__(self, scope: Scope, *, tool: str, effect_id: str, token: str) -> None:
        self._scope = scope
        self.tool = tool
        self.effect_id = effect_id
        self.token = token

    @property
    def state(self) -> str:
        """Return `waiting`, `made`, `failed` or `dropped`."""
        return self._scope.fate_of(self.effect_id)

    def value(self) -> Any:
        """Have the call resolved now, with all that waited before it, and return its answer.

        Raises: Refused, where it was not released; what the function raised, where it did.
        """
        return self._scope.value_of(self)

    async def avalue(self) -> Any:
        """Do the same in a coroutine."""
        return await self._scope.avalue_of(self)

    def as_json(self) -> dict[str, object]:
        """Return it as JSON values, as an agent reads it."""
        return {
            "interlock": "placeholder",
            "detail": "this call has not been made; it waits until the held actions are reviewed at the task's end, "
            "and is then made or dropped; go on without its answer",
            "effect_id": self.effect_id,
            "placeholder": self.token,
        }

    def told(self) -> str:
        """Return what an agent reads in place of the answer."""
        return json.dumps(self.as_json(), ensure_ascii=False)

    def __str__(self) -> str:
        return self.token

    def __repr__(self) -> str:
        return f"<Placeholder {self.tool} {self.effect_id}: {self.token}>"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Placeholder):
            return self is other
        raise self._not_yet("==")

    def __getattr__(self, name: str) -> NoReturn:
        # What Python and its tools look for (copying, pickling) is simply not there.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise NoAttributeYet(*self._not_yet(f".{name}").args, hint=_HINT)

    def _not_yet(self, what: str) -> NotMadeYet:
        return NotMadeYet(
            f"`{self.tool}` ({self.effect_id}) was not made yet, and `{what}` needs its answer", hint=_HINT
        )


_HINT = (
    "hand the placeholder on to another guarded call, or have it resolved now: placeholder.value(), "
    "or await placeholder.avalue()"
)


def _needing(name: str) -> Any:
    def operation(self: Placeholder, *_arguments: object, **_named: object) -> NoReturn:
        raise self._not_yet(name)

    operation.__name__ = f"__{name}__"
    return operation


for _name in _NEEDS_VALUE.split():
    setattr(Placeholder, f"__{_name}__", _needing(_name))
