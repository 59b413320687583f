"""The judge: an oracle that says of a disclosure whether a regulation permits it, by a provision that it was shown.

Source: KNOX §4.2 (the regulation guard), attestation 4.
"""

from interlock.oracle.judge.judge import Judge

__all__ = ["Judge"]
