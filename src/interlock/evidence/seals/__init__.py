"""Who vouches for the machine that writes a ledger: one interface over a key file, a TPM, TDX and SEV-SNP."""
