"""The attested manifest: from a plan to trajectory, guards and authorised calls. Empty until its issue."""
