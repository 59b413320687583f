"""The law of a conversation: whatever bytes a client says, a careless server finds no call in them that was not decided.

The careless reader ends lines at carriage returns, does not see case, and takes the last of two equal names, as readers
that are in use do.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.boundary.mcp.conversing import Conversation
from interlock.boundary.mcp.moves import Guarded, Listed, Onward, Returned

NAMES = (
    "method",
    "Method",
    "METHOD",
    "params",
    "Params",
    "name",
    "Name",
    "arguments",
    "id",
    "ID",
    "jsonrpc",
    "result",
    "x",
)
WORDS = ("tools/call", "Tools/Call", "ping", "notifications/progress", "send", "wipe", "2.0", "tools/list")
LEAVES = st.sampled_from(WORDS) | st.integers(0, 3) | st.none() | st.booleans()
CALL = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"wipe","arguments":{}}}'


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> str:
    """Write an object with names that may come twice, and line ends between its parts."""
    parts = []
    for _ in range(draw(st.integers(0, 5))):
        name = draw(st.sampled_from(NAMES))
        if depth < 2 and draw(st.booleans()):
            value = draw(objects(depth + 1))
        elif depth < 2 and draw(st.integers(0, 4)) == 0:
            value = CALL
        else:
            value = json.dumps(draw(LEAVES))
        gap = draw(st.sampled_from(("", "", "", " ", "\r", "\n", "\r\n", "\t")))
        parts.append(f"{gap}{json.dumps(name)}:{gap}{value}{gap}")
    return "{" + ",".join(parts) + "}"


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Write a message that is nearly right: the envelope of a call or a ping, with something of a kind put in."""
    method = draw(st.sampled_from(WORDS))
    fields = [
        '"jsonrpc":"2.0"',
        f'"id":{draw(st.integers(0, 3))}',
        f'"method":{json.dumps(method)}',
        f'"params":{draw(objects(1))}',
    ]
    for _ in range(draw(st.integers(0, 2))):
        gap = draw(st.sampled_from(("", "\r", "\n")))
        value = draw(objects(1) | LEAVES.map(json.dumps))
        fields.insert(
            draw(st.integers(0, len(fields))), f"{gap}{json.dumps(draw(st.sampled_from(NAMES)))}:{value}"
        )
    text = "{" + ",".join(fields) + "}"
    at = draw(st.integers(0, len(text)))
    return draw(st.sampled_from((text, text, text, text[:at], text + text, f"[{text}]"))).encode()


def careless(raw: bytes) -> list[dict[str, Any]]:
    """Return the messages that a careless reader finds."""
    found = []
    for line in re.split(rb"\r\n|\r|\n", raw):
        try:
            one = json.loads(
                line, object_pairs_hook=lambda pairs: {name.casefold(): value for name, value in pairs}
            )
        except ValueError:
            continue
        found += one if isinstance(one, list) else [one]
    return [one for one in found if isinstance(one, dict)]


def calls(raw: bytes) -> list[tuple[Any, Any]]:
    """Return the calls that a careless reader finds: tool and arguments."""
    return [
        (params.get("name"), params.get("arguments", {}))
        for one in careless(raw)
        if str(one.get("method")).casefold() == "tools/call"
        and isinstance(params := one.get("params", {}), dict)
    ]


@few_and_many(80, 20_000, st.lists(messages() | objects().map(str.encode), min_size=1, max_size=4))
def test_no_call_goes_on_that_was_not_handed_out(said: list[bytes]) -> None:
    talk = Conversation("ours-")
    for raw in said:
        move = talk.from_client(raw)
        if isinstance(move, Onward):
            assert calls(move.raw) == []
        elif isinstance(move, Guarded) and move.request.method == "tools/call":
            folded = json.loads(
                json.dumps(move.arguments),
                object_pairs_hook=lambda pairs: {name.casefold(): value for name, value in pairs},
            )
            assert calls(move.request.raw) == [(move.tool, folded)]


@few_and_many(
    80, 10_000, st.lists(messages() | objects().map(str.encode), min_size=1, max_size=4), st.booleans()
)
def test_no_answer_to_a_held_call_is_taken_from_the_server(said: list[bytes], is_sent: bool) -> None:
    talk = Conversation("ours-")
    for number in range(4):
        move = talk.from_client(
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"send"}}' % number
        )
        assert isinstance(move, Guarded)
    if is_sent:
        talk.sent(0)
    for raw in said:
        answered = talk.from_server(raw)
        assert not isinstance(answered, Listed)
        if isinstance(answered, Returned):
            assert is_sent
            assert answered.id == 0
            is_sent = False
