"""What a manifest's authorised calls, paths and limits are to the kernel: a filter, rules and bounds, as values."""
