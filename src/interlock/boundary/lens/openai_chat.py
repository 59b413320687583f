"""OpenAI chat completions: `tool_calls` of a message, or its deltas."""

from typing import Any

from interlock.boundary.lens.calls import Gathered, items, record, text


class ChatWire:
    """Reads calls from `choices`."""

    def __init__(self) -> None:
        self.gathered = Gathered()
        self._places: dict[tuple[object, object], int] = {}

    def document(self, value: Any) -> None:
        """Take an answer, or a chunk of one."""
        for choice in map(record, items(record(value).get("choices"))):
            number = choice.get("index") if isinstance(choice.get("index"), int) else 0
            message = record(choice.get("delta")) or record(choice.get("message"))
            for place, call in enumerate(map(record, items(message.get("tool_calls")))):
                index = call.get("index") if isinstance(call.get("index"), int) else place
                self._call(number, index, call)
            if legacy := record(message.get("function_call")):
                self._call(number, "function_call", {"function": legacy})

    def _call(self, choice: object, index: object, call: dict[str, Any]) -> None:
        function, custom = record(call.get("function")), record(call.get("custom"))
        call_id, tool = text(call.get("id")), text(function.get("name")) or text(custom.get("name"))
        turn = self._places.get((choice, index), 0)
        known = self.gathered.id_of((choice, index, turn))
        if call_id and known and call_id != known:
            # Some servers give every call the same index: another id is another call.
            turn += 1
            if len(self._places) < 1000 or (choice, index) in self._places:
                self._places[(choice, index)] = turn
        key = (choice, index, turn)
        self.gathered.begin(key, call_id=call_id, tool=tool)
        given = function.get("arguments")
        if isinstance(given, dict):
            self.gathered.whole(key, given)
        self.gathered.more(key, text(given))
        if custom:
            self.gathered.as_text(key)
            self.gathered.more(key, text(custom.get("input")))


def results(body: dict[str, Any]) -> list[str]:
    """Return the ids of calls whose results a request brings."""
    return [
        text(one.get("tool_call_id"))
        for one in map(record, items(body.get("messages")))
        if one.get("role") == "tool"
    ]
