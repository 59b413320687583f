"""Heads to a witness over HTTP, and its cosignatures back.

Source: C2SP tlog-witness (`add-checkpoint`), tlog-cosignature.
"""

import os
from base64 import b64encode

from interlock.model.errors import InputError, IntegrityError
from interlock.model.records import dataclass
from interlock.oracle.exchanging import Address, Came, ServiceError, exchange
from interlock.verify import WitnessedHead, WitnessKey, cosigned_at, read_heads
from interlock.verify.report import Flaw
from interlock.witness.consistency import consistency_proof
from interlock.witness.reading import Head, heads_in, read_head

DEADLINE_S = 20.0
_ANSWER_BYTES = 64 * 1024
_SIZE_TYPE = "text/x.tlog.size"
_MOST_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What a witness did with a head.

    Takes: `cosigned`, the head with its cosignatures, as kept; `time_s`, when the witness that was named says that it
    signed, None where none was named; `new`, whether the witness was asked at all.
    """

    head: Head
    cosigned: WitnessedHead
    time_s: int | None
    new: bool


def submit(ledger: str, run_id: str, address: Address, kept: str, key: WitnessKey | None) -> Submitted:
    """Have a ledger's newest head cosigned.

    Takes: `kept`, the file to which the cosigned head is appended; `key`, of the witness: its cosignature must be there
    and hold.
    Raises: InputError, where the witness gives none; IntegrityError, where it has seen another ledger under this name.
    """
    seen = heads_in(kept, run_id)
    head = read_head(ledger, seen)
    if not seen:
        old = 0
    else:
        old = seen[-1].count
        if old == head.count and (key is None or _time_of(seen[-1], key) is not None):
            return Submitted(
                head=head, cosigned=seen[-1], time_s=_time_of(seen[-1], key) if key else None, new=False
            )
    lines = _ask(head, address, old)
    note = head.note + lines
    try:
        cosigned = read_heads(note)[0]
        time_s = None if key is None else _time_of(cosigned, key)
    except (Flaw, IndexError) as error:
        raise InputError(
            "the witness's answer is no cosignature that holds", hint="is --witness-key this witness's?"
        ) from error
    if not cosigned.cosignatures or (key is not None and time_s is None):
        name = "a cosignature" if key is None else f"a cosignature of {key.name}"
        raise InputError(f"the witness answered without {name}", hint="is --witness-key this witness's?")
    _keep(kept, note)
    return Submitted(head=head, cosigned=cosigned, time_s=time_s, new=True)


def _time_of(head: WitnessedHead, key: WitnessKey) -> int | None:
    return cosigned_at(head, key)


def _ask(head: Head, address: Address, old: int) -> bytes:
    """Return the signature lines for a head. Takes: `old`, how far the witness is thought to be."""
    leaves = head.leaves()
    for _ in range(_MOST_TRIES):
        proof = consistency_proof(leaves, old)
        body = b"old %d\n" % old + b"".join(b64encode(one) + b"\n" for one in proof) + b"\n" + head.note
        came = exchange(
            address.below("add-checkpoint"),
            method="POST",
            body=body,
            headers={"Content-Type": "text/plain; charset=utf-8"},
            deadline_s=DEADLINE_S,
            limit_bytes=_ANSWER_BYTES,
        )
        if came.status == 200:
            return came.body
        at = _size_of(came)
        if at is None:
            raise _refusal(came, head)
        if at > head.count:
            raise IntegrityError(
                f"the witness has seen {at} nodes of this run, and the ledger has {head.count}: it was rolled back",
                hint="do not rely on this ledger",
            )
        if at == old:
            raise IntegrityError(
                f"the witness has cosigned another ledger of this run with {at} nodes",
                hint="do not rely on this ledger: its key signed two stories",
            )
        old = at
    raise ServiceError("the witness names another size each time that it is asked")


def _size_of(came: Came) -> int | None:
    """Return how far the witness says that it is, None where that is not what it says."""
    if came.status != 409 or came.content_type.split(";")[0].strip().lower() != _SIZE_TYPE:
        return None
    text = came.body.removesuffix(b"\n")
    return int(text) if text.isdigit() and len(text) <= 16 else None


def _refusal(came: Came, head: Head) -> InputError | IntegrityError:
    if came.status == 404:
        return InputError(
            "the witness does not know this run",
            hint="give its operator what `interlock witness RUN --show-key` prints",
        )
    if came.status == 403:
        return InputError(
            "the witness trusts another key for this run",
            hint="give its operator what `interlock witness RUN --show-key` prints",
        )
    if came.status in (409, 422):
        return IntegrityError(
            f"the witness says that the ledger with {head.count} nodes does not extend what it has cosigned",
            hint="do not rely on this ledger",
        )
    return ServiceError(f"the witness answered with status {came.status}")


def _keep(path: str, note: bytes) -> None:
    """Append a cosigned head. Holds: it is on disk before the witness's word is passed on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        if os.write(descriptor, note) != len(note):
            raise InputError(f"`{path}` could not take the whole head", hint="is there room left?")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
