"""KNOX's attestation 1 as data: an in-toto statement over the manifest and the digests of what it was made of.

Signing lies in `evidence.envelopes`, checking in `verify.envelopes`; here nothing is signed, and nothing is believed.
Source: KNOX, appendix B, attestation 1; in-toto Statement v1; DSSE v1.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from functools import lru_cache

from interlock.manifest.canonical import canonical, digest, parse
from interlock.manifest.document import Tree
from interlock.manifest.reading import load_manifest, manifest_tree
from interlock.model.errors import InputError
from interlock.model.manifest import Manifest

PAYLOAD_TYPE = "application/vnd.interlock.manifest+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:interlock:manifest:1"
SUBJECT = "manifest"
MAX_LENGTH = 24_000_000
_HINT = "make it anew: interlock plan; or sign it again: interlock plan sign FILE"


def digests_of(manifest: Manifest) -> dict[str, str]:
    """Return H(p), H(C), H(R), H(stop), H(T) and H(Γ)."""
    tree = manifest_tree(manifest)
    return {
        "prompt": digest(tree["task"]),
        "toolkits": digest({"toolkits": tree["toolkits"], "runtime": tree["runtime"]}),
        "regulations": digest(
            {
                "names": tree["regulations"],
                "guards": [one["spec"] for one in tree["guards"] if one["name"] == "regulation"],
            }
        ),
        "stop": digest(tree["stop"]),
        "trajectory": digest({"mode": tree["mode"], "branches": tree["branches"]}),
        "guards": digest(
            {"guards": tree["guards"], "authorised": tree["authorised"], "lacking": tree["lacking"]}
        ),
    }


def statement(manifest: Manifest) -> str:
    """Return the statement of a manifest: canonical JSON."""
    tree = manifest_tree(manifest)
    return canonical(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": SUBJECT, "digest": {"sha256": digest(tree)}}],
            "predicateType": PREDICATE_TYPE,
            "predicate": {"manifest": tree, "digests": digests_of(manifest)},
        }
    )


def read_statement(text: str) -> Manifest:
    """Read a statement back. Raises: InputError, where a digest is not that of what it stands for."""
    given = _object(parse(text), ("_type", "subject", "predicateType", "predicate"), "statement")
    if given["_type"] != STATEMENT_TYPE or given["predicateType"] != PREDICATE_TYPE:
        raise InputError("the statement is none over a manifest", hint=_HINT)
    predicate = _object(given["predicate"], ("manifest", "digests"), "predicate")
    manifest = load_manifest(canonical(predicate["manifest"]))
    if given["subject"] != [{"name": SUBJECT, "digest": {"sha256": digest(predicate["manifest"])}}]:
        raise InputError("the statement's subject is not the manifest in it", hint=_HINT)
    expected = digests_of(manifest)
    told = _object(predicate["digests"], tuple(expected), "digests")
    for name, one in expected.items():
        if told[name] != one:
            raise InputError(
                f"the digest `{name}` of the statement is another one than the manifest's", hint=_HINT
            )
    return manifest


@lru_cache(maxsize=4)
def read_envelope(text: str) -> Manifest:
    """Read the manifest in an envelope; signatures are not looked at. Raises: InputError."""
    # A run reads the same one several times, by several parts, before its first event.
    return read_statement(payload_of(text))


def without_signatures(text: str) -> bool:
    """Return whether an envelope that was read is signed by nobody."""
    given = parse(text)
    return isinstance(given, dict) and given.get("signatures") == []


def payload_of(text: str) -> str:
    """Return the statement in an envelope as text; signatures are not looked at. Raises: InputError."""
    if len(text) > MAX_LENGTH:
        raise InputError(f"the envelope is longer than {MAX_LENGTH} characters", hint=_HINT)
    given = _object(parse(text), ("payload", "payloadType", "signatures"), "envelope")
    if given["payloadType"] != PAYLOAD_TYPE or not isinstance(given["payload"], str):
        raise InputError("the envelope holds no manifest", hint=_HINT)
    try:
        return b64decode(given["payload"], validate=True).decode("utf-8")
    except (Base64Error, ValueError) as error:
        raise InputError("the envelope's payload cannot be read", hint=_HINT) from error


def _object(value: object, keys: tuple[str, ...], what: str) -> dict[str, Tree]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise InputError(f"the {what} has other keys than {', '.join(keys)}", hint=_HINT)
    return value
