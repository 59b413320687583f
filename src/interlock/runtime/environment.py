"""The command's environment: only what the policy lets through, so that no secret is inherited."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from interlock.model.requests import INTERNAL_HOST

if TYPE_CHECKING:
    from interlock.policy import Policy

NOTICES_VARIABLE = "INTERLOCK_NOTICES"
"""By this an agent, and `interlock notices`, know that they are inside a run, and where its refusals can be read."""
NOTICES_URL = f"http://{INTERNAL_HOST}/notices"


def child_environment(
    policy: Policy,
    environment: Mapping[str, str],
    working_directory: str,
    network: tuple[tuple[str, str], ...] = (),
    withheld: AbstractSet[str] = frozenset(),
) -> dict[str, str]:
    """Return the environment by allow-list: names or globs that the policy passes, then what it sets.

    Takes: `network`, what the network boundary needs: trust stores, placeholders of secrets; `withheld`, variables
    that stay with the monitor whatever the policy passes: keys of models that its oracles ask.

    `TMPDIR` and `XDG_RUNTIME_DIR` are never passed: they name host folders that are not there inside.
    """
    passed = policy.environment.passed
    child = {
        name: value
        for name, value in environment.items()
        if name not in withheld
        and name not in ("TMPDIR", "XDG_RUNTIME_DIR")
        and any(fnmatchcase(name, pattern) for pattern in passed)
    }
    child.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    child.setdefault("HOME", environment.get("HOME", "/"))
    child["PWD"] = working_directory
    child[NOTICES_VARIABLE] = NOTICES_URL
    child.update(network)
    child.update(policy.environment.set)
    return child
