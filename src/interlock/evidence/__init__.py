"""The evidence room: encode, sign, append, seal and export a run's ledger (docs/formats/evidence-v1.md).

What a run does not need (packing, redaction) is loaded at its first use.
"""

from typing import TYPE_CHECKING

from interlock.evidence.keys import SigningKey
from interlock.evidence.writer import LedgerWriter

if TYPE_CHECKING:
    from interlock.evidence.archive import pack, redact

__all__ = ["LedgerWriter", "SigningKey", "pack", "redact"]


def __getattr__(name: str) -> object:
    if name not in ("pack", "redact"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from interlock.evidence import archive

    value: object = getattr(archive, name)
    return value
