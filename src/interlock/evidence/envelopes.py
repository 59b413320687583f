"""A manifest's envelope, signed: KNOX's attestation 1 as a DSSE file.

Source: DSSE v1, pre-authentication encoding; KNOX, appendix B, attestation 1.
"""

import json

from interlock.evidence.encoding import base64_text
from interlock.evidence.keys import SigningKey

MANIFEST_PAYLOAD = "application/vnd.interlock.manifest+json"


def key_name(public: bytes) -> str:
    """Return how a manifest's signer is named: by the whole public key, so that anyone can check the signature."""
    return f"ed25519:{public.hex()}"


def sign_manifest(statement: str, key: SigningKey | None) -> str:
    """Return the envelope's text over a statement, as `manifest.statement.statement` writes it.

    Takes: `key`, None for an envelope that nobody signed yet.
    """
    body = statement.encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(MANIFEST_PAYLOAD), MANIFEST_PAYLOAD.encode(), len(body), body)
    return (
        json.dumps(
            {
                "payload": base64_text(body),
                "payloadType": MANIFEST_PAYLOAD,
                "signatures": [{"keyid": key_name(key.public_bytes), "sig": base64_text(key.sign(signed))}]
                if key is not None
                else [],
            },
            sort_keys=True,
            separators=(",", ":"),
        )
        + "\n"
    )
