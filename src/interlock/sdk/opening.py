"""A scope is opened: a run without a sandbox, for guarded functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model import events as ev
from interlock.model.errors import InputError
from interlock.runtime.unconfined import open_unconfined
from interlock.sdk.confining import receipt
from interlock.sdk.scope import Scope

if TYPE_CHECKING:
    from interlock.oracle import Oracle
    from interlock.policy import Policy

UNCONFINED = "no sandbox: only guarded functions are seen"
"""What a run's record says of what else its program may do."""


def open_scope(
    *,
    policy: Policy,
    task: str,
    oracle: Oracle,
    oracle_name: str,
    name: str,
    choice: ev.StuckChoice,
    parent: str = "",
    plan: str = "",
) -> Scope:
    """Begin a run of guarded functions.

    Takes: `oracle_name`, as the ledger records it; `name`, the program's, in place of a command; `choice`, how it goes
    on after a call that waited and failed; `parent`, the folder that the run lies in, that of all runs where none is
    given; `plan`, the signed envelope of the plan that its calls follow.
    Raises: InputError, where the state folder cannot be used; IntegrityError, where the ledger cannot be begun.
    """
    try:
        task.encode()
    except UnicodeEncodeError:
        raise InputError(
            "the task holds half a character (a lone surrogate)",
            hint="decode it with errors='replace' first",
        ) from None
    performer, lock = open_unconfined(
        policy=policy,
        task=task,
        oracle=oracle,
        oracle_name=oracle_name,
        argv=(name,),
        degraded=UNCONFINED,
        parent=parent,
        plan=plan,
        receipt=receipt() if plan else (),
    )
    return Scope(performer, lock, choice)
