"""The runtime: performs what the core commands; clock, ids and run folders live here."""
