"""What was read, read once more from the host: for a person's or an oracle's eyes, never for a verdict."""

import os

READ_BYTES = 1_000_000


def host_text(path: bytes, offset: int = 0, length: int = READ_BYTES + 1) -> str | None:
    """Return a regular file's text, or a part of it; None where it is none, too large, or behind a link."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.pread(file, min(length, READ_BYTES + 1), offset)
        return data.decode("utf-8") if len(data) <= READ_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(file)


def kept_text(inbound: str, kept: str) -> str | None:
    """Return an answer's body. Takes: `inbound`, the run's file of bodies; `kept`, `offset+length` there."""
    offset, _, length = kept.partition("+")
    if not (offset.isdecimal() and length.isdecimal()):
        return None
    return host_text(os.fsencode(inbound), int(offset), int(length))
