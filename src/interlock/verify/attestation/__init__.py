"""Hardware evidence, appraised offline at a stated time: who vouches for the machine that wrote a ledger (RFC 9334)."""
