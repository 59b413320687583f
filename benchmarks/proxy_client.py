"""The client of the proxy benchmark: the same program on every side; copied there and told what to measure by lines.

Bare blocking sockets, so that its own cost is small. It reads a JSON list from a line of standard input, a verb and
its arguments, and answers with a line of JSON: times in microseconds. The environment's SSL_CERT_FILE says whom it
trusts; its first argument may be the HOST:PORT of a proxy.
"""

import itertools
import json
import select
import socket
import ssl
import sys
import time

_WAITS = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_BUFFER_BYTES = 1 << 20


class Link:
    """One connection that is kept alive. Takes: `proxy`, HOST:PORT or nothing."""

    def __init__(self, scheme: str, host: str, proxy: str) -> None:
        self._start = f"{scheme}://{host}" if proxy and scheme == "http" else ""
        self._host = host
        place, _, port = proxy.partition(":")
        own = 443 if scheme == "https" else 80
        sock = socket.create_connection((place, int(port)) if proxy else (host, own))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self.buffer)
        self._have = self._whole = 0
        if scheme == "https":
            if proxy:
                sock.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
                said = b""
                while b"\r\n\r\n" not in said:
                    said += sock.recv(1)
            self.sock = CONTEXT.wrap_socket(sock, server_hostname=host)

    def request(self, path: str, body: bytes = b"") -> bytes:
        """Return a request as bytes."""
        method = "POST" if body else "GET"
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {self._start}{path} HTTP/1.1\r\nHost: {self._host}\r\nAccept: */*\r\n{length}\r\n"
        return head.encode() + body

    def ask(self, request: bytes) -> None:
        """Send a request and read its whole answer."""
        self.sock.sendall(request)
        self._have = self._whole = 0
        while not self.came():
            pass

    def came(self) -> bool:
        """Read once. Returns: whether the answer is whole."""
        if self._whole:
            self._have += self._more(self._view)
        else:
            self._have += self._more(self._view[self._have :])
            end = self.buffer.find(b"\r\n\r\n", 0, self._have)
            if end < 0:
                return False
            head = bytes(self._view[:end])
            at = head.lower().find(b"\ncontent-length:")
            if not head.startswith(b"HTTP/1.1 200 ") or at < 0:
                raise ConnectionError(f"an answer of another kind: {head[:200]!r}")
            self._whole = end + 4 + int(head[at + 16 :].split(b"\r", 1)[0])
        if self._have < self._whole:
            return False
        self._have = self._whole = 0
        return True

    def _more(self, into: memoryview) -> int:
        count = self.sock.recv_into(into)
        if not count:
            raise ConnectionError("the connection was closed within an answer")
        return count


CONTEXT = ssl.create_default_context()
PROXY = sys.argv[1] if len(sys.argv) > 1 else ""
_kept: dict[tuple[str, str], Link] = {}
_held: list[Link] = []
_numbers = itertools.count()


def _link(scheme: str, host: str) -> Link:
    if (scheme, host) not in _kept:
        _kept[scheme, host] = Link(scheme, host, PROXY)
    return _kept[scheme, host]


def latency(scheme: str, host: str, count: int, body_bytes: int = 0) -> list[float]:
    """Make requests one after the other on one connection. Returns: the time of each."""
    link = _link(scheme, host)
    body = b"b" * body_bytes
    times_ns = []
    for _ in range(count):
        # Never the same twice: what was decided of one must not be the answer to the next.
        request = link.request(f"/small/{next(_numbers)}", body)
        began_ns = time.perf_counter_ns()
        link.ask(request)
        times_ns.append(time.perf_counter_ns() - began_ns)
    return [spent / 1e3 for spent in times_ns]


def fresh(scheme: str, host: str, count: int) -> list[float]:
    """Make requests on a connection each, the name looked up each time. Returns: the time of each."""
    times = []
    for _ in range(count):
        began_ns = time.perf_counter_ns()
        link = Link(scheme, host, PROXY)
        link.ask(link.request(f"/small/{next(_numbers)}"))
        times.append((time.perf_counter_ns() - began_ns) / 1e3)
        link.sock.close()
    return times


def download(scheme: str, host: str, size_bytes: int) -> list[float]:
    """Read one large answer. Returns: its time."""
    link = _link(scheme, host)
    began_ns = time.perf_counter_ns()
    link.ask(link.request(f"/bytes/{size_bytes}"))
    return [(time.perf_counter_ns() - began_ns) / 1e3]


def hold(scheme: str, host: str, count: int) -> list[float]:
    """Open connections, ask once on each and keep them open. Returns: the time until all were asked."""
    began_ns = time.perf_counter_ns()
    for _ in range(count):
        link = Link(scheme, host, PROXY)
        link.ask(link.request(f"/small/{next(_numbers)}"))
        # A thousand large buffers would crowd the machine.
        link.buffer = bytearray()
        link._view = memoryview(b"")
        _held.append(link)
    return [(time.perf_counter_ns() - began_ns) / 1e3]


def let_go() -> list[float]:
    """Close what is held."""
    for link in _held:
        link.sock.close()
    _held.clear()
    return []


def crowd(scheme: str, host: str, count: int, each: int) -> list[float]:
    """Let many clients ask at once, each its next request as soon as it is answered.

    Returns: the time of all together, then of each request.
    """
    links = [Link(scheme, host, PROXY) for _ in range(count)]
    poll = select.epoll()
    by_number = {link.sock.fileno(): link for link in links}
    for number, link in by_number.items():
        link.sock.setblocking(False)
        poll.register(number, select.EPOLLIN)
    left = dict.fromkeys(by_number, each)
    sent_ns: dict[int, int] = {}
    times = []
    began_ns = time.perf_counter_ns()
    for number, link in by_number.items():
        sent_ns[number] = time.perf_counter_ns()
        link.sock.send(link.request(f"/small/{next(_numbers)}"))
    while sent_ns:
        for number, _ in poll.poll():
            link = by_number[number]
            try:
                while not link.came():
                    pass
            except _WAITS:
                continue
            now_ns = time.perf_counter_ns()
            times.append((now_ns - sent_ns.pop(number)) / 1e3)
            left[number] -= 1
            if left[number]:
                sent_ns[number] = now_ns
                link.sock.send(link.request(f"/small/{next(_numbers)}"))
    whole = (time.perf_counter_ns() - began_ns) / 1e3
    for link in links:
        link.sock.close()
    return [whole, *times]


VERBS = {verb.__name__: verb for verb in (latency, fresh, download, hold, let_go, crowd)}


def main() -> None:
    """Answer lines until there are no more."""
    for line in sys.stdin:
        verb, *words = json.loads(line)
        try:
            answer: object = [round(spent, 1) for spent in VERBS[verb](*words)]
        except OSError as error:
            _kept.clear()
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
