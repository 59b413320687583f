"""The evidence room: encode, sign, append, seal and export a run's ledger (docs/formats/evidence-v1.md)."""

from interlock.evidence.archive import pack, redact
from interlock.evidence.keys import SigningKey
from interlock.evidence.writer import LedgerWriter

__all__ = ["LedgerWriter", "SigningKey", "pack", "redact"]
