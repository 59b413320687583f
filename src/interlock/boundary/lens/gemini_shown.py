"""Gemini: one stream for the agent out of several answers."""

from __future__ import annotations

from typing import Any

from interlock.boundary.lens.calls import items, record, text
from interlock.boundary.lens.wires import Answer, Document, added

_PART = "\n\n"


class GeminiShown:
    """Knows the id of the first chunk, and whether a text was shown."""

    def __init__(self) -> None:
        self.before: Document = {}
        self.renamed: dict[str, str] = {}
        self._id: Any = None
        self._text = False
        self._parted = False

    def passed(self, document: Document, name: str) -> None:
        """Take a chunk as shown."""
        answer = record(document.get("response")) or document
        self._id = self._id or answer.get("responseId")
        for candidate in map(record, items(answer.get("candidates"))):
            for part in map(record, items(record(candidate.get("content")).get("parts"))):
                self._text = self._text or bool(part.get("text") and not part.get("thought"))

    def turn(self, before: Document) -> None:
        """Begin another answer."""
        self.before = before
        self._parted = self._text

    def spliced(self, document: Document, name: str, answer: Answer) -> list[Document]:
        """Give a chunk the first one's id, part the texts, add usage up."""
        wrapped = record(document.get("response"))
        inner = {**(wrapped or document)}
        if self._id is not None and "responseId" in inner:
            inner["responseId"] = self._id
        if record(inner.get("usageMetadata")):
            inner["usageMetadata"] = added(self.before, inner["usageMetadata"])
        if self._parted:
            inner["candidates"] = [self._apart(one) for one in items(inner.get("candidates"))]
        document = {**document, "response": inner} if wrapped else inner
        self.passed(document, name)
        return [document]

    def ending(self, text: str, usage: Document, answer: Answer, request: Document) -> list[Document | str]:
        """Return a chunk with the text and the end."""
        return [_ended((_PART if self._text else "") + text, usage, answer, self._id)]

    def whole(self, document: Document) -> Document:
        """Add the usage up."""
        wrapped = record(document.get("response"))
        inner = {**(wrapped or document)}
        inner["usageMetadata"] = added(self.before, record(inner.get("usageMetadata")))
        return {**document, "response": inner} if wrapped else inner

    def whole_ending(self, text: str, usage: Document, answer: Answer, request: Document) -> Document:
        """Return an answer with the text alone."""
        return _ended(text, usage, answer, self._id)

    def _apart(self, candidate: Any) -> Any:
        content = record(record(candidate).get("content"))
        parts = [{**record(part)} for part in items(content.get("parts"))]
        for part in parts:
            if (
                self._parted
                and part.get("text")
                and isinstance(part["text"], str)
                and not part.get("thought")
            ):
                part["text"] = _PART + part["text"]
                self._parted = False
        return {**record(candidate), "content": {**content, "parts": parts}} if parts else candidate


def _ended(said: str, usage: Document, answer: Answer, known: Any) -> Document:
    start: Document = getattr(answer, "start", {})
    content = {"role": "model", "parts": [{"text": said}]}
    made: Document = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
    if usage:
        made["usageMetadata"] = usage
    if answer.model:
        made["modelVersion"] = answer.model
    if known or text(start.get("responseId")):
        made["responseId"] = known or start["responseId"]
    return {"response": made} if getattr(answer, "wrapped", False) else made
