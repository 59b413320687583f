"""A witness as C2SP tlog-witness describes it, over real HTTP: it keeps one head a log and checks every proof.

Written from the protocol's text; the check of proofs is RFC 9162 §2.1.4.2, not the code that makes them.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

Answer = tuple[int, str, bytes]
TEXT, SIZE = "text/plain; charset=utf-8", "text/x.tlog.size"


class C2spWitness:
    """Takes: `logs`, verifier keys of the logs that it serves. Holds: `seen`, size and root of each by its origin."""

    def __init__(self, *logs: str, name: str = "witness.example/w1", seed: bytes = b"\x07" * 32) -> None:
        self.name = name
        self._key = SigningKey(seed)
        self.seen: dict[str, tuple[int, bytes]] = {}
        self.asked = 0
        self._logs = {log.split("+")[0]: base64.b64decode(log.split("+", 2)[2])[1:] for log in logs}
        self._lock = Lock()
        self.mangle: Callable[[Answer], Answer] = lambda answer: answer
        witness = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                status, kind, said = witness.mangle(witness.answer(self.path, body))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def verifier_key(self) -> str:
        blob = b"\x04" + bytes(self._key.verify_key)
        key_id = sha256(self.name.encode() + b"\n" + blob).hexdigest()[:8]
        return f"{self.name}+{key_id}+{base64.b64encode(blob).decode()}"

    def answer(self, path: str, body: bytes) -> Answer:
        if path != "/add-checkpoint":
            return 404, TEXT, b""
        with self._lock:
            self.asked += 1
            return self._add(body)

    def _add(self, body: bytes) -> Answer:
        request, _, note = body.partition(b"\n\n")
        first, *proof_lines = request.decode().split("\n")
        old = int(first.removeprefix("old "))
        proof = [base64.b64decode(line, validate=True) for line in proof_lines]
        text, _, signatures = note.partition(b"\n\n")
        text += b"\n"
        origin, size_text, root_text = text.decode().split("\n")[:3]
        size, root = int(size_text), base64.b64decode(root_text)
        if origin not in self._logs:
            return 404, TEXT, b""
        if not self._is_signed(origin, text, signatures.decode()):
            return 403, TEXT, b""
        if old > size:
            return 400, TEXT, b""
        known, known_root = self.seen.get(origin, (0, b""))
        if old != known or (old == size and known_root != root):
            return 409, SIZE, b"%d\n" % known
        if not extends(known, known_root, size, root, proof):
            return 422, TEXT, b""
        self.seen[origin] = (size, root)
        return 200, TEXT, self.cosign(text)

    def _is_signed(self, origin: str, text: bytes, signatures: str) -> bool:
        for line in signatures.splitlines():
            _, name, blob = line.split(" ")
            if name == origin:
                try:
                    VerifyKey(self._logs[origin]).verify(text, base64.b64decode(blob)[4:])
                except BadSignatureError:
                    continue
                return True
        return False

    def cosign(self, text: bytes, at: int | None = None) -> bytes:
        now = int(time.time()) if at is None else at
        signature = self._key.sign(b"cosignature/v1\ntime %d\n" % now + text).signature
        blob = bytes.fromhex(self.verifier_key.split("+")[1]) + now.to_bytes(8, "big") + signature
        return f"\u2014 {self.name} {base64.b64encode(blob).decode()}\n".encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> C2spWitness:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def extends(old: int, old_root: bytes, size: int, root: bytes, proof: list[bytes]) -> bool:
    """Check a consistency proof (RFC 9162 §2.1.4.2)."""
    if old == 0:
        return not proof
    if old == size:
        return not proof and old_root == root
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not path:
        return False
    low, high = old - 1, size - 1
    while low & 1:
        low, high = low >> 1, high >> 1
    first = second = path[0]
    for one in path[1:]:
        if high == 0:
            return False
        if low & 1 or low == high:
            first = sha256(b"\x01" + one + first).digest()
            second = sha256(b"\x01" + one + second).digest()
            while low and not low & 1:
                low, high = low >> 1, high >> 1
        else:
            second = sha256(b"\x01" + second + one).digest()
        low, high = low >> 1, high >> 1
    return first == old_root and second == root and high == 0
