"""The line between the monitor and the sandbox's first process: what is said over it, and what is heard."""

import contextlib
import os
import select
import socket
import struct
import time

from interlock.boundary.net.doors import MESSAGE_DESCRIPTORS
from interlock.boundary.plan import ExitStatus, OverlayError
from interlock.model.errors import BoundaryError, InputError

STOPPING_S = 5.0
"""The first process itself gives up earlier, and says so."""


class Line:
    """The monitor's end.

    Takes: the connected socket.
    Holds: `status`, how the command ended, once that was said; `stopped`, whether it was said that the command
    was stopped at the terminal, until the caller takes note; `ended`, whether the first process is gone.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.status: ExitStatus | None = None
        self.stopped = False
        self.ended = False
        self._channel = channel
        self._still: bool | None = None

    def fileno(self) -> int:
        """Return the descriptor to wait at."""
        return self._channel.fileno()

    def go(self) -> None:
        """Let the command begin. Raises: BrokenPipeError, if the first process is gone."""
        self._channel.send(b"go")

    def signal(self, number: int) -> None:
        """Have the command sent a signal."""
        self._say(b"s" + bytes((number,)))

    def stop_all(self) -> bool:
        """Have all processes but the first stopped. Returns: whether they stand still, or are gone."""
        self._still = None
        self._say(b"p")
        end = time.monotonic() + STOPPING_S
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        while self._still is None and not self.ended:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1e3):
                self.go_on()
                return False
            self.hear()
        return self._still is not False

    def go_on(self) -> None:
        """Have them all go on."""
        self._say(b"r")

    def gone(self) -> bool:
        """Say whether the first process is gone, without taking what it said before."""
        if not self.ended:
            poll = select.poll()
            poll.register(self._channel, 0)
            return bool(poll.poll(0))
        return True

    def hear(self) -> None:
        """Take one message; the descriptor is ready."""
        try:
            message = self._channel.recv(64)
        except ConnectionResetError:
            # It ended before it read our last word; its own last words wait behind this error.
            message = self._channel.recv(64)
        if message[:1] == b"X":
            code, number = struct.unpack_from("=ii", message, 1)
            self.status = ExitStatus(code=code, signal=number)
        elif message == b"T":
            self.stopped = True
        elif message in (b"P", b"F"):
            self._still = message == b"P"
        elif not message:
            self.ended = True

    def _say(self, message: bytes) -> None:
        with contextlib.suppress(OSError):
            self._channel.send(message)

    def close(self) -> None:
        """Close it; the first process ends by that."""
        self._channel.close()


def await_ready(channel: socket.socket) -> tuple[list[str], list[tuple[str, int]]]:
    """Wait until the first process has set everything up.

    Returns: its facts, and the descriptors of its doors with their tags.
    Raises: InputError, OverlayError or BoundaryError, as it tells.
    """
    doors: list[tuple[str, int]] = []
    try:
        while True:
            try:
                message, descriptors = _receive(channel)
            except ConnectionResetError:
                # It fell before it read our last word; its own last words wait behind this error.
                message, descriptors = _receive(channel)
            text = message[1:].decode("utf-8", "surrogateescape")
            if message[:1] == b"D":
                tags = text.split("\0")
                doors.extend(zip(tags, descriptors, strict=False))
                if len(tags) != len(descriptors):
                    raise BoundaryError(
                        "not all doors of the sandbox's network could be opened here",
                        hint="raise the limit of open files: ulimit -n",
                    )
            elif message[:1] == b"R":
                told, doors = doors, []
                return text.split("\0"), told
            else:
                raise _failure(text)
    finally:
        for _, descriptor in doors:
            os.close(descriptor)


def _receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    message, descriptors, _, _ = socket.recv_fds(
        channel, 1 << 16, MESSAGE_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
    )
    return message, descriptors


def _failure(text: str) -> BoundaryError | InputError:
    kind, what, hint = [*text.split("\0"), "", "", ""][:3]
    if kind == "input":
        return InputError(what, hint=hint)
    if kind == "overlay":
        return OverlayError(what, hint=hint)
    return BoundaryError(
        what or "the sandbox's first process ended early", hint=hint or "run `interlock doctor`"
    )
