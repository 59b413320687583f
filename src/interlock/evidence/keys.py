"""The key that vouches for a ledger: Ed25519, held as its seed.

libsodium is called through PyNaCl's compiled module: its package of bindings takes ten times as long
to import, and `interlock run` writes its first node while the user waits.
"""

import os
from typing import Any

from interlock.model.errors import IntegrityError

SEED_SIZE_BYTES = 32
_SIGNATURE_SIZE_BYTES = 64


class SigningKey:
    """An Ed25519 key pair made from a 32-byte seed.

    Holds: signatures are deterministic, so the same key over the same bytes gives the same signature.
    Source: RFC 8032.
    """

    __slots__ = ("_ffi", "_lib", "_secret", "public_bytes", "seed")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_SIZE_BYTES:
            raise IntegrityError(
                f"a signing key's seed has {SEED_SIZE_BYTES} bytes, not {len(seed)}",
                hint="give the seed that was kept with the run, or make a new key for a new run",
            )
        from nacl import _sodium

        self._lib: Any = _sodium.lib
        self._ffi: Any = _sodium.ffi
        public = self._ffi.new("unsigned char[32]")
        self._secret: Any = self._ffi.new("unsigned char[64]")
        if self._lib.sodium_init() < 0 or self._lib.crypto_sign_seed_keypair(public, self._secret, seed):
            raise IntegrityError("libsodium could not make a key pair", hint="reinstall PyNaCl")
        self.seed = seed
        self.public_bytes = bytes(self._ffi.buffer(public, 32))

    @classmethod
    def generate(cls) -> "SigningKey":
        """Make a new key from the kernel's randomness."""
        return cls(os.urandom(SEED_SIZE_BYTES))

    @classmethod
    def from_seed(cls, seed: bytes) -> "SigningKey":
        """Make the key that belongs to a kept seed."""
        return cls(seed)

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of a message."""
        signed = self._ffi.new("unsigned char[]", len(message) + _SIGNATURE_SIZE_BYTES)
        if self._lib.crypto_sign(signed, self._ffi.NULL, message, len(message), self._secret):
            raise IntegrityError("libsodium could not sign", hint="reinstall PyNaCl")
        return bytes(self._ffi.buffer(signed, _SIGNATURE_SIZE_BYTES))
