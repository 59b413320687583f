"""Suites, attacks, defences and metrics. Empty until its issue; what measures speed is in `benchmarks/`."""
