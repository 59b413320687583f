"""A bundle becomes an account: verified first, then read node by node."""

from interlock.report.account import Account, Accounting
from interlock.verify import read_nodes, verify_path
from interlock.verify.report import Flaw


def account_of(path: str, source: str, *, replay: bool = True, key: str = "", nonce: str = "") -> Account:
    """Verify and read a bundle.

    Takes: `path`, a ledger's folder or a bundle; `source`, how the user named it; `replay`, whether the verdicts are
    recomputed, which needs every payload; `key` and `nonce`, what is expected of it.
    Raises: InputError, if there is nothing to read.
    Holds: of a bundle that was tampered with, only what stands before the break is read, and the account says so.
    """
    verified = verify_path(path, expected_key=key, expected_nonce=nonce, replay=replay)
    if replay and verified.removed:
        verified = verify_path(path, expected_key=key, expected_nonce=nonce)
    accounting = Accounting()
    try:
        for node in read_nodes(path):
            accounting.take(node)
    except Flaw:
        if verified.verdict != "tampered":
            raise
    return accounting.account(source, verified)
