"""The revisions of the protocol whose message shapes are known here."""

from collections.abc import Mapping
from typing import Any

KNOWN = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Oldest first. Of 2025-03-26 without its batches, which the next revision took back."""
_MODERN = frozenset(("2026-07-28",))
"""Revisions without a handshake: each request says its revision and what the client can."""
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
UNSUPPORTED = -32022
"""The error that says which revisions there are (2026-07-28)."""


def is_known(version: object) -> bool:
    """Say whether the shapes of a revision are known."""
    return isinstance(version, str) and version in KNOWN


def is_modern(version: object) -> bool:
    """Say whether each request of a revision stands alone."""
    return isinstance(version, str) and version in _MODERN


def version_said(params: Mapping[str, Any]) -> object:
    """Return the revision that a request itself names, None where it names none."""
    meta = params.get("_meta")
    return meta.get(VERSION_KEY) if isinstance(meta, dict) else None


def elicits(capabilities: object) -> bool:
    """Say whether a client that declares this can be asked with a form."""
    if not isinstance(capabilities, dict):
        return False
    found = capabilities.get("elicitation")
    return isinstance(found, dict) and (not found or "form" in found)


def elicits_now(params: Mapping[str, Any]) -> bool:
    """Say whether a request that stands alone comes from a client that can be asked with a form."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and elicits(meta.get(CAPABILITIES_KEY))
