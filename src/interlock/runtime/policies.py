"""Which policy a run stands under: the one named, else the user's own, else the preset.

A policy in the workspace is never taken by itself: the workspace is what the agent, and whoever wrote the
repository, can shape.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from interlock.model.errors import InputError
from interlock.policy import Policy, load_policy


def find_policy(given: str | None, environment: Mapping[str, str]) -> Policy:
    """Return the policy to run under.

    Raises: InputError if a named file cannot be read; PolicyError, with file, line and fix, for a mistake.
    """
    if given is not None:
        return _load(given)
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME", "/"), ".config")
    own = os.path.join(base, "interlock", "policy.yaml")
    if os.path.exists(own):
        return _load(own)
    return load_policy(None, filename="coding")


def _load(path: str) -> Policy:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise InputError(
            f"the policy `{path}` cannot be read: {error.strerror}", hint="make one: interlock policy init"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"the policy `{path}` is not UTF-8 text", hint="save it as UTF-8") from error
    return load_policy(text, filename=path)
