"""Several oracles as one: `all`, `any`, `majority`, `first`."""

from interlock.oracle.panel.panel import Panel
from interlock.oracle.panel.words import Kind, Leaf, Words, is_panel, parse, written

__all__ = ["Kind", "Leaf", "Panel", "Words", "is_panel", "parse", "written"]
