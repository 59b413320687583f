"""Gemini: an answer read chunk by chunk, and told to the model again.

Source: Google's documentation of generateContent, thinking and thought signatures.
"""

from __future__ import annotations

from typing import Any

from interlock.boundary.lens.calls import items, record, text
from interlock.boundary.lens.sheet import Sheet
from interlock.boundary.lens.wires import Document, Fate, Gathering, Told, count

_CALLS = ("functionCall", "function_call")
"""Both spellings of a field are one to readers of protocol buffers."""
_OF_PROVIDER = ("toolCall", "tool_call", "toolResponse", "tool_response")
_WITHOUT = frozenset(("usageMetadata", "promptFeedback", "error"))
_IN_PIECES = ("partialArgs", "partial_args", "willContinue", "will_continue")


class GeminiAnswer:
    """An answer of parts; each call is a whole part."""

    def __init__(self) -> None:
        self.sheet = Sheet()
        self.usage: Document = {}
        self.model = ""
        self.ended = False
        self.note = ""
        self.start: Document = {}
        self.wrapped = False
        self._parts: list[Document] = []
        self._several = False
        self._kept = Gathering()

    def take(self, document: Document, name: str) -> Fate:
        """Read a chunk, or the whole answer."""
        self.wrapped = "response" in document and "candidates" not in document
        answer = record(document.get("response")) if self.wrapped else document
        self.model = text(answer.get("modelVersion")) or self.model
        self.usage = record(answer.get("usageMetadata")) or self.usage
        if not self.start:
            self.start = {
                key: value for key, value in answer.items() if key in ("responseId", "modelVersion")
            }
        if "candidates" not in answer and not answer.keys() & _WITHOUT:
            self.note = self.note or "an unknown event"
        for at, candidate in enumerate(map(record, items(answer.get("candidates")))):
            self._several = self._several or at > 0 or candidate.get("index") not in (None, 0)
            for part in items(record(candidate.get("content")).get("parts")):
                self._part(record(part))
            self.ended = self.ended or bool(candidate.get("finishReason"))
        return Fate.PASS if self.sheet.is_empty else Fate.HOLD

    def end(self) -> None:
        """Take the end."""
        self.ended = True

    def tokens(self) -> tuple[int, int]:
        """Return the tokens; thoughts are part of the answer, what tools of the provider read of the prompt."""
        asked = count(self.usage.get("promptTokenCount")) + count(self.usage.get("toolUsePromptTokenCount"))
        return asked, count(self.usage.get("candidatesTokenCount")) + count(
            self.usage.get("thoughtsTokenCount")
        )

    def again(self, body: Document, told: Told) -> Document | None:
        """Return the request with the model's parts and the answers of its functions."""
        inner = body if "contents" in body else record(body.get("request"))
        contents = items(inner.get("contents"))
        calls = [record(part.get(key)) for part in self._parts for key in _CALLS if part.get(key)]
        whole = not (self._kept.lost or self._several or self.sheet.strays)
        if not (whole and contents and calls and len(calls) == len(told)):
            return None
        results = []
        for call, (result, refused) in zip(calls, told, strict=True):
            named = {key: call[key] for key in ("id", "name") if call.get(key)}
            results.append(
                {"functionResponse": {**named, "response": {"error" if refused else "output": result}}}
            )
        turns = [{"role": "model", "parts": self._parts}, {"role": "user", "parts": results}]
        asked = {**inner, "contents": [*contents, *turns]}
        return asked if inner is body else {**body, "request": asked}

    def _part(self, part: Document) -> None:
        said = part.get("text")
        if isinstance(said, str) and (len(part) == 1 or part.keys() == {"text", "thought"}):
            if said and self._kept.takes(said):
                self._parts.append(part)
            return
        for key in _OF_PROVIDER:  # its own tools, which it runs itself
            if isinstance(part.get(key), dict):
                self.sheet.read(part[key])
        calls = [part[key] for key in _CALLS if part.get(key)]
        if self._kept.takes(str(part)):
            self._parts.append(part)
        for call in calls:
            if isinstance(call, dict):
                self._call(call, several=len(calls) > 1)
            else:
                self.sheet.stray("a call in an unknown shape")

    def _call(self, call: Document, *, several: bool) -> None:
        self.sheet.read(call)
        self.sheet.data(call)
        entry = self.sheet.begin(len(self.sheet.entries))
        if entry is None:
            return
        entry.ended = True
        self.sheet.named(entry, call_id=call.get("id"), tool=call.get("name"))
        given: Any = call.get("args")
        if several:
            entry.faulted("a call that is told in two ways")
        if any(call.get(key) for key in _IN_PIECES):
            entry.faulted("arguments that come in pieces")
        if given is not None:
            self.sheet.whole(entry, given)
            if isinstance(given, str):
                entry.faulted("arguments that are no object")
