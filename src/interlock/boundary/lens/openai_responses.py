"""OpenAI responses: items of `output`, whole or as events; those that the agent itself runs."""

from typing import Any

from interlock.boundary.lens.calls import Gathered, items, record, text

_RUN_HERE = {
    "local_shell_call": ("local_shell", "action"),
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    "computer_call": ("computer", "action"),
}
"""Item types with a tool of their own: its name, and the field that holds what it is asked."""
_PARTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")


class ResponsesWire:
    """Reads calls from items; an item that comes again (`added`, `done`, `completed`) is one call."""

    def __init__(self) -> None:
        self.gathered = Gathered()

    def document(self, value: Any) -> None:
        """Take an answer, or an event of one."""
        event = record(value)
        kind = text(event.get("type"))
        if kind in _PARTS:
            self.gathered.more(text(event.get("item_id")), text(event.get("delta")))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(record(event.get("item")), done=kind.endswith("done"))
        else:
            answer = record(event.get("response")) or event
            for item in items(answer.get("output")):
                self._item(record(item), done=True)

    def _item(self, item: dict[str, Any], *, done: bool) -> None:
        kind = text(item.get("type"))
        call_id = text(item.get("call_id")) or text(item.get("id"))
        key = text(item.get("id")) or call_id
        if kind in ("function_call", "custom_tool_call"):
            space, name = text(item.get("namespace")), text(item.get("name"))
            self.gathered.begin(key, call_id=call_id, tool=f"{space}.{name}" if space and name else name)
            given = item.get("arguments" if kind == "function_call" else "input")
            if kind == "custom_tool_call":
                self.gathered.as_text(key)
            if done and given is not None:
                self.gathered.whole(key, given, raw=kind == "custom_tool_call")
        elif kind in _RUN_HERE:
            tool, field = _RUN_HERE[kind]
            self.gathered.begin(key, call_id=call_id, tool=tool)
            self.gathered.whole(key, item.get(field))


def results(body: dict[str, Any]) -> list[str]:
    """Return the ids of calls whose results a request brings."""
    return [
        text(one.get("call_id"))
        for one in map(record, items(body.get("input")))
        if text(one.get("type")).endswith("_output")
    ]
