"""Confines a program that runs its tools itself to what its plan authorises (docs/kernel.md)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING

from interlock.model.errors import BoundaryError, InputError
from interlock.model.toolkits import Needs

if TYPE_CHECKING:
    from interlock.boundary.confining import Confinement
    from interlock.boundary.notifying import Denial

_standing: list[Confinement] = []


def confine(
    plan: str | os.PathLike[str] | Needs,
    *,
    plan_keys: Iterable[str] = (),
    workspace: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    tmp: str | os.PathLike[str] | None = None,
    allow_degraded: bool = False,
) -> Confinement:
    """Bind this process, and all that it starts from now on, to what its plan authorises; there is no way back.

    Call it before any tool runs, and before anything starts a thread.
    Takes: `plan`, a signed plan's file or text, or needs by themselves; `plan_keys`, names of keys that may have signed
    it beside the user's own; `workspace` (the working directory), `home` and `tmp`, what stands for these words in the
    needs' paths; `allow_degraded`, whether a kernel without Landlock is good enough.
    Raises: InputError, for a plan that cannot be followed, or a second call; BoundaryError, where this kernel cannot
    keep what the plan promises: nothing is bound then.
    """
    if _standing:
        raise InputError(
            "this process is confined already", hint="call confine(…) once, before any tool runs"
        )
    from interlock.boundary import confining
    from interlock.manifest.kernel.deriving import Places

    needs = plan if isinstance(plan, Needs) else _authorised(plan, plan_keys)
    places = Places(
        workspace=os.path.realpath(workspace or os.getcwd()),
        home=os.path.realpath(home or os.path.expanduser("~")),
        tmp=os.path.realpath(tmp or tempfile.gettempdir()),
    )
    found = confining.confine(needs, places, allow_degraded=allow_degraded)
    _standing.append(found)
    return found


def _authorised(plan: str | os.PathLike[str], plan_keys: Iterable[str]) -> Needs:
    from interlock.manifest.statement import read_envelope
    from interlock.sdk.planning import read_followed

    manifest = read_envelope(read_followed(plan, plan_keys).envelope)
    if not manifest.authorises:
        raise BoundaryError(
            "the plan has no system-call guard: nothing could be confined by it",
            hint="plan with a runtime: interlock plan … --runtime python",
        )
    return manifest.authorised


def receipt() -> tuple[tuple[str, str], ...]:
    """Return what the kernel enforces of this process, as rows of a receipt; none where it is not confined."""
    return _standing[0].receipt if _standing else ()


def denials() -> tuple[Denial, ...]:
    """Return the calls that were refused to this process since the last time."""
    return _standing[0].denials() if _standing else ()
