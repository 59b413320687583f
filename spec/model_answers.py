"""Model answers in plain lines: which tool calls somebody could read out of bytes, however carelessly.

As `spec/decision.py`: slow, imports nothing of `src`. A call is (tool, arguments): canonical JSON text where the
arguments are JSON, else the text as it stands. All readers that we know of are played, the strict and the sloppy:
events by the standard, each data line by itself, the last or the first of two equal keys, parts joined by index or by
id, an item as it was added, in parts, as it was done, as the last event lists it.
"""

import json
import re
from typing import Any

Call = tuple[str, str]


def calls_in(wire: str, data: bytes) -> set[Call]:
    """All calls that some reader finds."""
    found: set[Call] = set()
    for documents in framings(data):
        for reader in READERS[wire]:
            found |= reader(documents)
    return found


# --- bytes to documents ---


def framings(data: bytes) -> list[list[Any]]:
    """Each way to cut an answer into JSON documents: (event name, document) pairs."""
    out = []
    for first in (False, True):
        whole = parsed(data, first)
        if whole is not None:
            out.append([("", one) for one in (whole if isinstance(whole, list) else [whole])])
        for separator in (r"\r\n|\n|\r", r"\n"):
            for joined in (True, False):
                out.append(events(data, separator, joined, first))
    return out


def events(data: bytes, separator: str, joined: bool, first: bool) -> list[Any]:
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    out, name, lines = [], "", []
    for line in [*(one.rstrip("\r") for one in re.split(separator, text)), ""]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif not line:
            for piece in ["\n".join(lines)] if joined else lines:
                value = parsed(piece, first)
                if value is not None:
                    out.append((name, value))
            name, lines = "", []
    return out


def parsed(data: bytes | str, first: bool) -> Any:
    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(reversed(given)) if first else dict(given)

    try:
        if isinstance(data, bytes) and data.startswith(b"\xef\xbb\xbf"):
            data = data[3:]
        return json.loads(data, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None


# --- documents to calls ---


def call(tool: Any, arguments: Any) -> set[Call]:
    if not isinstance(tool, str) or not tool:
        return set()
    if isinstance(arguments, str):
        value = parsed(arguments, False) if arguments.strip() else {}
        first = parsed(arguments, True) if arguments.strip() else {}
        if not isinstance(value, dict):
            return set()  # nobody carries out what is no JSON
        return {(tool, canonical(value)), (tool, canonical(first))}
    return {(tool, canonical({} if arguments is None else arguments))}


def canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def of(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def gemini(documents: list[Any]) -> set[Call]:
    out: set[Call] = set()
    for _, document in documents:
        for answer in (document, of(document, "response")):
            for candidate in each(of(answer, "candidates")):
                for part in each(of(of(candidate, "content"), "parts")):
                    for key in ("functionCall", "function_call"):
                        made = of(part, key)
                        if made:
                            out |= call(of(made, "name"), of(made, "args"))
    return out


def chat_whole(documents: list[Any]) -> set[Call]:
    out: set[Call] = set()
    for _, document in documents:
        for choice in each(of(document, "choices")):
            for message in (of(choice, "message"), of(choice, "delta")):
                for one in [*each(of(message, "tool_calls")), {"function": of(message, "function_call")}]:
                    out |= call(of(of(one, "function"), "name"), of(of(one, "function"), "arguments"))
    return {(tool, said) for tool, said in out if whole_by_itself(said)}


def whole_by_itself(said: str) -> bool:
    """An empty object may be the begin of one in parts: other readers see what becomes of it."""
    return isinstance(parsed(said, False), dict) and said != "{}"


def chat_by_index(documents: list[Any]) -> set[Call]:
    """As the official library joins: every text is added to what stands at the same index."""
    slots: dict[Any, list[str]] = {}
    out: set[Call] = set()
    ended = False
    for _, document in documents:
        for choice in each(of(document, "choices")):
            delta = of(choice, "delta")
            ended = ended or bool(of(choice, "finish_reason"))
            made = [(of(one, "index"), one) for one in each(of(delta, "tool_calls"))]
            made += [("legacy", {"function": of(delta, "function_call")})]
            for index, one in made:
                for kind, key in (("function", "arguments"), ("custom", "input")):
                    body = of(one, kind)
                    if isinstance(body, dict):
                        slot = slots.setdefault((str(of(choice, "index")), str(index), kind), ["", ""])
                        slot[0] += text(body.get("name"))
                        slot[1] += (
                            text(body.get(key))
                            if not isinstance(body.get(key), dict)
                            else canonical(body[key])
                        )
    for key in [key for key in slots if key[2] == "custom"]:
        name, said = slots.pop(key)
        out |= {(name, said)} if name and ended else set()
    return out | joined(slots, ended)


def chat_by_id(documents: list[Any]) -> set[Call]:
    """As others join: a new id begins a new call, and a name is told once."""
    slots: dict[Any, list[str]] = {}
    ended, turn = False, 0
    for _, document in documents:
        for choice in each(of(document, "choices")):
            ended = ended or bool(of(choice, "finish_reason"))
            for one in each(of(of(choice, "delta"), "tool_calls")):
                body = of(one, "function")
                turn += bool(of(one, "id"))
                if isinstance(body, dict):
                    slot = slots.setdefault((turn, str(of(one, "index"))), ["", ""])
                    slot[0] = slot[0] or text(body.get("name"))
                    slot[1] += text(body.get("arguments"))
    return joined(slots, ended)


def joined(slots: dict[Any, list[str]], ended: bool) -> set[Call]:
    out: set[Call] = set()
    for name, said in slots.values():
        if ended or whole_by_itself(said):
            out |= call(name, said)
    return out


def messages_whole(documents: list[Any]) -> set[Call]:
    out: set[Call] = set()
    for name, document in documents:
        kind = of(document, "type") or name
        for holder in (document, of(document, "message")):
            for block in each(of(holder, "content")) if kind in ("message", "message_start", "") else []:
                if of(block, "type") == "tool_use":
                    out |= call(of(block, "name"), of(block, "input"))
    return out


def messages_streamed(documents: list[Any], appended: bool) -> set[Call]:
    """Blocks stand where their begin says, or where a list that grows has them."""
    blocks: dict[Any, Any] = {}
    parts: dict[Any, str] = {}
    closed: set[Any] = set()
    over = False
    for name, document in documents:
        kind, index = of(document, "type") or name, of(document, "index")
        if isinstance(index, (dict, list)):
            continue
        if kind == "content_block_start":
            place = len(blocks) if appended else index
            if place in blocks and not appended:
                closed.discard(place)
            blocks[place] = of(document, "content_block")
            parts[place] = ""
        elif kind == "content_block_delta" and of(of(document, "delta"), "type") == "input_json_delta":
            parts[index] = parts.get(index, "") + text(of(of(document, "delta"), "partial_json"))
        elif kind == "content_block_stop":
            closed.add(index)
        elif kind == "message_stop":
            over = True
    out: set[Call] = set()
    for place, block in blocks.items():
        if of(block, "type") == "tool_use" and (over or place in closed):
            said = parts.get(place, "")
            out |= call(of(block, "name"), said if said.strip() else of(block, "input"))
    return out


def responses_items(documents: list[Any]) -> set[Call]:
    """Items as they are done, and as a response lists them."""
    out: set[Call] = set()
    for name, document in documents:
        kind = of(document, "type") or name
        if kind == "response.output_item.done":
            out |= item_call(of(document, "item"), None)
        for holder in (of(document, "response"), document):
            if (
                kind in ("response.completed", "response.incomplete", "")
                or of(document, "object") == "response"
            ):
                for item in each(of(holder, "output")):
                    out |= item_call(item, None)
    return out


def responses_parts(documents: list[Any], key: str) -> set[Call]:
    """Items as they were added, filled by their parts; found by their id, or by their index."""
    items: dict[Any, Any] = {}
    parts: dict[Any, str] = {}
    out: set[Call] = set()
    for name, document in documents:
        kind = of(document, "type") or name
        place = str(of(document, key))
        if kind == "response.output_item.added":
            item = of(document, "item")
            place = str(of(item, "id")) if key == "item_id" else place
            items[place], parts[place] = item, ""
        elif kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            parts[place] = parts.get(place, "") + text(of(document, "delta"))
        elif kind in ("response.function_call_arguments.done", "response.custom_tool_call_input.done"):
            said = of(document, "arguments" if "function" in kind else "input")
            if place in items:
                out |= item_call(items[place], said)
        elif kind in ("response.output_item.done", "response.completed"):
            for one in list(items) if kind.endswith("completed") else [place]:
                if parts.get(one):
                    out |= item_call(items.get(one), parts[one])
    return out


OWN = {"local_shell_call": "local_shell", "shell_call": "shell", "apply_patch_call": "apply_patch"}


def item_call(item: Any, said: Any) -> set[Call]:
    kind, space, name = of(item, "type"), of(item, "namespace"), of(item, "name")
    name = f"{space}.{name}" if isinstance(space, str) and space and isinstance(name, str) else name
    if kind == "function_call":
        return call(name, of(item, "arguments") if said is None else said)
    if kind == "custom_tool_call":
        given = of(item, "input") if said is None else said
        return {(name, given)} if isinstance(name, str) and name and isinstance(given, str) else set()
    if isinstance(kind, str) and kind in OWN:
        field = "operation" if kind == "apply_patch_call" else "action"
        return {(OWN[kind], canonical(of(item, field)))} if isinstance(of(item, field), dict) else set()
    return set()


READERS: dict[str, Any] = {
    "gemini": [gemini],
    "openai-chat": [chat_whole, chat_by_index, chat_by_id],
    "anthropic": [
        messages_whole,
        lambda d: messages_streamed(d, True),
        lambda d: messages_streamed(d, False),
    ],
    "openai-responses": [
        responses_items,
        lambda d: responses_parts(d, "item_id"),
        lambda d: responses_parts(d, "output_index"),
    ],
}
