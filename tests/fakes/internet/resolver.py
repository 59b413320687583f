"""The fake internet's name servers: each question is written down before it is answered."""

import socket
import struct
import threading

from tests.fakes.internet.journal import Journal
from tests.fakes.internet.names import MOVING, PLACES, PUBLIC_RESOLVERS, RESOLVER4, RESOLVER6

_A, _AAAA = 1, 28
_FREEBIND6 = 78


class Resolver:
    """Answers from the tables of `names`, over UDP and TCP."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._asked: dict[tuple[str, int], int] = {}

    def serve(self) -> None:
        """Listen on every name server's address."""
        for address in (RESOLVER4, RESOLVER6, *PUBLIC_RESOLVERS):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            packets = socket.socket(family, socket.SOCK_DGRAM)
            if family == socket.AF_INET6:
                packets.setsockopt(socket.IPPROTO_IPV6, _FREEBIND6, 1)
            packets.bind((address, 53))
            threading.Thread(target=self._packets, args=(packets, address), daemon=True).start()
        for family, every in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            door = socket.socket(family)
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            door.bind((every, 53))
            door.listen(64)
            threading.Thread(target=self._streams, args=(door,), daemon=True).start()

    def _packets(self, link: socket.socket, address: str) -> None:
        while True:
            question, sender = link.recvfrom(4096)
            answer = self.answer(question, "udp", address)
            if answer:
                link.sendto(answer, sender)

    def _streams(self, door: socket.socket) -> None:
        while True:
            link, _ = door.accept()
            threading.Thread(target=self._stream, args=(link,), daemon=True).start()

    def _stream(self, link: socket.socket) -> None:
        address = link.getsockname()[0]
        with link:
            link.settimeout(5)
            try:
                while len(head := link.recv(2)) == 2:
                    answer = self.answer(link.recv(struct.unpack("!H", head)[0]), "tcp", address)
                    link.sendall(struct.pack("!H", len(answer)) + answer)
            except OSError:
                return

    def answer(self, question: bytes, by: str, address: str) -> bytes:
        """Write a question down and return the answer, "" for what is none."""
        try:
            at, labels = 12, []
            while question[at]:
                labels.append(question[at + 1 : at + 1 + question[at]].decode("latin-1"))
                at += question[at] + 1
            kind = struct.unpack_from("!H", question, at + 1)[0]
        except (IndexError, struct.error):
            self._journal.note("dns", name="", type=0, by=by, address=address, raw=question[:200])
            return b""
        name = ".".join(labels).lower()
        self._journal.note("dns", name=name, type=kind, by=by, address=address)
        found = self._addresses(name, kind)
        known = name in PLACES or name in MOVING
        answers = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(one)) + one
            for one in (socket.inet_pton(socket.AF_INET if kind == _A else socket.AF_INET6, a) for a in found)
        )
        flags = 0x8180 if known else 0x8183
        head = question[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
        return head + question[12 : at + 5] + answers

    def _addresses(self, name: str, kind: int) -> tuple[str, ...]:
        if kind not in (_A, _AAAA):
            return ()
        if name in PLACES:
            return (PLACES[name].v4,) if kind == _A else (PLACES[name].v6,)
        if name not in MOVING:
            return ()
        row = MOVING[name][0 if kind == _A else 1]
        if not row:
            return ()
        turn = self._asked.get((name, kind), 0)
        self._asked[name, kind] = turn + 1
        return (row[min(turn, len(row) - 1)],)
