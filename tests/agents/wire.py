"""What the four wires have in common: an answer is one JSON object, or a stream of events."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.agents.script import Asked, Reply

from interlock.model.records import dataclass

_numbers = itertools.count(1)


@dataclass
class Event:
    """One event of a stream. Takes: `name`, "" where the wire names none."""

    data: Mapping[str, Any]
    name: str = ""

    def encoded(self) -> bytes:
        """Return the event as server-sent events spell it."""
        head = f"event: {self.name}\n" if self.name else ""
        return f"{head}data: {json.dumps(self.data)}\n\n".encode()


@dataclass
class Wire:
    """One way to speak with a model.

    Takes: `asked`, reads a request; `whole`, the answer as one object; `streamed`, the same as events; `end`, what
    follows the last event.
    """

    name: str
    asked: Callable[[Mapping[str, Any], str], Asked]
    whole: Callable[[Reply, Asked], Mapping[str, Any]]
    streamed: Callable[[Reply, Asked], Sequence[Event]]
    end: bytes = b""


def number(prefix: str) -> str:
    """Return an id that this server never gave before."""
    return f"{prefix}{next(_numbers):012x}"


def texts(content: Any) -> str:
    """Return the text of a message's content, be it a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )
