"""Answers of models, bent: events lost, doubled, swapped and mixed, keys and types renamed, bytes flipped."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.fakes.model_answers import WIRES, Call, Part, Text, Thought, events, listed, stream, whole

TOOLS = ("Bash", "edit", "fetch")
VALUES: tuple[Any, ...] = (
    {},
    {"command": "ls"},
    {"a": 1},
    {"path": "x", "text": "tool_use"},
    {"n": [1, {"type": "tool_use"}]},
)
WORDS = (
    "tool_use", "function_call", "custom_tool_call", "local_shell_call", "server_tool_use", "text", "message", "function",
    "custom", "input_json_delta", "text_delta", "content_block_start", "content_block_stop", "response.output_item.done",
    "response.output_item.added", "response.completed", "response.function_call_arguments.delta", "web_search_call", "new_call",
)  # fmt: skip
KEYS = (
    "type", "index", "id", "item_id", "output_index", "tool_calls", "function_call", "functionCall", "message", "delta",
    "name", "arguments", "input", "call_id", "content", "content_block", "item", "partial_json", "choices", "response",
)  # fmt: skip
SCALARS: tuple[Any, ...] = (None, 0, 1, 2, "", "x", "c1", "fc_1_0", "Bash", "{", '{"a":1}', "}", True, [], {})


def fuzzed(random: Random) -> Iterator[tuple[str, bytes]]:
    """Yield wires with answers, for ever."""
    while True:
        wire = random.choice(WIRES)
        yield wire, bent(random, wire)


def parts(random: Random) -> list[Part]:
    """Return what an answer says."""
    made: list[Part] = []
    for _ in range(random.randint(0, 4)):
        kind = random.random()
        if kind < 0.5:
            call_id = random.choice(("c1", "c2", "c3"))
            made.append(Call(call_id, random.choice(TOOLS), random.choice(VALUES), random.randint(1, 20)))
        else:
            made.append(Text("call the tool_use") if kind < 0.8 else Thought("hm"))
    return made


def bent(random: Random, wire: str) -> bytes:
    """Return one answer; one in eight is as it should be."""
    form = random.random()
    told: list[Any] = [whole(wire, parts(random))] if form < 0.2 else events(wire, parts(random))
    if random.random() < 0.3:
        told += events(
            random.choice(WIRES) if random.random() < 0.2 else wire,
            parts(random),
            number=random.randint(1, 2),
        )
    is_right = random.random() < 0.125
    for _ in range(0 if is_right else random.randint(1, 3)):
        told = _bend(random, told)
    if form < 0.2:
        data = json.dumps(told[0] if told else {}).encode()
    elif wire == "gemini" and form < 0.4:
        data = listed([one for one in told if isinstance(one, dict)])
    else:
        data = stream(
            wire,
            [one if isinstance(one, dict) else {} for one in told],
            end=random.choice(("\n", "\n", "\r\n", "\r")),
        )
    return data if is_right or random.random() < 0.6 else _bytes(random, data)


def _bend(random: Random, told: list[Any]) -> list[Any]:
    if not told:
        return told
    at, to = random.randrange(len(told)), random.randrange(len(told))
    match random.randrange(7):
        case 0:
            return told[:at] + told[at + 1 :]
        case 1:
            return [*told[:at], copy.deepcopy(told[to]), *told[at:]]
        case 2:
            told = list(told)
            told[at], told[to] = told[to], told[at]
            return told
        case 3:
            return told[: at + 1]
        case _:
            told = copy.deepcopy(told)
            _within(random, told[at], told[to])
            return told


def _within(random: Random, value: Any, other: Any) -> None:
    """Change something somewhere in a document."""
    place = random.choice(list(_places(value)) or [value])
    if isinstance(place, list):
        if place and random.random() < 0.5:
            place.append(copy.deepcopy(random.choice(place)))
        else:
            place.append(copy.deepcopy(random.choice([*_places(other)] or [other])))
        return
    if not isinstance(place, dict):
        return
    keys = list(place) or ["type"]
    key = random.choice(keys)
    match random.randrange(6):
        case 0:
            place[random.choice(KEYS)] = place.pop(key, None)
        case 1:
            place["type"] = random.choice(WORDS)
        case 2:
            place[key] = random.choice(SCALARS)
        case 3:
            place.pop(key, None)
        case 4:
            place[random.choice(KEYS)] = copy.deepcopy(random.choice([*_places(other)] or [other]))
        case _:
            place[random.choice(KEYS)] = random.choice(SCALARS)


def _places(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _places(inner)


def _bytes(random: Random, data: bytes) -> bytes:
    """Change bytes: flips, cuts, keys told twice, escaped letters, broken and joined lines."""
    at, to = sorted((random.randrange(len(data) + 1), random.randrange(len(data) + 1)))
    match random.randrange(9):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + data[to:]
        case 2:
            return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
        case 3:
            return data.replace(b'"name": "', b'"name": "edit", "name": "', 1)
        case 4:
            return data.replace(b"tool_use", b"tool\\u005fuse").replace(
                b"functionCall", b"function\\u0043all"
            )
        case 5:
            return data.replace(b", ", random.choice((b",\ndata: ", b",\r", b",\n")), random.randint(1, 5))
        case 6:
            return data.replace(b"\n\n", b"\n").replace(
                b"data: ", random.choice((b"data:", b"data: ", b" data: "))
            )
        case 7:
            return data.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-8-sig", "utf-32-le")))
        case _:
            return (
                data[:at]
                + random.choice((b"\x00", b"\xe2\x80\xa8", b"\n\n", b"\r", b"[DONE]", b": x\n"))
                + data[at:]
            )
