"""Which policy a run stands under: the one named, else the user's own, else the preset; with the agent's profile in it.

A policy in the workspace is never taken by itself: the workspace is what the agent, and whoever wrote the
repository, can shape.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlock.model.errors import InputError
from interlock.policy import Policy, load_policy

if TYPE_CHECKING:
    from interlock.policy.profiles import Profile


def find_policy(given: str | None, environment: Mapping[str, str]) -> Policy:
    """Return the policy to run under, without any agent's profile.

    Raises: InputError if a named file cannot be read; PolicyError, with file, line and fix, for a mistake.
    """
    if given is not None:
        return _load(given)
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME", "/"), ".config")
    own = os.path.join(base, "interlock", "policy.yaml")
    if os.path.exists(own):
        return _load(own)
    return load_policy(None, filename="coding")


def with_profile(policy: Policy, profile: Profile | None, environment: Mapping[str, str]) -> Policy:
    """Return a policy with an agent's profile between its preset and its own keys.

    Takes: `profile`, None to leave the policy as it is; `environment`, the principal's own.
    Raises: InputError, for an endpoint's variable that holds no URL; PolicyError, where the policy has a profile of its
    own or the profile cannot be written in.
    """
    if profile is None:
        return policy
    from interlock.policy.profile_inlining import inlined, resolved

    if policy.profile:
        raise InputError(
            f"the policy `{policy.name}` has the profile `{policy.profile}` in it already",
            hint="run with `--profile none`, or take the key `profile` out of the policy",
        )
    return load_policy(inlined(policy, resolved(profile, environment, policy)), filename=policy.name)


def read_text(path: str, what: str, hint: str) -> str:
    """Read a file that the user wrote. Takes: `what` it is, and the next step where it cannot be read.

    Raises: InputError.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"the {what} `{path}` cannot be read: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise InputError(f"the {what} `{path}` is not UTF-8 text", hint="save it as UTF-8") from error


def _load(path: str) -> Policy:
    text = read_text(path, "policy", "make one: interlock policy init")
    if "lenses:" in text:
        from interlock.runtime.lenses import written_in

        text = written_in(text, path)
    policy = load_policy(text, filename=path)
    if policy.detects:
        from interlock.runtime.detecting import check_detectors

        check_detectors(policy)
    return policy
