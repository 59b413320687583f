"""The ssh-agent protocol as far as it is let through: bytes in, values out, and nothing that was not understood.

Source: draft-miller-ssh-agent §3 and §5; OpenSSH, PROTOCOL.sshsig §3 (what is signed).
"""

import base64
import hashlib
import struct

from interlock.model.records import dataclass

MAX_REQUEST = 16 * 1024
"""Bytes of a request: a key with its certificate and some hundred bytes to sign need less."""
MAX_ANSWER = 256 * 1024
"""Bytes of an answer, as OpenSSH bounds it."""
MAX_KEYS = 2048

FAILURE = b"\x05"
LIST_KEYS = b"\x0b"
_KEYS_ANSWER = 12
_SIGN_REQUEST = 13
_SIGN_ANSWER = 14
_MAGIC = b"SSHSIG"
_FLAGS = (0, 2, 4)
"""None, or one of the two that choose SHA-2 for an RSA key."""
_HASHES = {b"sha256": 32, b"sha512": 64}


class NotAllowed(Exception):
    """A request that is not let through. Takes: why, in words for the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The client asks which keys there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The client asks for a signature in a namespace.

    Takes: `key`, the public key's blob; `namespace`, of SSHSIG (`git`); `hash_name`, `sha256` or `sha512`; `digest`, of
    the message that is signed; `flags`, of the request.
    """

    key: bytes
    namespace: str
    hash_name: str
    digest: bytes
    flags: int

    @property
    def signed(self) -> bytes:
        """Return the very bytes that the agent signs."""
        parts = (self.namespace.encode("ascii"), b"", self.hash_name.encode("ascii"), self.digest)
        return _MAGIC + b"".join(_string(part) for part in parts)

    @property
    def request(self) -> bytes:
        """Return the request as it goes to the agent: made anew from what was understood."""
        return (
            bytes((_SIGN_REQUEST,)) + _string(self.key) + _string(self.signed) + struct.pack("!I", self.flags)
        )


def parse(payload: bytes, namespaces: tuple[str, ...]) -> Listing | Signature:
    """Read one request, without its length.

    Raises: NotAllowed, for all that is not exactly a list of keys, or a signature in one of the `namespaces`.
    Holds: `parse(p).request == p` for every signature.
    """
    if payload == LIST_KEYS:
        return Listing()
    if not payload:
        raise NotAllowed("an empty request")
    if payload[0] != _SIGN_REQUEST:
        raise NotAllowed(f"a request of type {payload[0]}: only listing keys and signing are let through")
    key, rest = _cut(payload[1:])
    data, rest = _cut(rest)
    if len(rest) != 4:
        raise NotAllowed("a request for a signature that is not well formed")
    flags: int = struct.unpack("!I", rest)[0]
    if flags not in _FLAGS:
        raise NotAllowed(f"a signature with unknown flags ({flags})")
    if not data.startswith(_MAGIC):
        raise NotAllowed("a signature over something else than a signed text, such as a login to a server")
    namespace, rest = _cut(data[len(_MAGIC) :])
    reserved, rest = _cut(rest)
    hash_name, rest = _cut(rest)
    digest, rest = _cut(rest)
    if rest or reserved or len(digest) != _HASHES.get(hash_name):
        raise NotAllowed("a text to sign that is not well formed")
    named = next((one for one in namespaces if one.encode("ascii", "replace") == namespace), None)
    if named is None:
        raise NotAllowed("a signature in a namespace that the policy does not name under `sign`")
    return Signature(
        key=key, namespace=named, hash_name=hash_name.decode("ascii"), digest=digest, flags=flags
    )


def keys_answer(answer: bytes, allowed: frozenset[bytes] | None) -> bytes:
    """Return the agent's list of keys without those that are not `allowed` (None: all), and without its comments.

    Raises: NotAllowed, if it is no such list.
    """
    if len(answer) < 5 or answer[0] != _KEYS_ANSWER:
        raise NotAllowed("the agent does not list its keys")
    count: int = struct.unpack("!I", answer[1:5])[0]
    if count > MAX_KEYS:
        raise NotAllowed("the agent lists too many keys")
    rest = answer[5:]
    kept: list[bytes] = []
    for _ in range(count):
        blob, rest = _cut(rest)
        _comment, rest = _cut(rest)
        if allowed is None or blob in allowed:
            kept.append(blob)
    if rest:
        raise NotAllowed("the agent's list of keys is not well formed")
    return (
        bytes((_KEYS_ANSWER,))
        + struct.pack("!I", len(kept))
        + b"".join(_string(blob) + _string(b"") for blob in kept)
    )


def signature_answer(answer: bytes) -> bytes:
    """Return the agent's answer to a request for a signature, if it is one.

    Raises: NotAllowed, if the agent did not sign.
    """
    if not answer or answer[0] != _SIGN_ANSWER:
        raise NotAllowed("the agent did not sign")
    signature, rest = _cut(answer[1:])
    if rest or not signature:
        raise NotAllowed("the agent's signature is not well formed")
    return answer


def framed(payload: bytes) -> bytes:
    """Return a message with its length before it."""
    return _string(payload)


def fingerprint(key: bytes) -> str:
    """Return a key's name as ssh-keygen prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).rstrip(b"=").decode("ascii")


def _string(data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + data


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """Take one length-prefixed string off. Raises: NotAllowed."""
    if len(data) < 4:
        raise NotAllowed("a message that ends too early")
    size: int = struct.unpack("!I", data[:4])[0]
    if size > len(data) - 4:
        raise NotAllowed("a message that ends too early")
    return data[4 : 4 + size], data[4 + size :]
