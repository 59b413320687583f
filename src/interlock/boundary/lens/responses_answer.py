"""OpenAI responses: an answer read event by event, and told to the model again.

Source: OpenAI's documentation of responses, their streaming events, reasoning items and stored answers.
"""

from __future__ import annotations

import re
from typing import Any

from interlock.boundary.lens.calls import items, record, text
from interlock.boundary.lens.responses_items import (
    CALLS,
    as_input,
    asked_of,
    input_items,
    is_call,
    output_for,
    tool_of,
)
from interlock.boundary.lens.sheet import Entry, Sheet
from interlock.boundary.lens.wires import Document, Fate, Gathering, Told, count, index_of

_PARTS = {
    "response.function_call_arguments.delta": "delta",
    "response.custom_tool_call_input.delta": "delta",
}
_WHOLES = {
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_ABOUT_CALLS = re.compile(r"response\.(?:local_shell|shell|apply_patch|computer|tool_search)_call")
_ECHOES = ("tools", "tool_choice", "metadata", "instructions", "text", "prompt")
"""What a response repeats of its request: nobody looks for calls there."""
_KNOWN = re.compile(r"response\.|error$|keepalive$")
_TWICE = "a call that is told in two ways"


class _Place:
    """Where a call stands, by all names that a reader may know it by."""

    __slots__ = ("entry", "index", "item_id", "kind")

    def __init__(self, entry: Entry, *, item_id: str, index: int | None, kind: str) -> None:
        self.entry = entry
        self.item_id = item_id
        self.index = index
        self.kind = kind


class ResponsesAnswer:
    """An answer of items; one that is told several times (added, in parts, done, completed) is told alike."""

    def __init__(self) -> None:
        self.sheet = Sheet()
        self.usage: Document = {}
        self.model = ""
        self.ended = False
        self.note = ""
        self.start: Document = {}
        self._places: list[_Place] = []
        self._done: dict[int, Document] = {}
        self._output: list[Any] = []
        self._thinks = False
        self._kept = Gathering()

    def take(self, document: Document, name: str) -> Fate:
        """Read an event, or the whole answer."""
        kind = text(document.get("type")) or name
        if kind == "response.output_item.added" or kind in _ENDS:
            # Reasoning is worth nothing without the call that follows it, if one does: it goes the call's way.
            self._thinks = record(document.get("item")).get("type") == "reasoning"
        if kind == "response.output_item.added":
            self._item(record(document.get("item")), document.get("output_index"), done=False)
        elif kind == "response.output_item.done":
            self._item(record(document.get("item")), document.get("output_index"), done=True)
        elif kind in _PARTS or kind in _WHOLES:
            self._argument(kind, document)
        elif _ABOUT_CALLS.match(kind):
            self.sheet.read(document)
            if self._found(text(document.get("item_id")), document.get("output_index")) is None:
                self.sheet.stray("a part of no call that began")
        elif kind in _ENDS or document.get("object") == "response" or not kind:
            self._response(record(document.get("response")) or document, ends=True)
        elif "response" in document:
            self._response(record(document["response"]), ends=False)
        elif not _KNOWN.match(kind):
            self.note = self.note or "an unknown event"
        if not self.sheet.is_empty:
            return Fate.HOLD
        return Fate.WAIT if self._thinks else Fate.PASS

    def end(self) -> None:
        """Take the end."""
        self.ended = True

    def tokens(self) -> tuple[int, int]:
        """Return the tokens; those of the cache are among the prompt's."""
        return count(self.usage.get("input_tokens")), count(self.usage.get("output_tokens"))

    def again(self, body: Document, told: Told) -> Document | None:
        """Return the request with the answer's items and the results of its calls."""
        said = [item for _, item in sorted(self._done.items())] or [record(one) for one in self._output]
        calls = [item for item in said if is_call(item)]
        if self._kept.lost or self.sheet.strays or len(calls) != len(told) or len(calls) != len(self._places):
            return None
        taken: set[str] = set()
        results: list[Document] = []
        for at, (item, (result, refused)) in enumerate(zip(calls, told, strict=True)):
            call_id = text(item.get("call_id")) or text(item.get("id"))
            if call_id in taken or not call_id:
                item["call_id"] = f"call_again_{at}"
            taken.add(text(item.get("call_id")))
            made = output_for(item, result, refused=refused)
            if made is None:
                return None
            results.append(made)
        if body.get("conversation") is not None:  # the provider has added the answer to it
            return {**body, "input": results}
        given = input_items(body)
        if not given and body.get("previous_response_id") is None:
            return None
        stored = body.get("store") is not False
        kept = [made for item in said if (made := as_input(item, stored=stored)) is not None]
        return {**body, "input": [*given, *kept, *results]}

    def _response(self, response: Document, *, ends: bool) -> None:
        self.sheet.data(*(response.get(key) for key in _ECHOES))
        self.model = text(response.get("model")) or self.model
        self.usage = record(response.get("usage")) or self.usage
        self.start = {key: value for key, value in response.items() if key not in ("output", "usage")}
        if ends:
            self.ended = True
            self._output = [{**record(item)} for item in items(response.get("output"))]
            for at, item in enumerate(items(response.get("output"))):
                self._item(record(item), at, done=True, listed=True)

    def _item(self, item: Document, index: Any, *, done: bool, listed: bool = False) -> None:
        kind = text(item.get("type"))
        if kind in ("mcp_list_tools", "tool_search_output", "additional_tools"):
            self.sheet.data(item.get("tools"))
        at = index_of(index)
        if done and not listed and self._kept.takes(str(item)):
            self._done[len(self._done) if at is None else at] = {**item}
        if kind not in CALLS:
            return
        self.sheet.read(item)
        self.sheet.data(*(value for value in item.values() if isinstance(value, dict | list)))
        if not is_call(item):
            return
        place = self._placed(item, kind, None if listed else at, is_new=not (done or listed))
        if place is None:
            return
        entry = place.entry
        self.sheet.named(entry, call_id=text(item.get("call_id")) or text(item.get("id")), tool=tool_of(item))
        if place.kind != kind:
            entry.faulted(_TWICE)
        begun = item.get("input" if entry.raw else "arguments")
        if not done and begun not in (None, "", {}):  # what follows in parts is added to it
            self.sheet.part(entry, begun)
        if done:
            entry.ended = True
            given = asked_of(item)
            if given is None:
                entry.faulted("a call without arguments")
            else:
                self.sheet.whole(entry, given)

    def _placed(self, item: Document, kind: str, index: int | None, *, is_new: bool) -> _Place | None:
        """Return the place of a call, a new one where it has none yet."""
        item_id, call_id = text(item.get("id")), text(item.get("call_id"))
        known = next((one for one in self._places if item_id and one.item_id == item_id), None)
        if known is None and not is_new:
            known = next(
                (
                    one
                    for one in self._places
                    if call_id and one.entry.call_id == call_id and not (item_id and one.item_id)
                ),
                None,
            )
        if known is not None:
            if is_new or (index is not None and known.index is not None and index != known.index):
                known.entry.faulted(_TWICE)
            return known
        entry = self.sheet.begin(len(self.sheet.entries), raw=kind == "custom_tool_call")
        if entry is None:
            return None
        for other in self._places:
            if index is not None and other.index == index:
                other.entry.faulted(_TWICE)
                entry.faulted(_TWICE)
        place = _Place(entry, item_id=item_id, index=index, kind=kind)
        self._places.append(place)
        return place

    def _found(self, item_id: str, index: Any) -> _Place | None:
        """Return the place that an event names. Some readers go by the id, some by the index: both name one."""
        at = index_of(index)
        named = [
            one
            for one in self._places
            if (item_id and one.item_id == item_id) or (at is not None and one.index == at)
        ]
        for one in named:
            if len(named) > 1 or one.item_id != item_id or one.index != at:
                one.entry.faulted(_TWICE)
        return named[0] if named else None

    def _argument(self, kind: str, event: Document) -> None:
        self.sheet.read(event)
        place = self._found(text(event.get("item_id")), event.get("output_index"))
        if place is None:
            self.sheet.stray("arguments of no call that began")
            return
        entry = place.entry
        if entry.ended:
            entry.faulted("arguments after the call's end")
        if ("custom" in kind) != entry.raw:
            entry.faulted(_TWICE)
        if kind in _PARTS:
            self.sheet.part(entry, event.get("delta"))
        else:
            self.sheet.whole(entry, event.get(_WHOLES[kind]))
