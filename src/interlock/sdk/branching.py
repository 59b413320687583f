"""Which agent among several a call is made by: a branch of the plan, around the code that runs for it."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager

_branches: contextvars.ContextVar[tuple[tuple[object, str], ...]] = contextvars.ContextVar(
    "interlock_branches", default=()
)
"""The branches that are entered around this code, each with its scope, the innermost last."""


def branch_in(scope: object) -> str:
    """Return the branch of a scope that this code runs for, `""` for none."""
    return next((name for owner, name in reversed(_branches.get()) if owner is scope), "")


@contextmanager
def entered(scope: object, name: str) -> Iterator[None]:
    """Have the calls inside count as those of a branch; threads and tasks that are begun inside belong to it too."""
    before = _branches.get()
    _branches.set((*before, (scope, name)))
    try:
        yield
    finally:
        _branches.set(before)
