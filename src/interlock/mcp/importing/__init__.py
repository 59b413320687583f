"""A client's MCP servers put behind Interlock, and taken back: `wrap` and `take_back`."""

from interlock.mcp.importing.entries import Wrapping
from interlock.mcp.importing.importing import Report, found_here, take_back, wrap

__all__ = ["Report", "Wrapping", "found_here", "take_back", "wrap"]
