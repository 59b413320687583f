"""The plan that a program's calls follow: read, and its signature checked, before anything is called."""

from __future__ import annotations

import os
from collections.abc import Iterable

from interlock.model.errors import InputError
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A plan to follow. Takes: `envelope`, its signed text; `task`, the prompt that it was made from."""

    envelope: str
    task: str


def read_followed(given: str | os.PathLike[str], keys: Iterable[str]) -> Followed:
    """Return the plan that a program names: a file, or the text of one.

    Takes: `keys`, names of keys that may have signed it, beside the user's own.
    Raises: InputError, where it is none, is not signed, or by another key.
    """
    from interlock.runtime.plans import plan_to_follow

    trusted = tuple(keys)
    if isinstance(given, str) and given.lstrip().startswith("{"):
        return _checked(given, trusted)
    found = plan_to_follow(os.fspath(given), trusted)
    return Followed(envelope=found.envelope, task=found.manifest.task)


def _checked(text: str, trusted: tuple[str, ...]) -> Followed:
    from interlock.manifest.statement import read_envelope
    from interlock.runtime.plans import own_signer
    from interlock.verify.envelopes import check_envelope

    manifest = read_envelope(text)
    found = check_envelope(text)
    if found.problem:
        raise InputError(
            f"the plan does not hold: {found.problem}",
            hint="make it anew, and sign it: interlock plan; interlock plan sign FILE",
        )
    known = {*trusted, own_signer()} - {""}
    if not known & set(found.signers):
        raise InputError(
            f"the plan is signed by {found.signers[0]}, which is not your key",
            hint="sign it yourself (interlock plan sign FILE), or name the key: Monitor(plan_keys=[…])",
        )
    return Followed(envelope=text, task=manifest.task)
