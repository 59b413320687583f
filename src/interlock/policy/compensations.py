"""How a request is undone: another request to the same host, made of its own path and of the answer that it got.

The operator declares each; nothing is guessed. What the answer gives is one path segment, percent-encoded, or one
value of a JSON body: it can lengthen no path and add no field.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from interlock.model.records import dataclass
from interlock.model.requests import NetRequest, NetResponse, Outcome

LEAF = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*|[1-9])\}")
"""A place to fill: a leaf of the answer by its dotted path, or a segment of the request's own path by its number."""
SECRET = re.compile(r"\{secret\.([A-Za-z0-9][A-Za-z0-9._-]{0,63})\}")
"""In a header: the value of a bound secret."""
_MAX_LEAF = 512
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensation:
    """What undoes the requests to a place.

    Takes: `host`, a name, `*.name` or an IP literal; `port`, 0 for 80 and 443; `path`, a prefix or a glob;
    `undo_path`, with leaves in braces; `undo_headers`, whose values may name bound secrets; `undo_body`, fields of a
    JSON object, None for no body.
    """

    host: str
    method: str
    path: str
    undo_method: str
    undo_path: str
    port: int = 0
    undo_headers: tuple[tuple[str, str], ...] = ()
    undo_body: tuple[tuple[str, str | int | bool], ...] | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the names of the bound secrets that its headers want."""
        return tuple(dict.fromkeys(name for _, value in self.undo_headers for name in SECRET.findall(value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverse:
    """A request that undoes another, ready but for its secrets.

    Takes: `path`, percent-encoded; `body`, `b""` for none.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class CannotUndo(ValueError):
    """A request has no reverse; the text says why."""


def reverse_of(entry: Compensation, request: NetRequest, response: NetResponse | None) -> Reverse:
    """Return the request that undoes another one.

    Raises: CannotUndo, with the reason; it holds nothing of what was answered.
    """
    if response is None or response.outcome is not Outcome.DONE:
        raise CannotUndo("nobody knows whether it came")
    if not 200 <= response.status < 300:
        raise CannotUndo(f"it was answered {response.status}, so it may have done nothing")
    leaves = _Leaves(entry, request, response)
    path = LEAF.sub(lambda found: quote(leaves.text_of(found[1]), safe=""), entry.undo_path)
    body = b""
    if entry.undo_body is not None:
        fields = {name: leaves.value_of(value) for name, value in entry.undo_body}
        body = json.dumps(fields, separators=(",", ":")).encode()
    return Reverse(method=entry.undo_method, path=path, headers=entry.undo_headers, body=body)


class _Leaves:
    """What may fill the places of an entry."""

    def __init__(self, entry: Compensation, request: NetRequest, response: NetResponse) -> None:
        self._segments = _segments(entry.path, request.path)
        self._text = response.text
        self._answer: Any = None
        self._is_read = False

    def value_of(self, given: str | int | bool) -> str | int | bool:
        """Return a field's value; a text that is one place in braces is filled."""
        found = LEAF.fullmatch(given) if isinstance(given, str) else None
        return given if found is None else self._leaf(found[1])

    def text_of(self, name: str) -> str:
        """Return a leaf as the text of one path segment."""
        text = str(self._leaf(name))
        # a server may take these for another folder, encoded or not
        if text in (".", "..") or any(char in "/\\" for char in text):
            raise CannotUndo(f"`{{{name}}}` is no plain path segment")
        return text

    def _leaf(self, name: str) -> str | int:
        if name.isdigit():
            if int(name) > len(self._segments):
                raise CannotUndo(f"its path has no segment for `{{{name}}}`")
            leaf: Any = self._segments[int(name) - 1]
        else:
            leaf = self._read()
            for part in name.split("."):
                if not isinstance(leaf, Mapping) or part not in leaf:
                    raise CannotUndo(f"its answer has no `{name}`")
                leaf = leaf[part]
        if isinstance(leaf, int) and not isinstance(leaf, bool) and abs(leaf) < 1 << 64:
            return leaf
        if not isinstance(leaf, str) or not 0 < len(leaf) <= _MAX_LEAF or not leaf.isprintable():
            raise CannotUndo(f"`{{{name}}}` is neither a plain text nor a whole number")
        return leaf

    def _read(self) -> Any:
        if not self._is_read:
            if not self._text:
                raise CannotUndo("the text of its answer was not kept: it was empty, too long, or no text")
            try:
                self._answer = json.loads(self._text)
            except (ValueError, RecursionError):
                raise CannotUndo("its answer is not JSON") from None
            self._is_read = True
        return self._answer


def _segments(pattern: str, path: str) -> list[str]:
    """Return the segments of a path that stand where the pattern has a wild one."""
    found: list[str] = []
    for wild, segment in zip(pattern.split("/"), path.split("/"), strict=False):
        if _WILD.search(wild):
            try:
                found.append(unquote(segment, errors="strict"))
            except UnicodeDecodeError:
                found.append("")
    return found
