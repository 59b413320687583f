"""Heads in a file: whatever keeps files out of the writer's reach is a witness."""

import fcntl
import os

from interlock.model.errors import InputError
from interlock.witness.reading import Head, heads_in, read_head


def file_head(ledger: str, run_id: str, path: str) -> tuple[Head, bool]:
    """Append a ledger's newest head to a file of heads, once the ledger is seen to extend all that stand there.

    Returns: the head, and whether it was new to the file. Nothing is ever written over; it is on disk on return.
    Raises: InputError, where the file cannot be written or is none of this run's; IntegrityError, where the ledger
    does not extend what the file holds: it was rolled back, or tells another story.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise InputError(
            f"cannot write `{path}`: {error.strerror}", hint="name a file, or a folder that is there"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        seen = heads_in(path, run_id)
        head = read_head(ledger, seen)
        if any(one.count >= head.count for one in seen):
            return head, False
        written = os.write(descriptor, head.note)
        if written != len(head.note):
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
            raise InputError(f"`{path}` could not take the whole head", hint="is there room left?")
        os.fsync(descriptor)
        return head, True
    finally:
        os.close(descriptor)
