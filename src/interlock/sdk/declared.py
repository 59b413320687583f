"""What a program declares of its functions, written into the policy that its runs record.

A run's ledger holds the policy's whole text, so that a replay needs nothing else: roles that stand in code stand there
too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from interlock.model.errors import InputError
from interlock.policy import Policy, load_policy
from interlock.runtime.policy_writing import own_keys, written

DEFAULT_POLICY = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""
"""For a monitor without a policy of its own: what the task vouches for is released, and the rest is asked about."""
PATHS = (".yaml", ".yml")


def read_policy(given: str | os.PathLike[str] | None) -> Policy:
    """Return the policy that a program names: a file, the text of one, or the default.

    Raises: InputError, PolicyError.
    """
    if given is None:
        return load_policy(DEFAULT_POLICY, filename="interlock.Monitor")
    if isinstance(given, str) and "\n" in given:
        policy = load_policy(given, filename="interlock.Monitor")
    else:
        from interlock.runtime.policies import find_policy

        policy = find_policy(os.fspath(given), os.environ)
    if policy.detects:
        from interlock.runtime.detecting import check_detectors

        check_detectors(policy)
    return policy


def with_tools(
    policy: Policy, declared: Mapping[str, Mapping[str, object]], *, whole: bool = False
) -> Policy:
    """Return a policy with what a program declares of its functions.

    Takes: `declared`, by the tool's name, as the key `tools` of a policy has it; `whole`, whether the policy knows a
    name only where it says all of it, the server too.
    Raises: InputError, where the policy says something of such a tool too; PolicyError, for a mistake.
    """
    if not declared:
        return policy
    for name in declared:
        known = policy.tools.find(name)
        if known is not None and (not whole or known.name == name):
            raise InputError(
                f"the tool `{name}` is declared in the code and in the policy `{policy.name}`",
                hint="keep one of the two: guard() without roles takes those of the policy",
            )
    tools = {**own_keys(policy, "tools"), **declared}
    return written(policy, {"tools": tools}, what="the code declares of its tools")


def declared_of(name: str, roles: Mapping[str, Any], more: Mapping[str, object] | None) -> dict[str, object]:
    """Return what a program declares of a function, as the key `tools` of a policy has it."""
    found: dict[str, object] = dict(more or {})
    for key, value in roles.items():
        if value is None or value == "" or value is False or value in ((), [], {}):
            continue
        if isinstance(value, Mapping):
            found[key] = dict(value)
        elif isinstance(value, str | bool):
            found[key] = value
        else:
            found[key] = list(value)
    if found and "effect" not in found:
        raise InputError(
            f"the roles of `{name}` say no effect",
            hint='add effect="read", "egress", "write", "send", "destroy" or "credential"',
        )
    return found


def names_in(value: object) -> tuple[str, ...]:
    """Return the names of parameters in what is declared of a function."""
    return tuple(value) if isinstance(value, dict | list) else ()
