"""The way from another terminal to the living monitor of a run: a socket in the run's folder.

It is reached only through the run's folder (0700, hidden inside), by the same user or root, and never from inside a
sandbox. What is said there is in `control_protocol`. A client that goes away, sends garbage or is slow costs the run
nothing: nothing here waits for one.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from interlock.boundary.waiting import Source
from interlock.model.errors import InputError, InterlockError, StuckError

if TYPE_CHECKING:
    from interlock.runtime.control_protocol import ControlRequest
    from interlock.runtime.folders import RunFolder

SOCKET = "control"
CLIENTS = 8
IDLE_S = 30.0
"""A client that neither finished its request nor read its answer for so long makes room for the next one."""
FAREWELL_S = 0.5
"""How long the end of a run waits, in all, for clients that still read."""
_PATIENCE_S = 2.0
_READ_BYTES = 64 * 1024
_NOTES_BYTES = 256 * 1024
"""Notes beyond what a slow client left unread are dropped: only the final answer counts."""

Serve = Callable[["ControlRequest", "Reply"], None]
"""Does what a request asks for, on the monitor's thread, and answers through the reply, at once or later.

An InputError or another InterlockError of it is told to the client, and the run goes on; all else goes up too, and so
does the loss of the ledger.
"""


@contextmanager
def _near(folder: str) -> Iterator[str]:
    """Give a path of the socket that fits into an address (107 bytes), however long the folder's own is."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


class Reply:
    """The answer to one request: notes, then once `finish` or `fail`; it may outlive the call of `Serve`."""

    def __init__(self, client: _Client) -> None:
        self._client = client

    @property
    def gone(self) -> bool:
        """Whether nobody reads any more: the client went away, or has its final answer."""
        return self._client.closed or self._client.answered

    def note(self, text: str) -> None:
        """Tell of progress, in one line; it never waits."""
        from interlock.runtime.control_protocol import NOTE_CHARACTERS, write_line

        if not self.gone and len(self._client.out) < _NOTES_BYTES:
            self._client.send(write_line({"note": text[:NOTE_CHARACTERS]}))

    def finish(self, answer: Mapping[str, object] | None = None) -> None:
        """Say that it is done. Takes: `answer`, JSON values with text keys, none of them `ok`."""
        from interlock.runtime.control_protocol import REPLY_BYTES, write_line

        line = write_line({"ok": True, **(answer or {})})
        if len(line) > REPLY_BYTES:
            self.fail(InputError("the answer is too long", hint="name the files or folders that are meant"))
        elif not self.gone:
            self._client.conclude(line)

    def fail(self, error: BaseException) -> None:
        """Say that it cannot be done."""
        from interlock.runtime.control_protocol import write_error, write_line

        if not self.gone:
            self._client.conclude(write_line(write_error(error)))


class _Client:
    """One connection: a request in, an answer out. Takes: `watch`, the epoll that reports on it."""

    def __init__(self, sock: socket.socket, watch: select.epoll) -> None:
        self.sock = sock
        self.read = bytearray()
        self.out = bytearray()
        self.asked = self.answered = self.closed = False
        self.since = time.monotonic()
        self._watch = watch
        watch.register(sock.fileno(), select.EPOLLIN)

    @property
    def idle_s(self) -> float:
        """For how long it has been its own turn, 0 where it is ours."""
        return time.monotonic() - self.since if self.answered or not self.asked else 0.0

    def send(self, line: bytes) -> None:
        self.out += line
        self.flush()

    def conclude(self, line: bytes) -> None:
        self.asked = self.answered = True
        self.since = time.monotonic()
        self.send(line)

    def flush(self) -> None:
        """Write what can be written now; close once the final answer is out."""
        try:
            while self.out:
                sent = self.sock.send(self.out, socket.MSG_NOSIGNAL)
                del self.out[:sent]
                self.since = time.monotonic()
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if self.answered and not self.out:
            self.close()
            return
        interest = (0 if self.asked else select.EPOLLIN) | (select.EPOLLOUT if self.out else 0)
        self._watch.modify(self.sock.fileno(), interest)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._watch.unregister(self.sock.fileno())
            self.sock.close()


class Control:
    """The monitor's end.

    Takes: `folder`, of the run; `run_id`; `serve`, which gets each request.
    Raises: OSError, where the socket cannot be made: the run can then not be reached, and loses nothing else.
    Holds: the socket is 0600 from its first moment, and gone after `close`.
    """

    def __init__(self, folder: str, run_id: str, serve: Serve) -> None:
        self._folder = folder
        self._run_id = run_id
        self._serve = serve
        self._clients: dict[int, _Client] = {}
        self._open = True
        self._closed = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            # Linux takes the mode of the file from the socket's own.
            os.fchmod(self._listener.fileno(), 0o600)
            with _near(folder) as path:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                self._listener.bind(path)
            self._listener.listen(CLIENTS)
            self._watch = select.epoll()
            self._watch.register(self._listener.fileno(), select.EPOLLIN)
        except OSError:
            self._listener.close()
            raise

    @property
    def descriptor(self) -> int:
        """A descriptor that can be read whenever `react` has something to do."""
        return self._watch.fileno()

    def source(self) -> Source:
        """Return what the sandbox waits for. It rests, so that clients in a flood cost the run next to nothing."""
        return Source(descriptor=self.descriptor, react=self.react, rests=True)

    def react(self) -> None:
        """Take in and give out what can be without waiting, and serve the requests that are whole.

        Raises: what `serve` raised, but for errors that are the request's own.
        """
        knocked = False
        for descriptor, events in self._watch.poll(0):
            if client := self._clients.get(descriptor):
                self._attend(client, events)
            else:
                knocked = True
        self._forget()
        if knocked and self._open:
            self._welcome()  # last: whoever went away has made room

    def _welcome(self) -> None:
        for _ in range(max(1, CLIENTS - len(self._clients))):
            try:
                sock, _ = self._listener.accept()
            except OSError:
                break  # nobody any more, or no descriptor left: whoever waits is asked for again
            sock.setblocking(False)
            try:
                refusal = _stranger(sock) or self._crowded()
                client = _Client(sock, self._watch)
            except OSError:
                sock.close()
                continue
            self._clients[sock.fileno()] = client
            if refusal is not None:
                Reply(client).fail(refusal)
        self._forget()

    def _crowded(self) -> InputError | None:
        """Make room for one more, if it can be made."""
        if len(self._clients) < CLIENTS:
            return None
        longest = max(self._clients.values(), key=lambda one: one.idle_s)
        if longest.idle_s > IDLE_S:
            longest.close()
            self._forget()
            return None
        return InputError(
            f"{CLIENTS} others are talking to the monitor of the run {self._run_id} already",
            hint="wait until one is done, then try again",
        )

    def _attend(self, client: _Client, events: int) -> None:
        gone = events & (select.EPOLLHUP | select.EPOLLERR)
        if events & select.EPOLLIN and not client.asked:
            self._read(client)
            while events & select.EPOLLHUP and not (client.asked or client.closed):
                self._read(client)  # all that it left
        if gone:
            client.close()  # at once: it makes room
        elif events & select.EPOLLOUT:
            client.flush()

    def _read(self, client: _Client) -> None:
        from interlock.runtime.control_protocol import ANSWERS_BYTES, SHORTER, TOO_LONG

        try:
            data = client.sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.since = time.monotonic()
        line, newline, _ = data.partition(b"\n")
        client.read += line
        if len(client.read) > ANSWERS_BYTES:
            Reply(client).fail(InputError(TOO_LONG, hint=SHORTER))
        elif newline:
            self._take(client, bytes(client.read))
        elif not data:
            client.close()

    def _take(self, client: _Client, line: bytes) -> None:
        """Serve a request. Holds: an error of the request's own is told, and nothing else of it."""
        from interlock.runtime.control_protocol import read_request

        client.asked = True
        client.read.clear()
        client.flush()
        reply = Reply(client)
        try:
            self._serve(read_request(line), reply)
        except InterlockError as error:
            from interlock.runtime.performer import LedgerLost

            reply.fail(error)
            if isinstance(error, LedgerLost):
                raise
        except BaseException as error:
            reply.fail(error)
            raise

    def _forget(self) -> None:
        self._clients = {number: one for number, one in self._clients.items() if not one.closed}

    def shut(self) -> None:
        """Take no more requests: the command is gone. Answers that are owed can still be given."""
        if not self._open:
            return
        over = InputError(
            f"the command of the run {self._run_id} has ended, and its monitor resolves what it did",
            hint=f"wait until it is done, then: interlock show {self._run_id}",
        )
        self._welcome()
        self._open = False
        self._watch.unregister(self._listener.fileno())
        self._listener.close()
        with suppress(OSError), _near(self._folder) as path:
            os.unlink(path)
        for client in self._clients.values():
            if not client.asked:
                Reply(client).fail(over)
        self._forget()

    def close(self) -> None:
        """End all of it; a request without an answer is told so. May be called again."""
        if self._closed:
            return
        self.shut()
        self._closed = True
        cut = StuckError(
            f"the run {self._run_id} ended before this was done",
            hint=f"see what became of it: interlock show {self._run_id}",
        )
        for client in self._clients.values():
            Reply(client).fail(cut)
        end = time.monotonic() + FAREWELL_S
        self._forget()
        while self._clients and (left := end - time.monotonic()) > 0:
            for descriptor, events in self._watch.poll(left):
                self._attend(self._clients[descriptor], events)
            self._forget()
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._watch.close()


def _stranger(sock: socket.socket) -> InputError | None:
    """Return why whoever is at the other end may not ask, None if it may.

    The run's folder keeps strangers out already; this is a second lock. A sandbox has a user namespace of its own.
    """
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    own = os.geteuid()
    if uid not in (own, 0):
        return InputError("the run belongs to another user", hint="ask as that user, or as root")
    if uid != own:
        return None  # root of the host: inside a sandbox that an ordinary user started there is none
    try:
        same = os.path.samestat(os.stat(f"/proc/{pid}/ns/user"), os.stat("/proc/self/ns/user"))
    except OSError:
        same = False
    if same:
        return None
    return InputError(
        "a run cannot be steered from inside a sandbox", hint="ask from where the run was started"
    )


def ask(
    folder: RunFolder, request: Mapping[str, object], note: Callable[[str], None]
) -> Mapping[str, object]:
    """Ask the living monitor of a run, and wait for its final answer.

    Takes: `request`, from `control_protocol.write_request`; `note`, called with each line of progress.
    Raises: InputError, where no monitor listens; StuckError, where it went away before its answer; the error that it
    answered with. Whoever interrupts this disturbs nothing: the monitor goes on with what it was asked.
    """
    from interlock.runtime import control_protocol as words

    see = f"see what became of it: interlock show {folder.run_id}"
    line = words.write_line(request)
    if len(line) > words.ANSWERS_BYTES:
        raise InputError(words.TOO_LONG, hint=words.SHORTER)
    with _connect(folder) as sock:
        with suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(line, socket.MSG_NOSIGNAL)  # whoever refuses unread says why
        if not select.select([sock], [], [], _PATIENCE_S)[0]:
            note("waiting for the run's monitor")
        with sock.makefile("rb") as lines:
            while True:
                try:
                    answer = lines.readline(words.REPLY_BYTES + 1)
                except ConnectionResetError:
                    answer = b""
                if not answer.endswith(b"\n"):
                    raise StuckError(
                        f"the monitor of the run {folder.run_id} went away before it answered", hint=see
                    )
                said = words.read_reply(answer)
                if not isinstance(said, str):
                    return said
                note(said)


def _connect(folder: RunFolder) -> socket.socket:
    from interlock.runtime.folders import is_locked

    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _near(folder.path) as path:
            sock.connect(path)
    except OSError as error:
        sock.close()
        if is_locked(folder.path):
            raise InputError(
                f"the run {folder.run_id} cannot be reached: another process resolves it, or it has no socket",
                hint=f"wait until it is done, then: interlock show {folder.run_id}",
            ) from error
        if not folder.sealed:
            # Its command ended while somebody was still answering: nothing is lost.
            raise InputError(
                f"the run {folder.run_id} is not under way: its command has ended, and what it did is held",
                hint=f"resolve it: interlock review {folder.run_id}",
            ) from error
        raise InputError(
            f"the run {folder.run_id} is not under way",
            hint=f"the run is over: interlock show {folder.run_id}",
        ) from error
    except KeyboardInterrupt:
        sock.close()
        raise
    return sock
