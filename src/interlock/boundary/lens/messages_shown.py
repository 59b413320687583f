"""Anthropic messages: one message for the agent out of several answers."""

from __future__ import annotations

from typing import Any

from interlock.boundary.lens.calls import record, text
from interlock.boundary.lens.wires import Answer, Document, added, index_of


class MessagesShown:
    """Counts the blocks that the agent was shown; those of a later answer are numbered after them."""

    def __init__(self) -> None:
        self.before: Document = {}
        self.renamed: dict[str, str] = {}
        self._started = False
        self._next = 0
        self._base = 0
        self._open: list[int] = []

    def passed(self, document: Document, name: str) -> None:
        """Take an event as shown."""
        kind, at = text(document.get("type")) or name, index_of(document.get("index"))
        if kind == "message_start":
            self._started = True
        elif kind == "content_block_start" and at is not None:
            self._next = max(self._next, at + 1)
            self._open.append(at)
        elif kind == "content_block_stop" and at in self._open:
            self._open.remove(at)

    def turn(self, before: Document) -> None:
        """Begin another answer: its blocks follow those that were shown."""
        self.before = before
        self._base = self._next

    def spliced(self, document: Document, name: str, answer: Answer) -> list[Document]:
        """Drop a second start, number blocks on, add usage up."""
        kind, at = text(document.get("type")) or name, index_of(document.get("index"))
        if kind == "message_start":
            if self._started:
                return []
        elif kind == "message_delta":
            document = {**document, "usage": added(self.before, answer.usage)}
        elif kind.startswith("content_block_") and at is not None:
            document = {**document, "index": at + self._base}
        out = [*(self._closing() if kind == "content_block_start" else []), document]
        self.passed(document, name)
        return out

    def ending(self, text: str, usage: Document, answer: Answer, request: Document) -> list[Document | str]:
        """Return a text block and the message's end."""
        out: list[Document | str] = []
        if not self._started:
            out.append({"type": "message_start", "message": _message(answer, usage, request)})
        out += self._closing()
        block = {"index": self._next}
        reason = {"stop_reason": "end_turn", "stop_sequence": None}
        return [
            *out,
            {"type": "content_block_start", **block, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", **block, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", **block},
            {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 0, **usage}},
            {"type": "message_stop"},
        ]

    def whole(self, document: Document) -> Document:
        """Add the usage up."""
        return {**document, "usage": added(self.before, record(document.get("usage")))}

    def whole_ending(self, text: str, usage: Document, answer: Answer, request: Document) -> Document:
        """Return a message with one text block."""
        message = _message(answer, usage, request)
        return {**message, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}

    def _closing(self) -> list[Any]:
        closed, self._open = self._open, []
        return [{"type": "content_block_stop", "index": at} for at in closed]


def _message(answer: Answer, usage: Document, request: Document) -> Document:
    start: Document = getattr(answer, "start", {})
    return {
        "id": text(start.get("id")) or "msg_ended",
        "type": "message",
        "role": "assistant",
        "model": answer.model or text(request.get("model")),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0, **usage},
    }
