"""The Model Context Protocol, sans-I/O: lines, messages, one conversation of a client with a server, results as read.

Source: Model Context Protocol, revisions 2024-11-05 to 2026-07-28; JSON-RPC 2.0.
"""

from interlock.boundary.mcp.conversing import Conversation
from interlock.boundary.mcp.framing import Lines
from interlock.boundary.mcp.listing import Listing, read_listing
from interlock.boundary.mcp.messages import (
    MAX_BYTES,
    Message,
    Notification,
    Request,
    Response,
    Unreadable,
    read,
    written,
)
from interlock.boundary.mcp.results import Told, told
from interlock.boundary.mcp.versions import KNOWN, is_known, is_modern

__all__ = [
    "KNOWN",
    "MAX_BYTES",
    "Conversation",
    "Lines",
    "Listing",
    "Message",
    "Notification",
    "Request",
    "Response",
    "Told",
    "Unreadable",
    "is_known",
    "is_modern",
    "read",
    "read_listing",
    "told",
    "written",
]
