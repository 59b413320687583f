"""The exit report: what a run was asked, what it did and was kept from, and what the evidence proves, for people.

It is made of bundles alone, as a verifier has them, so that a regulator can make it on another machine (KNOX §4.4).
"""

from interlock.report.reading import account_of

__all__ = ["account_of"]
