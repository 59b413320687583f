"""The witness room: a ledger's heads are given to somebody else, so that a rollback of the ledger shows."""

from interlock.witness.filed import file_head
from interlock.witness.submitting import Submitted, submit

__all__ = ["Submitted", "file_head", "submit"]
