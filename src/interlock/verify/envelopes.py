"""A manifest's envelope, checked offline: who signed it, and whether each digest in it is that of what it names.

Shares a format (docs/plans.md) with its writer, and no code.
Source: DSSE v1; in-toto Statement v1; KNOX, appendix B, attestation 1.
"""

import binascii
import json
import re
from hashlib import sha256
from typing import Any, NoReturn

from interlock.model.records import dataclass
from interlock.verify.statements import verify_signature

_PAYLOAD_TYPE = "application/vnd.interlock.manifest+json"
_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_PREDICATE_TYPE = "urn:interlock:manifest:1"
_KEY = re.compile(r"ed25519:([0-9a-f]{64})")
_MAX_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedManifest:
    """What a check found.

    Takes: `signers`, names of the keys whose signatures hold, `ed25519:` and the public key in hex; `problem`, why it
    does not hold, `""` where it does; `task`, the prompt in it.
    Holds: with a problem there are no signers.
    """

    signers: tuple[str, ...] = ()
    problem: str = ""
    task: str = ""


class _Flaw(Exception):
    pass


def check_envelope(text: str) -> SignedManifest:
    """Check an envelope. Holds: total on any text; one signature that does not hold fails it."""
    try:
        return _checked(text)
    except _Flaw as flaw:
        return SignedManifest(problem=str(flaw))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return SignedManifest(problem="it is no envelope of a manifest")


def _flawed(why: str) -> NoReturn:
    raise _Flaw(why)


def _checked(text: str) -> SignedManifest:
    if len(text) > _MAX_BYTES:
        _flawed("it is too large")
    envelope = _read(text)
    if set(envelope) != {"payload", "payloadType", "signatures"} or envelope["payloadType"] != _PAYLOAD_TYPE:
        _flawed("it is no envelope of a manifest")
    body = binascii.a2b_base64(envelope["payload"], strict_mode=True)
    if binascii.b2a_base64(body, newline=False).decode() != envelope["payload"]:
        _flawed("its payload is not plain base64")
    signers = _signers(envelope["signatures"], body)
    statement = _read(body.decode("utf-8"))
    if _written(statement).encode() != body:
        _flawed("its statement is not canonical")
    return SignedManifest(signers=signers, task=_check_statement(statement))


def _signers(signatures: Any, body: bytes) -> tuple[str, ...]:
    if not isinstance(signatures, list) or not 1 <= len(signatures) <= 8:
        _flawed("it has no signature, or too many")
    message = b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD_TYPE), _PAYLOAD_TYPE.encode(), len(body), body)
    found = []
    for one in signatures:
        if set(one) != {"keyid", "sig"}:
            _flawed("a signature in it cannot be read")
        name = _KEY.fullmatch(one["keyid"])
        if name is None:
            _flawed("a signature in it names no key")
        signature = binascii.a2b_base64(one["sig"], strict_mode=True)
        if len(signature) != 64 or not verify_signature(bytes.fromhex(name.group(1)), message, signature):
            _flawed("a signature does not hold: it was changed after it was signed")
        found.append(one["keyid"])
    return tuple(found)


def _check_statement(statement: dict[str, Any]) -> str:
    if set(statement) != {"_type", "subject", "predicateType", "predicate"}:
        _flawed("its statement has other keys")
    if statement["_type"] != _STATEMENT_TYPE or statement["predicateType"] != _PREDICATE_TYPE:
        _flawed("its statement is none over a manifest")
    if set(statement["predicate"]) != {"manifest", "digests"}:
        _flawed("its statement has other keys")
    manifest = statement["predicate"]["manifest"]
    if statement["subject"] != [{"name": "manifest", "digest": {"sha256": _digest(manifest)}}]:
        _flawed("its subject is not the manifest in it")
    digests = {
        "prompt": manifest["task"],
        "toolkits": {"toolkits": manifest["toolkits"], "runtime": manifest["runtime"]},
        "regulations": {
            "names": manifest["regulations"],
            "guards": [one["spec"] for one in manifest["guards"] if one["name"] == "regulation"],
        },
        "stop": manifest["stop"],
        "trajectory": {"mode": manifest["mode"], "branches": manifest["branches"]},
        "guards": {key: manifest[key] for key in ("guards", "authorised", "lacking")},
    }
    if statement["predicate"]["digests"] != {name: _digest(value) for name, value in digests.items()}:
        _flawed("a digest in it is not that of what it names")
    for branch in manifest["branches"]:
        for step in branch["steps"]:
            told = {"tool": step["tool"], "parameters": step["parameters"], "holes": step["holes"]}
            if step["digest"] != _digest(told):
                _flawed("a step's digest is not that of the step")
    for tool in manifest["tools"]:
        if tool["digest"] != _digest(tool["definition"]):
            _flawed("a tool's digest is not that of its definition")
    return str(manifest["task"])


def _read(text: str) -> dict[str, Any]:
    value = json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    if not isinstance(value, dict):
        _flawed("it is no JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _constant(_name: str) -> NoReturn:
    raise ValueError("no number of JSON")


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _digest(value: Any) -> str:
    return sha256(_written(value).encode()).hexdigest()
