"""OpenAI chat completions: one answer for the agent out of several."""

from __future__ import annotations

from interlock.boundary.lens.calls import items, record, text
from interlock.boundary.lens.wires import Answer, Document, added, index_of

_HEAD = ("id", "object", "created", "model", "system_fingerprint", "provider")
_PART = "\n\n"
"""What parts the text of a later answer from the one that was shown: both are one text to the agent."""


class ChatShown:
    """Knows the head of the first chunk, and what each choice was shown."""

    def __init__(self) -> None:
        self.before: Document = {}
        self.renamed: dict[str, str] = {}
        self._head: Document = {}
        self._roles: set[int] = set()
        self._texts: set[int] = set()
        self._ends: set[int] = set()
        self._parted: set[int] = set()
        self._counted = False

    def passed(self, document: Document, name: str) -> None:
        """Take a chunk as shown."""
        if not self._head:
            self._head = {key: document[key] for key in _HEAD if key in document}
        self._counted = self._counted or bool(document.get("usage"))
        for choice in map(record, items(document.get("choices"))):
            at, delta = index_of(choice.get("index")) or 0, record(choice.get("delta"))
            if delta.get("role"):
                self._roles.add(at)
            if delta.get("content"):
                self._texts.add(at)
            if choice.get("finish_reason"):
                self._ends.add(at)

    def turn(self, before: Document) -> None:
        """Begin another answer."""
        self.before = before
        self._parted = set(self._texts)

    def spliced(self, document: Document, name: str, answer: Answer) -> list[Document]:
        """Give a chunk the first one's head, drop a second role, part the texts, add usage up."""
        document = {**document, **self._head}
        if record(document.get("usage")):
            document["usage"] = added(self.before, document["usage"])
        choices = [self._choice(record(one)) for one in items(document.get("choices"))]
        if choices and not any(choices) and not document.get("usage"):
            return []
        document["choices"] = [one for one in choices if one]
        self.passed(document, name)
        return [document]

    def ending(self, text: str, usage: Document, answer: Answer, request: Document) -> list[Document | str]:
        """Return a text and the end, for each choice that has not ended."""
        head = {**_head(answer, request), "object": "chat.completion.chunk", **self._head}
        known = {0, *getattr(answer, "choices", ())} - self._ends
        out: list[Document | str] = []
        for at in sorted(known):
            role = {} if at in self._roles else {"role": "assistant"}
            said = (_PART if at in self._texts else "") + text
            for delta, reason in (({**role, "content": said}, None), ({}, "stop")):
                out.append({**head, "choices": [{"index": at, "delta": delta, "finish_reason": reason}]})
        asked = record(request.get("stream_options")).get("include_usage") is True
        if usage and (asked or self._counted):
            out.append({**head, "choices": [], "usage": usage})
        return [*out, "[DONE]"]

    def whole(self, document: Document) -> Document:
        """Add the usage up."""
        return {**document, "usage": added(self.before, record(document.get("usage")))}

    def whole_ending(self, text: str, usage: Document, answer: Answer, request: Document) -> Document:
        """Return an answer whose choices hold the text."""
        message = {"role": "assistant", "content": text}
        choices = [
            {"index": at, "message": message, "finish_reason": "stop"}
            for at in sorted({0, *getattr(answer, "choices", ())})
        ]
        return {**_head(answer, request), "object": "chat.completion", "choices": choices, "usage": usage}

    def _choice(self, choice: Document) -> Document:
        """Return a choice as it follows what was shown, `{}` for one that only begins."""
        at, delta = index_of(choice.get("index")) or 0, {**record(choice.get("delta"))}
        begins = bool(delta.get("role")) and at in self._roles
        if begins:
            del delta["role"]
        if begins and not any(delta.values()) and not choice.get("finish_reason"):
            return {}
        if delta.get("content") and at in self._parted and isinstance(delta["content"], str):
            delta["content"] = _PART + delta["content"]
            self._parted.discard(at)
        return {**choice, "delta": delta}


def _head(answer: Answer, request: Document) -> Document:
    start: Document = getattr(answer, "start", {})
    created = start.get("created")
    return {
        "id": text(start.get("id")) or "chatcmpl-ended",
        "created": created if isinstance(created, int) else 0,
        "model": answer.model or text(request.get("model")),
    }
