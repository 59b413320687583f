"""The far side of the proxy benchmark: one thread, HTTP and HTTPS, and names; started by proxy_world.py.

Bare sockets, since whatever this program costs is part of both sides and hides what stands between. `/bytes/N` is
answered with N bytes, any other request with 1 KB.
"""

import select
import socket
import ssl
import struct
import sys
from collections.abc import Iterator

ANSWER_BYTES = 1024
_BLOCK = memoryview(b"x" * (1 << 20))
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
_SMALL = _HEAD % ANSWER_BYTES + b"x" * ANSWER_BYTES
_WAITS = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Caller:
    """One connection. Takes: `secured`, whether its handshake is still to come."""

    def __init__(self, sock: socket.socket, *, secured: bool) -> None:
        self.sock = sock
        self.shaking = secured
        self.writing = False
        self._came = b""
        self._out: list[memoryview] = []

    def ready(self) -> bool:
        """Go on as far as the socket allows. Returns: False once it is over."""
        try:
            if self.shaking:
                assert isinstance(self.sock, ssl.SSLSocket)
                self.sock.do_handshake()
                self.shaking = False
            return self._send() and self._read()
        except _WAITS:
            return True
        except OSError:
            return False

    def _read(self) -> bool:
        while not self._out:
            came = self.sock.recv(1 << 16)
            if not came:
                return False
            self._came += came
            for answer in self._answers():
                self._out.extend(answer)
            self._send()
        return True

    def _answers(self) -> Iterator[list[memoryview]]:
        while (end := self._came.find(b"\r\n\r\n")) >= 0:
            head = self._came[:end]
            whole = end + 4 + _length(head)
            if len(self._came) < whole:
                return
            self._came = self._came[whole:]
            path = head.split(b" ", 2)[1]
            if not path.startswith(b"/bytes/"):
                yield [memoryview(_SMALL)]
                continue
            size = int(path[7:])
            blocks = [_BLOCK] * (size // len(_BLOCK))
            yield [memoryview(_HEAD % size), *blocks, _BLOCK[: size % len(_BLOCK)]]

    def _send(self) -> bool:
        self.writing = bool(self._out)
        while self._out:
            sent = self.sock.send(self._out[0])
            if sent < len(self._out[0]):
                self._out[0] = self._out[0][sent:]
            else:
                self._out.pop(0)
        self.writing = False
        return True


def _length(head: bytes) -> int:
    if not head.startswith(b"POST "):
        return 0
    at = head.lower().find(b"\ncontent-length:")
    return int(head[at + 16 :].split(b"\r", 1)[0]) if at >= 0 else 0


def _named(question: bytes, address: str) -> bytes:
    """Answer a question for any name: IPv4 addresses alone, all of them ours."""
    end = question.index(b"\0", 12) + 5
    kind = struct.unpack_from("!H", question, end - 4)[0]
    answer = b""
    if kind == 1:
        answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(address)
    return question[:2] + struct.pack("!HHHHH", 0x8180, 1, bool(answer), 0, 0) + question[12:end] + answer


def _listen(address: str, port: int) -> socket.socket:
    one = socket.create_server((address, port), backlog=4096)
    one.setblocking(False)
    return one


def serve(address: str, certificate: str) -> None:
    """Serve ports 80, 443 and 53 until killed. Takes: `certificate`, a PEM file with the key too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["http/1.1"])
    plain, secure = _listen(address, 80), _listen(address, 443)
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((address, 53))
    poll = select.epoll()
    for one in (plain, secure, names):
        poll.register(one, select.EPOLLIN)
    callers: dict[int, Caller] = {}
    print("ready", flush=True)
    while True:
        for number, _ in poll.poll():
            if number == names.fileno():
                question, asker = names.recvfrom(512)
                names.sendto(_named(question, address), asker)
            elif number in (plain.fileno(), secure.fileno()):
                secured = number == secure.fileno()
                sock, _ = (secure if secured else plain).accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if secured:
                    sock = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                callers[sock.fileno()] = Caller(sock, secured=secured)
                poll.register(sock, select.EPOLLIN)
            else:
                caller = callers[number]
                wrote = caller.writing
                if not caller.ready():
                    poll.unregister(number)
                    callers.pop(number).sock.close()
                elif caller.writing != wrote:
                    poll.modify(number, select.EPOLLIN | (select.EPOLLOUT if caller.writing else 0))


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
