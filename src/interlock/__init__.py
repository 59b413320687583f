"""Interlock: a transactional reference monitor for LLM agents."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.sdk import Monitor, Placeholder, Refusal, Refused

__version__ = "0.1.0"
__all__ = ["Monitor", "Placeholder", "Refusal", "Refused", "__version__"]


def __getattr__(name: str) -> object:
    # What a command line start does not need is loaded by programs that guard functions.
    if name not in ("Monitor", "Placeholder", "Refusal", "Refused"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from interlock import sdk

    value: object = getattr(sdk, name)
    return value
