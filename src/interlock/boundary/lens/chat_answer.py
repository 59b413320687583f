"""OpenAI chat completions: an answer read chunk by chunk, and told to the model again.

Source: OpenAI's documentation of chat completions; the shapes that servers of the same wire add to it.
"""

from __future__ import annotations

from typing import Any

from interlock.boundary.lens.calls import items, record, text
from interlock.boundary.lens.sheet import Entry, Sheet
from interlock.boundary.lens.wires import Document, Fate, Gathering, Told, count, index_of, present

_LEGACY = "function_call"
_READ = ("role", "content", "tool_calls", _LEGACY, "annotations", "audio", "name")
_ODD_CHOICE = "a choice without a right index"


class _Said:
    """What one choice says, calls left out."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.lists: dict[str, list[Any]] = {}

    def message(self) -> Document:
        content = "".join(self.texts.get("content", ())) or self.lists.get("content")
        extra: Document = {key: "".join(parts) for key, parts in self.texts.items() if key != "content"}
        extra |= {key: _merged(parts) for key, parts in self.lists.items() if key != "content"}
        return {"role": "assistant", "content": content or None, **extra}


class ChatAnswer:
    """An answer of one choice or more."""

    def __init__(self) -> None:
        self.sheet = Sheet()
        self.usage: Document = {}
        self.model = ""
        self.ended = False
        self.note = ""
        self.start: Document = {}
        self.choices: dict[int, _Said] = {}
        self._turns: dict[tuple[int, int], int] = {}
        self._kept = Gathering()
        self._last: Entry | None = None

    def take(self, document: Document, name: str) -> Fate:
        """Read a chunk, or the whole answer."""
        if not self.start:
            self.start = {key: value for key, value in document.items() if key not in ("choices", "usage")}
        self.model = self.model or text(document.get("model"))
        self.usage = record(document.get("usage")) or self.usage
        choices = items(document.get("choices"))
        if not choices and "usage" not in document:
            self.note = self.note or "an unknown event"
        for choice in map(record, choices):
            self._choice(choice)
        return Fate.PASS if self.sheet.is_empty else Fate.HOLD

    def end(self) -> None:
        """Take the mark of the end: no argument goes on after it."""
        self.ended = True
        for entry in self.sheet.entries.values():
            entry.ended = True

    def tokens(self) -> tuple[int, int]:
        """Return the tokens; those of the cache are among the prompt's."""
        return count(self.usage.get("prompt_tokens")), count(self.usage.get("completion_tokens"))

    def again(self, body: Document, told: Told) -> Document | None:
        """Return the request with the assistant's message and one message for each call's result."""
        messages, entries = items(body.get("messages")), list(self.sheet.entries.items())
        if self._kept.lost or self.sheet.strays or not messages or not entries or len(entries) != len(told):
            return None
        if len(self.choices) != 1:
            return None
        (said,) = self.choices.values()
        message, results = said.message(), []
        if any(key[1] == _LEGACY for key, _ in entries):  # type: ignore[index]
            if len(entries) > 1:
                return None
            entry = entries[0][1]
            message[_LEGACY] = {"name": entry.tool, "arguments": _argument(entry)}
            results = [{"role": "function", "name": entry.tool, "content": told[0][0]}]
        else:
            taken: set[str] = set()
            message["tool_calls"] = []
            for at, ((_, entry), (result, _refused)) in enumerate(zip(entries, told, strict=True)):
                call_id = entry.call_id
                if not call_id or call_id in taken:
                    call_id = f"call_again_{at}"
                taken.add(call_id)
                kind, field = ("custom", "input") if entry.raw else ("function", "arguments")
                call = {kind: {"name": entry.tool, field: _argument(entry)}}
                message["tool_calls"].append({**entry.extra, "id": call_id, "type": kind, **call})
                results.append({"role": "tool", "tool_call_id": call_id, "content": result})
        return {**body, "messages": [*messages, message, *results]}

    def _choice(self, choice: Document) -> None:
        streamed = bool(record(choice.get("delta")))
        index = index_of(choice.get("index")) if "index" in choice or streamed else 0
        message = record(choice.get("delta")) or record(choice.get("message"))
        number = 0 if index is None else index
        said = self.choices.setdefault(number, _Said())
        for key, value in message.items():
            self._part(said, key, value)
        calls, legacy = message.get("tool_calls"), message.get(_LEGACY)
        if isinstance(calls, list) and calls:
            self.sheet.read(calls)
            self.sheet.data(calls)
            for place, call in enumerate(calls):
                self._call(number, place, record(call), streamed=streamed)
        if isinstance(legacy, dict) and legacy:
            self.sheet.read(legacy)
            self.sheet.data(legacy)
            begun = self.sheet.begin((number, _LEGACY, 0))
            if begun is not None:
                self._filled(begun, {"function": legacy}, whole=not streamed)
        if index is None and not self.sheet.is_empty:
            self.sheet.stray(_ODD_CHOICE)
        if choice.get("finish_reason") or not streamed:
            self.ended = self.ended or bool(choice.get("finish_reason"))
            for where, entry in self.sheet.entries.items():
                if isinstance(where, tuple) and where[0] == number:
                    entry.ended = True

    def _call(self, number: int, place: int, call: Document, *, streamed: bool) -> None:
        index = index_of(call.get("index")) if call.get("index") is not None else None
        lacking = streamed and index is None
        if index is None:
            # Readers differ on what has no index in a stream: only a call that is whole by itself is one.
            index = 100_000 + len(self.sheet.entries) if lacking else 200_000 + place
        turn = self._turns.get((number, index), 0)
        known = self.sheet.entries.get((number, index, turn))
        call_id = call.get("id")
        if (
            known is not None
            and known.call_id
            and isinstance(call_id, str)
            and call_id not in ("", known.call_id)
        ):
            # Some servers give every call the same index: another id is another call, if both are whole.
            known.ended = known.alone = True
            turn += 1
            self._turns[(number, index)] = turn
        is_new = (number, index, turn) not in self.sheet.entries
        entry = self.sheet.begin((number, index, turn), raw="custom" in call and "function" not in call)
        if entry is None:
            return
        known_id = entry.call_id
        entry.alone = entry.alone or turn > 0
        if (
            streamed
            and (not is_new)
            and (self._last is not entry or record(call.get("function")).get("name"))
        ):
            entry.faulted("parts of calls that readers join in different ways")
        self._last = entry
        if entry.ended:
            entry.faulted("arguments after the call's end")
        self._filled(entry, call, whole=not streamed)
        if not entry.tool or (entry.call_id and not known_id and not is_new):
            entry.faulted("a call that is named after it began")
        entry.ended = entry.ended or lacking

    def _filled(self, entry: Entry, call: Document, *, whole: bool) -> None:
        function, custom = record(call.get("function")), record(call.get("custom"))
        if (function and custom) or call.get("type") not in (None, "", "function", "custom"):
            entry.faulted("a call of an unknown kind")
        if custom and not entry.raw:
            entry.faulted("a call of two kinds")
        entry.extra |= {
            key: value
            for key, value in call.items()
            if key not in ("index", "id", "type", "function", "custom")
        }
        self.sheet.named(entry, call_id=call.get("id"), tool=function.get("name") or custom.get("name"))
        given = custom.get("input") if custom else function.get("arguments")
        if whole or isinstance(given, dict):
            if given is not None:
                self.sheet.whole(entry, given)
        else:
            self.sheet.part(entry, given)

    def _part(self, said: _Said, key: str, value: Any) -> None:
        if value is None or key in _READ[2:] or key == "role":
            return
        if isinstance(value, str):
            if self._kept.takes(value):
                said.texts.setdefault(key, []).append(value)
        elif isinstance(value, list):
            if self._kept.takes(str(value)):
                said.lists.setdefault(key, []).extend(value)
        elif value not in ({}, False):
            self.note = self.note or "an unknown part of a message"


def _argument(entry: Entry) -> str:
    """Return a call's argument as the model wrote it, where it can be read; else an empty one."""
    value, fault = entry.argument()
    if fault:
        return "" if entry.raw else "{}"
    if entry.raw:
        return str(value)
    written = ["".join(entry.parts), *(one for one in entry.wholes if isinstance(one, str))]
    return next((one for one in written if one.strip()), None) or entry.held().arguments or "{}"


def _merged(parts: list[Any]) -> list[Any]:
    """Join the parts of one entry of a list (OpenRouter's `reasoning_details`), which have its index."""
    out: dict[object, Any] = {}
    for at, part in enumerate(parts):
        joins = isinstance(part, dict) and "index" in part
        key = f"{part['index']} {part.get('type')}" if joins else at
        known = out.get(key)
        if known is None:
            out[key] = present(part) if isinstance(part, dict) else part
            continue
        for field, value in part.items():
            if field in ("text", "summary", "data") and isinstance(value, str):
                known[field] = text(known.get(field)) + value
            elif value is not None:
                known[field] = value
    return list(out.values())
