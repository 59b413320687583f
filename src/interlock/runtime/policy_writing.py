"""Keys that are written into a policy before a run records it, so that a replay needs nothing but its text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from interlock.model.errors import PolicyError
from interlock.policy import Policy, load_policy
from interlock.policy.document import read_document


def written(policy: Policy, keys: Mapping[str, object], *, what: str) -> Policy:
    """Return a policy with these keys in the place of its own.

    Takes: `what` is written in, for whoever reads that it cannot be.
    Raises: PolicyError, where it cannot, or is a mistake.
    """
    before = read_document(policy.text, filename=policy.name).values
    wanted = {**before, **keys}
    text = policy.text.rstrip("\n") + "\n" + "".join(_line(key, keys[key]) for key in keys)
    if any(key in before for key in keys) or not _says(text, wanted, policy.name):
        text = "".join(_line(key, value) for key, value in wanted.items())
        if not _says(text, wanted, policy.name):
            raise PolicyError(
                f"what {what} cannot be written into this policy",
                filename=policy.name,
                hint="use plain names of tools and arguments, or declare them in the policy itself",
            )
    return load_policy(text, filename=policy.name)


def own_keys(policy: Policy, key: str) -> dict[str, object]:
    """Return what a policy's text says below a key that holds a mapping."""
    return dict(read_document(policy.text, filename=policy.name).values.get(key) or {})


def _line(key: str, value: object) -> str:
    return f"{key}: {json.dumps(value, ensure_ascii=False)}\n"


def _says(text: str, wanted: Mapping[str, object], name: str) -> bool:
    try:
        return bool(read_document(text, filename=name).values == wanted)
    except PolicyError:
        return False
