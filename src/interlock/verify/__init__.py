"""The verify room: decode and check a bundle, offline, sharing no code with its writer.

The format is docs/formats/evidence-v1.md.
"""

from interlock.verify.cosignatures import WitnessKey, cosigned_at, log_key, read_heads, read_witness_key
from interlock.verify.reader import read_leaves, read_nodes, read_witness
from interlock.verify.report import (
    REASONS,
    BundleVerdict,
    CheckResult,
    CheckStatus,
    Flaw,
    ReadNode,
    Report,
    WitnessedHead,
)
from interlock.verify.verifier import verify_path

__all__ = [
    "REASONS",
    "BundleVerdict",
    "CheckResult",
    "CheckStatus",
    "Flaw",
    "ReadNode",
    "Report",
    "WitnessKey",
    "WitnessedHead",
    "cosigned_at",
    "log_key",
    "read_heads",
    "read_leaves",
    "read_nodes",
    "read_witness",
    "read_witness_key",
    "verify_path",
]
