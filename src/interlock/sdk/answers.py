"""What a guarded function gave back, as the ledger records it and the policy learns from it."""

from __future__ import annotations

import sys
import traceback
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson

from interlock.model.records import dataclass
from interlock.model.requests import Outcome
from interlock.model.tools import ToolResult
from interlock.sdk.arguments import canonical, plain
from interlock.sdk.errors import ArgumentError

_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
MAX_TEXT = 500_000
"""Characters of an answer that are kept; of a longer one its digest alone."""
_REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """What a generator gave, to its end."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An answer in a framework's own wrapping. Takes: `says`, what of it the agent reads; `failed`, whether the tool
    says that it did nothing."""

    value: Any
    says: Any
    failed: bool = False


def handed(value: Any) -> Any:
    """Return an answer as the caller gets it."""
    if isinstance(value, Seen):
        return value.value
    return iter(value.items) if isinstance(value, Items) else value


def done(value: Any) -> ToolResult:
    """Return the result of a function that came back.

    Holds: an answer without a JSON form counts as one of which nothing is known, so it vouches for nothing.
    """
    if isinstance(value, Items):
        value = value.items
    elif isinstance(value, Seen):
        result = done(value.says)
        return replace(result, outcome=Outcome.FAILED) if value.failed else result
    if isinstance(value, str):
        return _result(str(value), structured=False)
    try:
        # Most answers are plain values: they are written as they are, and only the rest is looked at piece by piece.
        content = orjson.dumps(value, default=_as_plain, option=_OPTIONS)
    except TypeError:
        return _done_slowly(value)
    text = content.decode()
    return ToolResult(
        outcome=Outcome.DONE,
        text=text if len(text) <= MAX_TEXT else None,
        structured=True,
        size_bytes=len(content),
        digest=sha256(content).hexdigest(),
    )


def _as_plain(value: Any) -> Any:
    return plain(value, "the answer")


def _done_slowly(value: Any) -> ToolResult:
    try:
        text = canonical(plain(value, "the answer"))
    except ArgumentError as error:
        return ToolResult(
            outcome=Outcome.DONE, size_bytes=max(sys.getsizeof(value, 1), 1), detail=error.message
        )
    except UnicodeEncodeError:
        return ToolResult(
            outcome=Outcome.DONE,
            size_bytes=max(sys.getsizeof(value, 1), 1),
            detail="it holds half a character",
        )
    return _result(text, structured=True)


def failed(error: BaseException) -> ToolResult:
    """Return the result of a function that raised: what it says reaches the agent, so it counts as read."""
    said = "".join(traceback.format_exception_only(error)).strip()
    one = _result(said, structured=False, outcome=Outcome.FAILED)
    return ToolResult(
        outcome=one.outcome,
        text=one.text,
        size_bytes=one.size_bytes,
        digest=one.digest,
        detail=f"it raised {type(error).__name__}"[:_REASON_CHARACTERS],
    )


def unknown(detail: str) -> ToolResult:
    """Return the result of a function of which nobody knows what it did."""
    return ToolResult(outcome=Outcome.UNKNOWN, detail=detail[:_REASON_CHARACTERS])


def not_made(detail: str) -> ToolResult:
    """Return the result of a call that was released and could not be made."""
    return ToolResult(outcome=Outcome.FAILED, detail=detail[:_REASON_CHARACTERS])


def _result(text: str, *, structured: bool, outcome: Outcome = Outcome.DONE) -> ToolResult:
    try:
        content = text.encode()
    except UnicodeEncodeError:
        # The ledger takes no half characters: what it said stays out, and vouches for nothing.
        content = text.encode("utf-8", "surrogatepass")
        return ToolResult(outcome=outcome, size_bytes=len(content), digest=sha256(content).hexdigest())
    return ToolResult(
        outcome=outcome,
        text=text if len(text) <= MAX_TEXT else None,
        structured=structured,
        size_bytes=len(content),
        digest=sha256(content).hexdigest(),
    )
