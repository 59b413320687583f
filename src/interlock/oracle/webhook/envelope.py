"""Signed texts between Interlock and a desk: a DSSE envelope with one Ed25519 signature.

Ed25519 and not a shared secret: who can read this machine's key can ask in its name, but never answer in the desk's.
Source: the public DSSE specification, version 1 (pre-authentication encoding); RFC 8032.
"""

import base64
import binascii
import json
from hashlib import sha256

from interlock.model.errors import InputError
from interlock.oracle import strict_json
from interlock.oracle.exchanging import ServiceError

QUESTION_TYPE = "application/vnd.interlock.question+json"
ANSWER_TYPE = "application/vnd.interlock.answer+json"
_KEY_BYTES = 32


def pre_authenticated(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed: the type is among them, so that a question is never taken for an answer."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def key_id(public: bytes) -> str:
    """Return the short name of a public key."""
    return sha256(public).hexdigest()[:16]


class OwnKey:
    """The key with which questions are signed. Takes: `seed`, 32 bytes. Holds: the seed is in no message."""

    def __init__(self, seed: bytes) -> None:
        from nacl.signing import SigningKey

        self._key = SigningKey(seed)
        self.public = bytes(self._key.verify_key)

    def envelope(self, payload_type: str, payload: bytes) -> bytes:
        """Return the signed envelope."""
        signature = self._key.sign(pre_authenticated(payload_type, payload)).signature
        return json.dumps(
            {
                "payloadType": payload_type,
                "payload": base64.b64encode(payload).decode(),
                "signatures": [{"keyid": key_id(self.public), "sig": base64.b64encode(signature).decode()}],
            }
        ).encode()


def opened(envelope: bytes, payload_type: str, public: bytes) -> bytes:
    """Return the payload of an envelope that the key's owner signed.

    Raises: ServiceError, for anything else.
    """
    from nacl.exceptions import CryptoError
    from nacl.signing import VerifyKey

    try:
        record = strict_json.read(envelope)
        if not isinstance(record, dict) or record.get("payloadType") != payload_type:
            raise ValueError
        payload = base64.b64decode(str(record.get("payload")), validate=True)
        (signature,) = record.get("signatures", ())
        raw = base64.b64decode(str(signature.get("sig")), validate=True)
    except (ValueError, TypeError, AttributeError, binascii.Error):
        raise ServiceError("the desk's answer is no signed envelope of an answer") from None
    try:
        VerifyKey(public).verify(pre_authenticated(payload_type, payload), raw)
    except (CryptoError, ValueError, TypeError):
        raise ServiceError("the answer is not signed by the desk's key") from None
    return payload


def read_key(text: bytes | str, *, what: str) -> bytes:
    """Return the 32 bytes of a key in base64. Raises: InputError, which does not say what stood there."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != _KEY_BYTES:
        raise InputError(
            f"{what} is no Ed25519 key: 32 bytes in base64", hint="docs/panel.md says how to make one"
        )
    return key
