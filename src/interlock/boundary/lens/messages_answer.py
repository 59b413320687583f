"""Anthropic messages: an answer read block by block, and told to the model again.

Source: Anthropic's documentation of messages, streaming, extended thinking and tool use.
"""

from __future__ import annotations

from typing import Any

from interlock.boundary.lens.calls import items, record, text
from interlock.boundary.lens.sheet import Entry, Sheet
from interlock.boundary.lens.suspicion import strict
from interlock.boundary.lens.wires import Document, Fate, Gathering, Told, count, index_of, present

_PARTS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "compaction_delta": "content",
}
"""Of each delta that adds to a text: the field, which its block has too."""
_KNOWN = ("message_start", "message_delta", "message_stop", "ping", "error", "message")
_ODD = "blocks in an odd order"


class _Block:
    __slots__ = ("fields", "json", "open", "start", "unknown")

    def __init__(self, start: Document) -> None:
        self.start = start
        self.fields: dict[str, list[str]] = {}
        self.json: list[str] = []
        self.open = True
        self.unknown = False

    def built(self) -> Document | None:
        """Return the block as a request holds it; an empty one for a text that is empty."""
        block = present(self.start)
        for field, parts in self.fields.items():
            block[field] = text(block.get(field)) + "".join(parts)
        if block.get("type") == "text" and not text(block.get("text")).strip():
            return {}
        if self.json and "".join(self.json).strip():
            value, fault = strict("".join(self.json))
            # What cannot be read is refused; the model is told so, beside a call that holds nothing.
            block["input"] = {} if fault or not isinstance(value, dict) else value
        return None if self.unknown else block


class MessagesAnswer:
    """An answer whose blocks are counted from 0 without a gap, as all readers count them."""

    def __init__(self) -> None:
        self.sheet = Sheet()
        self.usage: Document = {}
        self.model = ""
        self.ended = False
        self.note = ""
        self.start: Document = {}
        self._blocks: list[_Block] = []
        self._odd = False
        self._kept = Gathering()

    def take(self, document: Document, name: str) -> Fate:
        """Read an event, or the whole answer."""
        kind = text(document.get("type")) or name
        if kind == "content_block_delta":
            return self._delta(document)
        if kind == "content_block_start":
            return self._begin(document.get("index"), document.get("content_block"))
        if kind == "content_block_stop":
            return self._stop(document.get("index"))
        if kind == "message_start":
            self._message(record(document.get("message")))
        elif kind == "message_delta":
            self.usage = {**self.usage, **present(record(document.get("usage")))}
        elif kind == "message_stop":
            self.end()
        elif kind == "message" or (not kind and "content" in document):
            self._message(document)
            for at, block in enumerate(items(document.get("content"))):
                self._begin(at, block)
                self._stop(at)
            self.end()
        elif kind == "error":
            self.note = self.note or "the provider broke it off with an error"
        elif kind not in _KNOWN:
            self.note = self.note or "an unknown event"
        return Fate.PASS if self.sheet.is_empty else Fate.HOLD

    def end(self) -> None:
        """Take the end."""
        self.ended = True

    def tokens(self) -> tuple[int, int]:
        """Return the tokens, those that were read from or written to the cache included."""
        parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        return sum(count(self.usage.get(part)) for part in parts), count(self.usage.get("output_tokens"))

    def again(self, body: Document, told: Told) -> Document | None:
        """Return the request with two messages more: what the model said, and the results."""
        blocks = [block.built() for block in self._blocks]
        messages = items(body.get("messages"))
        if self._kept.lost or self._odd or self.sheet.strays or not messages or None in blocks:
            return None
        said = [block for block in blocks if block]
        calls = [block for block in said if block.get("type") == "tool_use"]
        if not calls or len(calls) != len(told):
            return None
        taken: set[str] = set()
        results: list[Document] = []
        for at, (block, (result, refused)) in enumerate(zip(calls, told, strict=True)):
            if not text(block.get("id")) or block["id"] in taken:
                block["id"] = f"toolu_again_{at}"
            block["input"] = record(block.get("input"))
            taken.add(block["id"])
            results.append(
                {"type": "tool_result", "tool_use_id": block["id"], "content": result, "is_error": refused}
            )
        last = record(messages[-1])
        if last.get("role") == "assistant":  # the answer went on with what stood there
            begun = last.get("content")
            begun = [{"type": "text", "text": begun}] if isinstance(begun, str) else items(begun)
            messages, said = messages[:-1], [*begun, *said]
        turns = [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
        return {**body, "messages": [*messages, *turns]}

    def _message(self, message: Document) -> None:
        self.start = {**message, "content": []}
        self.model = text(message.get("model"))
        self.usage = {**self.usage, **present(record(message.get("usage")))}

    def _begin(self, index: Any, block: Any) -> Fate:
        block = record(block)
        kind = block.get("type")
        if index_of(index) != len(self._blocks):
            self._misplaced()
        self._blocks.append(_Block({**block}))
        self._kept.takes(text(block.get("text")) + text(block.get("thinking")))
        if isinstance(kind, str) and (
            kind in ("server_tool_use", "mcp_tool_use") or kind.endswith("_tool_result")
        ):
            self.sheet.data(block.get("input"), block.get("content"))
        if kind == "tool_use":
            self.sheet.read(block)
            self.sheet.data(block.get("input"))
            entry = self.sheet.begin(len(self._blocks) - 1)
            if entry is not None:
                self.sheet.named(entry, call_id=block.get("id"), tool=block.get("name"))
                if self._odd:
                    entry.faulted(_ODD)
                if block.get("input") not in (None, {}, ""):  # a stream begins with an empty one
                    self.sheet.whole(entry, block["input"])
        return Fate.PASS if self.sheet.is_empty else Fate.HOLD

    def _delta(self, event: Document) -> Fate:
        at, delta = index_of(event.get("index")), record(event.get("delta"))
        kind = delta.get("type")
        block = self._blocks[at] if at is not None and at < len(self._blocks) else None
        if kind == "input_json_delta":
            self.sheet.read(delta)
            self._arguments(at, block, delta.get("partial_json"))
        elif block is None or not block.open:
            self._misplaced()
        elif isinstance(kind, str) and kind in _PARTS:
            said = text(delta.get(_PARTS[kind]))
            if self._kept.takes(said):
                block.fields.setdefault(_PARTS[kind], []).append(said)
        elif kind == "citations_delta":
            if self._kept.takes(str(delta.get("citation"))):
                block.start["citations"] = [*items(block.start.get("citations")), delta.get("citation")]
        else:
            block.unknown = True
            self.note = self.note or "an unknown delta"
        return Fate.PASS if self.sheet.is_empty else Fate.HOLD

    def _arguments(self, at: int | None, block: _Block | None, part: Any) -> None:
        entry = self.sheet.entries.get(at)
        if entry is not None and block is not None:
            if not block.open:
                entry.faulted("arguments after the call's end")
            self.sheet.part(entry, part)
            if isinstance(part, str) and self._kept.takes(part):
                block.json.append(part)
        elif (
            block is not None
            and block.open
            and block.start.get("type") in ("server_tool_use", "mcp_tool_use")
        ):
            if isinstance(part, str) and self._kept.takes(part):
                block.json.append(part)
        else:
            self.sheet.stray("arguments of no call that began")

    def _stop(self, index: Any) -> Fate:
        at = index_of(index)
        if at is None or at >= len(self._blocks) or not self._blocks[at].open:
            self._misplaced()
        else:
            self._blocks[at].open = False
            entry = self.sheet.entries.get(at)
            if entry is not None:
                entry.ended = True
        return Fate.PASS if self.sheet.is_empty else Fate.HOLD

    def _misplaced(self) -> None:
        """A block is not where all readers would look for it: no call of such an answer is sure."""
        self._odd = True
        self.note = self.note or _ODD
        entry: Entry
        for entry in self.sheet.entries.values():
            entry.faulted(_ODD)
