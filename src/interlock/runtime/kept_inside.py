"""Keys of models and webhooks: they stay with the monitor, whatever the policy lets into the sandbox."""

from __future__ import annotations

import sys

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Takes: `variables` of the environment, and `files`, absolute."""

    variables: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()


def kept_inside() -> Kept:
    """Return where the keys lie that a file of models names.

    A run whose oracle asks no model has read no such file, and pays for no look at one.
    """
    if "interlock.oracle.models.keys" not in sys.modules:
        return Kept()
    from interlock.oracle.models.keys import kept_files, kept_variables

    return Kept(variables=kept_variables(), files=kept_files())
