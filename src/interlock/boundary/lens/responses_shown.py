"""OpenAI responses: one answer for the agent out of several."""

from __future__ import annotations

from typing import Any

from interlock.boundary.lens.calls import items, record, text
from interlock.boundary.lens.responses_items import message_item
from interlock.boundary.lens.wires import Answer, Document, added, index_of

_BEGINNINGS = ("response.created", "response.in_progress", "response.queued")
_LAST = ("response.completed", "response.incomplete", "response.failed")


class ResponsesShown:
    """Counts events and items, and keeps the items that the agent was shown whole.

    All events have the id of the first answer, since clients check that it stays; the provider knows the whole under
    the id of the last one, which `renamed` tells.
    """

    def __init__(self) -> None:
        self.before: Document = {}
        self.renamed: dict[str, str] = {}
        self._id = ""
        self._started = False
        self._sequence = -1
        self._next = 0
        self._base = 0
        self._items: list[Any] = []
        self._earlier: list[Any] = []

    def passed(self, document: Document, name: str) -> None:
        """Take an event as shown."""
        kind = text(document.get("type")) or name
        self._started = self._started or kind == "response.created"
        self._id = self._id or text(record(document.get("response")).get("id"))
        number, at = index_of(document.get("sequence_number")), index_of(document.get("output_index"))
        self._sequence = self._sequence if number is None else max(self._sequence, number)
        self._next = self._next if at is None else max(self._next, at + 1)
        if kind == "response.output_item.done":
            self._items.append(document.get("item"))

    def turn(self, before: Document) -> None:
        """Begin another answer."""
        self.before = before
        self._base = self._next
        self._earlier = list(self._items)

    def spliced(self, document: Document, name: str, answer: Answer) -> list[Document]:
        """Drop a second beginning, number events and items on; the last event lists all items and adds usage up."""
        kind, at = text(document.get("type")) or name, index_of(document.get("output_index"))
        if kind in _BEGINNINGS and self._started:
            return []
        document = {**document}
        if at is not None:
            document["output_index"] = at + self._base
        if "sequence_number" in document:
            document["sequence_number"] = self._sequence + 1
        if kind in _LAST:
            document["response"] = self._joined(record(document.get("response")))
        self.passed(document, name)
        return [document]

    def ending(self, text: str, usage: Document, answer: Answer, request: Document) -> list[Document | str]:
        """Return a message item and the end."""
        response = _response(answer, usage, request)
        response["id"] = self._id or response["id"]
        item = message_item(f"msg_ended_{self._next}", text)
        begun = {**item, "status": "in_progress", "content": []}
        part = {"type": "output_text", "text": "", "annotations": []}
        at = {"output_index": self._next}
        place = {**at, "item_id": item["id"], "content_index": 0}
        out: list[Document] = []
        if not self._started:
            out.append({"type": "response.created", "response": {**response, "status": "in_progress"}})
        out += [
            {"type": "response.output_item.added", **at, "item": begun},
            {"type": "response.content_part.added", **place, "part": part},
            {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
            {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
            {"type": "response.content_part.done", **place, "part": {**part, "text": text}},
            {"type": "response.output_item.done", **at, "item": item},
            {"type": "response.completed", "response": {**response, "output": [*self._items, item]}},
        ]
        return [{**one, "sequence_number": self._sequence + 1 + number} for number, one in enumerate(out)]

    def whole(self, document: Document) -> Document:
        """Add the usage up."""
        return {**document, "usage": added(self.before, record(document.get("usage")))}

    def whole_ending(self, text: str, usage: Document, answer: Answer, request: Document) -> Document:
        """Return an answer with one message."""
        return {**_response(answer, usage, request), "output": [message_item("msg_ended_0", text)]}

    def _joined(self, response: Document) -> Document:
        usage = added(self.before, record(response.get("usage")))
        known, number = text(response.get("id")), self._id
        if number and known and number != known:
            self.renamed[number] = known
            response = {**response, "id": number}
        return {**response, "output": [*self._earlier, *items(response.get("output"))], "usage": usage}


def _response(answer: Answer, usage: Document, request: Document) -> Document:
    start: Document = getattr(answer, "start", {})
    made = {
        "id": "resp_ended",
        "object": "response",
        "created_at": 0,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "model": answer.model or text(request.get("model")),
        **start,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": [],
        "usage": usage or None,
    }
    made.pop("type", None)
    return made
