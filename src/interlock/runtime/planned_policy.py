"""A policy for a run with a plan: the planned tools' roles where it says nothing of them, and every call audited.

Holds: the recorded policy stays the whole truth: what the plan adds stands in its text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from interlock.model.errors import InputError, IntegrityError
from interlock.model.manifest import Manifest, Mode
from interlock.policy import Policy
from interlock.policy.lens import Audit
from interlock.runtime.policy_writing import own_keys, written

_OPERATIONS = ("file.", "net.")
"""Before an effect's operation, which a plan may name like a tool, and a policy does not."""


def with_plan(policy: Policy, envelope: str) -> Policy:
    """Return a policy as a run with a plan records it. Takes: `envelope`, `""` for no plan.

    Raises: InputError, where the envelope holds no manifest; PolicyError.
    """
    if not envelope:
        return policy
    from interlock.manifest.statement import read_envelope

    return with_manifest(policy, read_envelope(envelope))


def with_manifest(policy: Policy, manifest: Manifest) -> Policy:
    """Return a policy as a run with this manifest records it. Raises: PolicyError."""
    keys: dict[str, object] = {}
    roles = roles_of(policy, manifest)
    if roles:
        keys["tools"] = {**own_keys(policy, "tools"), **roles}
    if manifest.mode is Mode.EXACT and policy.lens.audit is not Audit.ALL:
        # Where nothing but the plan may be done, every call that the agent's model announces is decided first.
        keys["lens"] = {**own_keys(policy, "lens"), "audit": Audit.ALL.value}
    return written(policy, keys, what="the plan says of its tools") if keys else policy


def roles_of(policy: Policy, manifest: Manifest) -> dict[str, object]:
    """Return the roles of the planned tools of which the policy says nothing, as its key `tools` has them.

    Holds: what a toolkit says of an answer's trust fills the plan's holes, and is no source for anything else.
    """
    found: dict[str, object] = {}
    for tool in manifest.tools:
        if tool.name.startswith(_OPERATIONS) or policy.tools.find(tool.name) is not None:
            continue
        found[tool.name] = _role(_definition(tool.definition))
    return found


def check_task(envelope: str, task: str) -> None:
    """Check that a plan is one of this task. Raises: InputError."""
    from interlock.manifest.statement import read_envelope

    if read_envelope(envelope).task != task:
        raise InputError(
            "the task is another one than the plan was made for",
            hint="leave the task out: the plan's prompt is the task; or plan that task: interlock plan",
        )


def _definition(text: str) -> Mapping[str, object]:
    given = json.loads(text)
    if not isinstance(given, dict):
        raise IntegrityError("a planned tool's definition is no object")
    return given


def _role(definition: Mapping[str, object]) -> dict[str, object]:
    role: dict[str, object] = {"effect": definition.get("effect") or "write"}
    for key in ("steers", "carries", "discloses"):
        if definition.get(key):
            role[key] = definition[key]
    return role
