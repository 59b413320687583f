"""Which tools are believed, against the plain lines of `spec/pinning.py`, on generated listings."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from spec import pinning as spec
from tests.fakes.few_and_many import few_and_many

from interlock.model.events import ToolsListed
from interlock.model.tools import ToolCall, ToolDefinition
from interlock.policy.tools.pinning import NO_PINS, look_of

NAMES = [
    "look",
    "Look",
    "l00k",
    "lо ok",
    "lóók",
    "loo-k",
    "Iook",
    "send",
    "sеnd",
    "s end",
    "ＳＥＮＤ",
    "other",
]
LISTINGS = st.lists(
    st.fixed_dictionaries(
        {
            "server": st.sampled_from(["", "a", "b", "c"]),
            "tools": st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["11", "22"])), max_size=4),
        }
    ),
    max_size=6,
)


@few_and_many(150, 5_000, LISTINGS)
def test_the_code_believes_what_the_plain_lines_do(listings: list[dict[str, Any]]) -> None:
    pins = NO_PINS
    for number, listing in enumerate(listings):
        event = ToolsListed(
            server=listing["server"],
            tools=tuple(ToolDefinition(name=name, digest=digest) for name, digest in listing["tools"]),
        )
        pins = pins.after(event)
        assert pins.knows(event)
        for server in ("", "a", "b", "c"):
            for tool in NAMES:
                doubt = pins.doubt(ToolCall(call="c", tool=tool, server=server, arguments="{}"))
                said = (
                    "altered"
                    if "has changed" in doubt
                    else "shadowing"
                    if "is named like" in doubt
                    else doubt
                )
                assert said == spec.held(listings[: number + 1], server, tool), (server, tool, doubt)


@few_and_many(300, 5_000, st.text(max_size=12) | st.sampled_from(NAMES))
def test_names_look_as_the_plain_lines_say(name: str) -> None:
    # The table of the code holds more letters than the few of the spec.
    if all(letter in "аеорсхуіѕαορν" or letter.isascii() or not letter.isalpha() for letter in name):
        assert look_of(name) == spec.look(name)
