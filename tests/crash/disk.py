"""A disk of the tests' own that remembers every block write and every flush, and can be as a loss of power leaves it.

A file system of one file (spoken over /dev/fuse by a child of ours) holds the disk's bytes; a loop device turns the
file into a block device, and a real ext4 is mounted from that. So what is recorded is what a kernel sends to a disk
with a write cache: writes, and flushes that make the writes before them last. Everything lives in a mount namespace
of the calling process, and goes with it.
Source: linux/fuse.h, linux/loop.h.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import signal
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from tests.crash.tracing import die_with_parent

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_libc.umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]

_NEW_MOUNTS, _PRIVATE = 0x20000, (1 << 18) | 16384
_GET_FREE, _CONFIGURE, _FLUSH_BUFFERS = 0x4C82, 0x4C0A, 0x1261
_AUTOCLEAR = 4
_FILE_INODE = 2
_RECORD = struct.Struct("<QI")
_FLUSHED = (1 << 64) - 1
BLOCK_BYTES = 4096


class DiskError(Exception):
    """This machine cannot have such a disk (no root, no FUSE, no loop device, no mkfs.ext4)."""


@dataclass(frozen=True)
class Write:
    """A write that reached the disk. Takes: `content`, None for a flush."""

    offset: int
    content: bytes | None


class RecordedDisk:
    """An ext4 disk, mounted at `top` while it is mounted.

    Takes: `top`, an empty folder; `options` of the mount.
    """

    def __init__(self, top: str, size_bytes: int = 24 << 20, options: str = "") -> None:
        self.top = top
        self.options = options
        self._image = mmap.mmap(-1, size_bytes)
        self._control = mmap.mmap(-1, 16)
        self._log = os.memfd_create("writes")
        self._base = tempfile.mkdtemp(prefix="il-disk-")
        try:
            self._daemon = self._serve()
            self._loop, self._device = _loop_over(f"{self._base}/disk")
            subprocess.run(
                ["mkfs.ext4", "-q", "-b", "4096", "-I", "256", "-J", "size=4", "-m", "0",
                 "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", "-O", "^metadata_csum_seed", self._device],
                check=True, capture_output=True,
            )  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as error:
            raise DiskError(str(error)) from error

    def mount(self) -> None:
        _mount(self._device, self.top, "ext4", self.options)

    def unmount(self) -> None:
        if _libc.umount2(self.top.encode(), 0) != 0:
            raise OSError(ctypes.get_errno(), f"unmount {self.top}")

    def content(self) -> bytes:
        """Return the bytes that the disk holds now, its cache included."""
        return bytes(self._image)

    def restore(self, content: bytes) -> None:
        """Put the disk's bytes back, while it is not mounted; the kernel keeps none of the old ones."""
        fcntl.ioctl(self._loop, _FLUSH_BUFFERS)
        self._image[:] = content
        fcntl.ioctl(self._loop, _FLUSH_BUFFERS)

    def record(self) -> None:
        """Begin to remember, and forget what was remembered."""
        os.ftruncate(self._log, 0)
        os.lseek(self._log, 0, os.SEEK_SET)
        self._control[:] = struct.pack("<QQ", 0, 1)

    def position(self) -> int:
        """Return how many writes and flushes have been recorded."""
        return int(struct.unpack_from("<Q", self._control)[0])

    @property
    def control(self) -> mmap.mmap:
        """The memory in which other processes read the position: its first eight bytes."""
        return self._control

    def recorded(self) -> list[Write]:
        """End the recording. Returns: what reached the disk, in its order."""
        count = self.position()
        self._control[:] = struct.pack("<QQ", 0, 0)
        found = []
        with open(os.dup(self._log), "rb") as log:
            log.seek(0)
            for _ in range(count):
                offset, length = _RECORD.unpack(log.read(_RECORD.size))
                found.append(Write(offset, None if offset == _FLUSHED else log.read(length)))
        return found

    def close(self) -> None:
        if os.path.ismount(self.top):
            _libc.umount2(self.top.encode(), 2)
        os.close(self._loop)
        _libc.umount2(self._base.encode(), 2)
        os.kill(self._daemon, signal.SIGKILL)
        os.waitpid(self._daemon, 0)
        os.rmdir(self._base)
        os.close(self._log)

    def _serve(self) -> int:
        """Mount the file, and have a child serve it.

        The child stays outside of our mounts. Inside, it could be the last there when we are killed: its own end
        would have to write the disk back first, through itself, and neither would ever end.
        """
        line = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        waiting, mounted = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent()
                os.close(mounted)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                if os.read(waiting, 1):
                    _OneFile(line, self._image, self._control, self._log).serve()
            finally:
                os._exit(0)
        os.close(waiting)
        try:
            _own_mounts()
            _mount("il-disk", self._base, "fuse", f"fd={line},rootmode=40000,user_id=0,group_id=0")
            os.write(mounted, b"1")
        finally:
            os.close(mounted)
            os.close(line)
        return pid


def image_after(base: bytes, writes: Sequence[Write], dice: random.Random | None) -> bytes:
    """Return the disk's bytes as a loss of power after these writes leaves them.

    Takes: `dice`, None where all of them are there; else of those that no flush made last some are lost, and some
    cut off after a part.
    """
    image = bytearray(base)
    flushed = max((number for number, write in enumerate(writes) if write.content is None), default=-1)
    for number, write in enumerate(writes):
        content = write.content
        if content is None:
            continue
        if dice is not None and number > flushed:
            kept = dice.random()
            if kept < 0.5:
                continue
            if kept < 0.6:
                content = content[: dice.randrange(len(content) // BLOCK_BYTES + 1) * BLOCK_BYTES]
        image[write.offset : write.offset + len(content)] = content
    return bytes(image)


def _own_mounts() -> None:
    if _libc.unshare(_NEW_MOUNTS) != 0:
        raise OSError(ctypes.get_errno(), "unshare the mounts")
    if _libc.mount(b"none", b"/", None, _PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "make the mounts private")


def _mount(source: str, target: str, kind: str, options: str) -> None:
    if _libc.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind} at {target}: {os.strerror(code)}")


def _loop_over(path: str) -> tuple[int, str]:
    """Return a loop device over a file, open, and its path; the kernel frees it when the last user is gone."""
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    backing = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(50):
            device = f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}"
            loop = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            # fd, block size, then loop_info64, of which only the flags are set
            wanted = bytearray(struct.pack("<II232x64x", backing, BLOCK_BYTES))
            struct.pack_into("<I", wanted, 8 + 52, _AUTOCLEAR)
            try:
                fcntl.ioctl(loop, _CONFIGURE, bytes(wanted))
            except OSError as error:
                os.close(loop)
                if error.errno != errno.EBUSY:
                    raise
                continue
            return loop, device
        raise OSError(errno.EBUSY, "no free loop device")
    finally:
        os.close(backing)
        os.close(control)


class _OneFile:
    """The file system of one file, as far as a loop device asks."""

    _IN = struct.Struct("<IIQQIIII")
    _OUT = struct.Struct("<IiQ")

    def __init__(self, line: int, image: mmap.mmap, control: mmap.mmap, log: int) -> None:
        self._line, self._image, self._control, self._log = line, image, control, log

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self._line, (1 << 20) + 4096)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return  # unmounted
            _, code, unique, node, *_ = self._IN.unpack_from(request)
            answer = self._answer(code, node, request[self._IN.size :])
            if answer is None:
                continue
            body, fault = (answer, 0) if isinstance(answer, bytes) else (b"", -answer)
            os.write(self._line, self._OUT.pack(self._OUT.size + len(body), fault, unique) + body)

    def _answer(self, code: int, node: int, rest: bytes) -> bytes | int | None:
        match code:
            case 2 | 36 | 42:  # forget, interrupt
                return None
            case 26:  # init: version, read-ahead, flags (big writes, many pages), background, write size, time, pages
                return struct.pack(
                    "<IIIIHHIIHHI28x", 7, 31, 0, 1 << 5 | 1 << 22, 16, 12, 1 << 20, 1, 256, 0, 0
                )
            case 1:  # look up
                if rest.rstrip(b"\0") != b"disk":
                    return errno.ENOENT
                return struct.pack("<QQQQII", _FILE_INODE, 0, 3600, 3600, 0, 0) + self._attributes(
                    _FILE_INODE
                )
            case 3 | 4:  # attributes, read or set
                return struct.pack("<QII", 3600, 0, 0) + self._attributes(node)
            case 14 | 27:  # open: without a cache of its own, so that the bytes can be put back
                return struct.pack("<QII", 1, 1, 0)
            case 15:  # read
                _, offset, size = struct.unpack_from("<QQI", rest)
                return self._image[offset : offset + size]
            case 16:  # write
                _, offset, size = struct.unpack_from("<QQI", rest)
                content = rest[40 : 40 + size]
                self._image[offset : offset + size] = content
                self._note(offset, content)
                return struct.pack("<II", size, 0)
            case 20:  # sync: the disk's cache is flushed
                self._note(_FLUSHED, b"")
                return b""
            case 18 | 25 | 29 | 34:  # release, flush of a descriptor, access
                return b""
            case _:
                return errno.ENOSYS

    def _note(self, offset: int, content: bytes) -> None:
        count, recording = struct.unpack("<QQ", self._control)
        if recording:
            os.write(self._log, _RECORD.pack(offset, len(content)) + content)
            self._control[:8] = struct.pack("<Q", count + 1)

    def _attributes(self, node: int) -> bytes:
        size, mode = (len(self._image), 0o100600) if node == _FILE_INODE else (0, 0o040700)
        # inode, size, blocks, three times, their nanoseconds, mode, links, owner, group, device, block size, flags
        return struct.pack(
            "<QQQQQQIIIIIIIIII", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0
        )
