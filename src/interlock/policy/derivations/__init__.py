"""Derivations: a closed set of rules by which a steering value comes from something trusted, each with a checker.

`typed` finds, and knows nothing of the checkers; `checking` reads a recorded derivation a second time, from the
ledger's own events and the policy's text, and knows nothing of the finders. What both share is `names` alone.
docs/derivations.md lists every rule and every form with an example and a counter-example.
"""
