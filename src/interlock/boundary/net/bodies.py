"""Bodies: a request's is spooled whole before it is decided; an answer's is digested as it passes."""

import errno
import hashlib
import os
from collections.abc import Iterator

from interlock.boundary.net.inflating import decode, inflate, inflate_sent
from interlock.boundary.net.plan import NetLimits

CHUNK_BYTES = 256 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class BodyTooLarge(Exception):
    """The body passed `NetLimits.body_bytes`; it is answered with `status`."""

    status = 413


class SpoolFailed(Exception):
    """The run's folder could not take or give back a body.

    Takes: `status`, what the request is answered with: 507 where the disk is full, else 503.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the run's folder cannot hold the body: {os.strerror(error.errno or errno.EIO)}")
        self.status = 507 if error.errno in _FULL else 503


class Spool:
    """A request's body: in memory while small, then in a file without a name in the run's folder.

    Holds: after `finish` it does not change; the file is gone with the last descriptor, whatever happens to us.
    """

    __slots__ = ("_fd", "_folder", "_hash", "_limits", "_memory", "digest", "size_bytes")

    def __init__(self, folder: str, limits: NetLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._memory = bytearray()
        self._fd = -1
        self._hash = hashlib.sha256()
        self.size_bytes = 0
        self.digest = ""

    def append(self, chunk: bytes) -> None:
        """Take a part.

        Raises: BodyTooLarge, beyond the limit; SpoolFailed, on a disk that is full or broken.
        """
        size_bytes = self.size_bytes + len(chunk)
        if size_bytes > self._limits.body_bytes:
            raise BodyTooLarge(f"the body is larger than {self._limits.body_bytes} bytes")
        if self._fd < 0 and size_bytes <= self._limits.memory_bytes:
            self._memory += chunk
        else:
            try:
                if self._fd < 0:
                    self._fd = _nameless(self._folder)
                    _write_all(self._fd, self._memory)
                    self._memory = bytearray()
                _write_all(self._fd, chunk)
            except OSError as error:
                raise SpoolFailed(error) from None
        self._hash.update(chunk)
        self.size_bytes = size_bytes

    def finish(self) -> None:
        """Say that it is whole: `digest` is there from now on, `""` for an empty body."""
        self.digest = self._hash.hexdigest() if self.size_bytes else ""

    def chunks(self, size_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Yield it in parts, in order, to be sent on.

        Raises: SpoolFailed.
        """
        at = 0
        while at < self.size_bytes:
            piece = self._read(at, size_bytes)
            yield piece
            at += len(piece)

    def text(self, content_type: str, content_encoding: str) -> str | None:
        """Return the whole body decompressed and decoded; None where it is not text or beyond the limits."""
        if self.size_bytes > (_bound(self._limits) if content_encoding else self._limits.text_bytes):
            return None
        data = b"".join(self.chunks())
        if content_encoding:
            inflated = inflate_sent(data, content_encoding, _bound(self._limits))
            if inflated is None or len(inflated) > self._limits.text_bytes:
                return None
            data = inflated
        return decode(data, content_type)

    def save(self, path: str) -> None:
        """Make it a file of its own at `path`, durable, for a request that is parked.

        Raises: SpoolFailed; then nothing stands at `path` that did not before.
        """
        try:
            self._place(path)
            folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise SpoolFailed(error) from None

    def close(self) -> None:
        """Let go of what it holds."""
        self._memory = bytearray()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read(self, at: int, size_bytes: int) -> bytes:
        if self._fd < 0:
            piece = bytes(self._memory[at : at + size_bytes])
        else:
            try:
                piece = os.pread(self._fd, min(size_bytes, self.size_bytes - at), at)
            except OSError as error:
                raise SpoolFailed(error) from None
        if not piece:
            raise SpoolFailed(OSError(errno.EIO, "short"))
        return piece

    def _place(self, path: str) -> None:
        if self._fd >= 0:
            os.fsync(self._fd)
            try:
                # a directory descriptor makes os.link follow the link in /proc, which names the file that has no name
                os.link(f"/proc/self/fd/{self._fd}", path, src_dir_fd=self._fd, follow_symlinks=True)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.ENOENT, errno.EPERM, errno.EACCES):
                    raise
            else:
                return
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            for piece in self.chunks():
                _write_all(target, piece)
            os.fsync(target)
        except (OSError, SpoolFailed):
            os.unlink(path)
            raise
        finally:
            os.close(target)


class Kept:
    """An answer's body as it passes: its digest and its size, and all of it while within `NetLimits.text_bytes`."""

    __slots__ = ("_hash", "_held", "_limits", "size_bytes")

    def __init__(self, limits: NetLimits) -> None:
        self._limits = limits
        self._held = bytearray()
        self._hash = hashlib.sha256()
        self.size_bytes = 0

    def append(self, chunk: bytes) -> None:
        """Take note of a part that passes."""
        self._hash.update(chunk)
        self.size_bytes += len(chunk)
        if self.size_bytes <= self._limits.text_bytes:
            self._held += chunk
        elif self._held:
            self._held = bytearray()  # a part of it is of no use: thousands of downloads at once hold nothing

    @property
    def digest(self) -> str:
        """Return the SHA-256 of what passed so far, `""` for nothing."""
        return self._hash.hexdigest() if self.size_bytes else ""

    def body(self, content_encoding: str) -> bytes | None:
        """Return the whole body decompressed; None where it is beyond the limits or cannot be decompressed."""
        if self.size_bytes > len(self._held):
            return None
        if not content_encoding:
            return bytes(self._held)
        found = inflate(bytes(self._held), content_encoding, _bound(self._limits))
        return found if found is not None and len(found) <= self._limits.text_bytes else None

    def text(self, content_type: str, content_encoding: str) -> str | None:
        """Return the whole body decompressed and decoded; None where it is not text or beyond the limits."""
        found = self.body(content_encoding)
        return None if found is None else decode(found, content_type)


def _bound(limits: NetLimits) -> int:
    """Return what a layer may hold: no encoding makes a text much larger, so more than this is none."""
    return min(limits.inflated_bytes, 2 * limits.text_bytes)


def _nameless(folder: str) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            raise
    import tempfile  # slow to import, and hardly ever needed

    fd, path = tempfile.mkstemp(prefix="body-", dir=folder)  # a file system without O_TMPFILE
    os.unlink(path)
    return fd


def _write_all(fd: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
