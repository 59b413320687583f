"""A JSON object of the control protocol, read field by field: unknown, missing and ill-typed ones are refused."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.model.errors import InputError


class Fields:
    """A JSON object that is read field by field, each once; `end` refuses what is left.

    Takes: `where`, what the object is, for messages.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise InputError(f"{where}: a JSON object is needed")
        self._left: dict[str, object] = dict(value)
        self._where = where

    def take(self, name: str) -> object:
        """Return a field of any type. Raises: InputError, if it is missing."""
        if name not in self._left:
            raise InputError(f"{self._where}: the field `{name}` is missing")
        return self._left.pop(name)

    def optional(self, name: str) -> object:
        """Return a field of any type, None where it is left out."""
        return self._left.pop(name, None)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; one that cannot be written as UTF-8 is none."""
        if default is not None and name not in self._left:
            return default
        return text_of(self.take(name), f"{self._where}: `{name}`")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty where it is left out."""
        return tuple(text_of(item, f"{self._where}: `{name}`") for item in self.items(name))

    def items(self, name: str) -> list[object]:
        """Return a list, empty where it is left out."""
        value = self._left.pop(name, [])
        if not isinstance(value, list):
            raise InputError(f"{self._where}: `{name}` must be a list")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean, False where it is left out."""
        value = self._left.pop(name, False)
        if not isinstance(value, bool):
            raise InputError(f"{self._where}: `{name}` must be true or false")
        return value

    def count(self, name: str, default: int | None = None) -> int:
        """Return a whole number that is not negative."""
        value = self._left.pop(name, default) if default is not None else self.take(name)
        return count_of(value, f"{self._where}: `{name}`")

    def first_of(self, *names: str) -> str:
        """Return which of these fields there is, the last where there is none."""
        return next((name for name in names if name in self._left), names[-1])

    def rest(self) -> Mapping[str, object]:
        """Return all that was not read."""
        rest, self._left = self._left, {}
        return rest

    def end(self) -> None:
        """Refuse what was not read."""
        if self._left:
            raise InputError(f"{self._where}: there is no field `{min(self._left)}`")


def text_of(value: object, where: str) -> str:
    """Return a text that can be written as UTF-8. Raises: InputError."""
    if not isinstance(value, str):
        raise InputError(f"{where} must be text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} is no text that can be recorded") from None
    return value


def count_of(value: object, where: str) -> int:
    """Return a whole number that is not negative. Raises: InputError."""
    if type(value) is not int or not 0 <= value < 2**53:
        raise InputError(f"{where} must be a whole number")
    return value
