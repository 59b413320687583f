"""What a program declares of its functions, written into the policy that its runs record.

A run's ledger holds the policy's whole text, so that a replay needs nothing else: roles that stand in code stand there
too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from interlock.model.errors import InputError, PolicyError
from interlock.policy import Policy, load_policy
from interlock.policy.document import read_document

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
    before = read_document(policy.text, filename=policy.name).values
    wanted = {**before, "tools": {**(before.get("tools") or {}), **declared}}
    text = policy.text.rstrip("\n") + "\n" + _line("tools", wanted["tools"])
    if before.get("tools") is not None or not _says(text, wanted, policy.name):
        text = "".join(_line(key, value) for key, value in wanted.items())
        if not _says(text, wanted, policy.name):
            raise PolicyError(
                "what the code declares of its tools cannot be written into this policy",
                filename=policy.name,
                hint="use plain names of tools and arguments, or declare them in the policy itself",
            )
    return load_policy(text, filename=policy.name)


def _line(key: str, value: object) -> str:
    return f"{key}: {json.dumps(value, ensure_ascii=False)}\n"


def _says(text: str, wanted: Mapping[str, object], name: str) -> bool:
    try:
        return bool(read_document(text, filename=name).values == wanted)
    except PolicyError:
        return False
