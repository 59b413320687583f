"""Anthropic messages: `tool_use` blocks, whole or as events. What runs at the provider is no action of the agent's."""

from typing import Any

from interlock.boundary.lens.calls import Gathered, items, record, text


class MessagesWire:
    """Reads calls from content blocks."""

    def __init__(self) -> None:
        self.gathered = Gathered()

    def document(self, value: Any) -> None:
        """Take an answer, or an event of one."""
        event = record(value)
        kind = text(event.get("type"))
        number = event.get("index")
        index = number if isinstance(number, int) else 0
        if kind == "content_block_start":
            self._block(index, record(event.get("content_block")))
        elif kind == "content_block_delta":
            delta = record(event.get("delta"))
            if delta.get("type") == "input_json_delta":
                self.gathered.more(index, text(delta.get("partial_json")))
        else:
            for place, block in enumerate(items(event.get("content"))):
                self._block(place, record(block))

    def _block(self, index: int, block: dict[str, Any]) -> None:
        if block.get("type") != "tool_use":
            return
        self.gathered.begin(index, call_id=text(block.get("id")), tool=text(block.get("name")))
        if record(block.get("input")):  # an event's start holds an empty one, and its deltas the rest
            self.gathered.whole(index, block["input"])


def results(body: dict[str, Any]) -> list[str]:
    """Return the ids of calls whose results a request brings."""
    return [
        text(block.get("tool_use_id"))
        for one in map(record, items(body.get("messages")))
        for block in map(record, items(one.get("content")))
        if block.get("type") == "tool_result"
    ]
