"""Pins: the first description of each tool in a run; what a server changes or names alike later is not believed.

A description is text that the model obeys, and its server may change it after it was looked at.
Source: ours; the tool poisoning that MCP's own security pages name.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import field

from interlock.model.events import ToolsListed
from interlock.model.records import changed, dataclass
from interlock.model.tools import ToolCall

MAX_PINS = 10_000
"""So many descriptions are remembered; the call of a tool that is listed later is asked about."""
PINNED = "tool.pinned"
"""What decides where a tool is not believed."""
Key = tuple[str, str]
"""Server and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """What is known of the tools that were offered so far.

    Takes: `first`, of each tool the digest that it had first; `seen`, every tool with every digest that was listed;
    `altered`, tools that had another digest later; `shadowing`, tools that are named like one that another server
    offered before, with that one; `lost`, whether there was no room for one.
    Holds: nothing is ever taken back: a description that becomes what it was is still one that changed.
    """

    first: Mapping[Key, str] = field(default_factory=dict)
    seen: frozenset[tuple[str, str, str]] = frozenset()
    altered: frozenset[Key] = frozenset()
    shadowing: Mapping[Key, Key] = field(default_factory=dict)
    names: Mapping[str, Key] = field(default_factory=dict)
    """By how a name looks, the tool of a server that had it first."""
    lost: bool = False

    def knows(self, event: ToolsListed) -> bool:
        """Say whether a listing tells nothing that was not listed before."""
        return self.lost or all((event.server, one.name, one.digest) in self.seen for one in event.tools)

    def after(self, event: ToolsListed) -> "Pins":
        """Return what is known after a listing."""
        if self.knows(event):
            return self
        first, names, shadowing = dict(self.first), dict(self.names), dict(self.shadowing)
        seen, altered = set(self.seen), set(self.altered)
        lost = False
        for one in event.tools:
            key = (event.server, one.name)
            if (*key, one.digest) in seen:
                continue
            if len(seen) >= MAX_PINS:
                lost = True
                break
            seen.add((*key, one.digest))
            if first.setdefault(key, one.digest) != one.digest:
                altered.add(key)
            # What the agent lists of itself it may have from any server: it shadows none.
            before = names.setdefault(look_of(one.name), key) if event.server else key
            if before[0] != event.server:
                shadowing.setdefault(key, before)
        return changed(
            self,
            first=first,
            seen=frozenset(seen),
            altered=frozenset(altered),
            shadowing=shadowing,
            names=names,
            lost=lost,
        )

    def doubt(self, call: ToolCall) -> str:
        """Return why a call of a tool is not believed to be what it was described as, `""` where it is."""
        key = (call.server, call.tool)
        if key in self.altered:
            return f"the description of the tool `{call.name}` has changed since the run began"
        other = self.shadowing.get(key)
        if other is not None:
            server, name = other
            alike = "" if name == call.tool else f" as `{name}`"
            return f"the tool `{call.name}` is named like one that `{server}` offered before{alike}"
        if self.lost and key not in self.first:
            return f"more tools were listed than are remembered, and `{call.name}` may be one that changed"
        return ""


NO_PINS = Pins()

_ALIKE = str.maketrans(
    "абвгеікмнорстухѕјԛԝһӏαβεηικνορτυχ01|",
    "abbreikmhopctyxsjqwhlabenikvoptuxoll",
)
"""Letters that look like another, folded: Cyrillic, Greek, digits."""
_UNSEEN = frozenset(("Cc", "Cf", "Mc", "Me", "Mn", "Zl", "Zp", "Zs"))
"""What is not seen, or only as an accent of a letter."""


def look_of(name: str) -> str:
    """Return how a name looks: names that a reader takes for one another look the same."""
    shown = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", name).casefold()
        if unicodedata.category(letter) not in _UNSEEN and letter not in "-_."
    )
    return shown.translate(_ALIKE).replace("i", "l") or name
