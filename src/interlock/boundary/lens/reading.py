"""One small interface over the wires: bytes of an answer in, announced calls out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from interlock.boundary.lens import anthropic_messages, gemini, openai_chat, openai_responses
from interlock.boundary.lens.calls import Gathered, loads, record
from interlock.boundary.lens.framing import Documents
from interlock.model.actions import AnnouncedCall
from interlock.model.records import dataclass


class _Wire(Protocol):
    gathered: Gathered

    def document(self, value: Any) -> None: ...


_WIRES: dict[str, tuple[Callable[[], _Wire], Callable[[dict[str, Any]], list[str]]]] = {
    "openai-chat": (openai_chat.ChatWire, openai_chat.results),
    "openai-responses": (openai_responses.ResponsesWire, openai_responses.results),
    "anthropic": (anthropic_messages.MessagesWire, anthropic_messages.results),
    "gemini": (gemini.GeminiWire, gemini.results),
}
_ENDS = (
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("/messages", "anthropic"),
    (":rawPredict", "anthropic"),
    (":streamRawPredict", "anthropic"),
    (":generateContent", "gemini"),
    (":streamGenerateContent", "gemini"),
)


_LATER = re.compile(r"/responses/(?!(?:compact|input_tokens)/?$)[^/]+(?:/cancel)?")
"""An answer that is kept, under its id: fetched later, or given up while it is made."""


def wire_of(path: str) -> str:
    """Return the name of the wire that an inference path speaks, `""` for one that is not read."""
    path = path.rstrip("/")
    found = next((wire for end, wire in _ENDS if path.endswith(end)), "")
    return "openai-responses" if not found and is_fetched(path) else found


def is_fetched(path: str) -> bool:
    """Say whether a path is that of an answer which was asked for before."""
    at = path.rfind("/responses/")
    return at >= 0 and _LATER.fullmatch(path.rstrip("/"), at) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an answer announced. Takes: `note`, why it is not all of it, `""` where it is."""

    calls: tuple[AnnouncedCall, ...]
    note: str = ""


class AnswerReader:
    """Reads one answer of a provider as it streams (decompressed).

    Takes: `wire`, as `wire_of` names it.
    Holds: any cut into chunks gives the same reading; no bytes raise; memory stays within the bounds of `framing` and
    `calls`.
    """

    def __init__(self, wire: str) -> None:
        self._wire = _WIRES[wire][0]()
        self._documents = Documents()

    def feed(self, chunk: bytes) -> None:
        """Take a part of the answer."""
        for value in self._documents.feed(chunk):
            self._wire.document(value)

    def finish(self) -> Reading:
        """Return what the answer announced until its end."""
        for value in self._documents.finish():
            self._wire.document(value)
        gathered = self._wire.gathered
        return Reading(calls=gathered.calls(), note=self._documents.broken or gathered.note)


def results_in(wire: str, body: str) -> tuple[str, ...]:
    """Return the ids of the calls whose results a request's body brings, history included, each once."""
    return tuple(dict.fromkeys(_WIRES[wire][1](record(loads(body)))))
