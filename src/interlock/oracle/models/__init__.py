"""Language models that an oracle may ask: one small port, and what a call is worth in the ledger."""

from interlock.oracle.models.budget import Budget, Limits
from interlock.oracle.models.client import (
    Completion,
    Identity,
    Message,
    ModelClient,
    ModelError,
    Price,
    Request,
    ToolSpec,
    Usage,
    estimated_tokens,
)
from interlock.oracle.models.recording import recorded

__all__ = [
    "Budget",
    "Completion",
    "Identity",
    "Limits",
    "Message",
    "ModelClient",
    "ModelError",
    "Price",
    "Request",
    "ToolSpec",
    "Usage",
    "estimated_tokens",
    "recorded",
]
