"""What of the ssh-agent protocol is let through, request by request."""

import struct

import pytest
from tests.property.test_signing_requests import sign_request, text, to_sign

from interlock.boundary.signing.protocol import (
    Listing,
    NotAllowed,
    Signature,
    fingerprint,
    keys_answer,
    parse,
    signature_answer,
)

KEY = text(b"ssh-ed25519") + text(b"k" * 32)
OTHER = text(b"ssh-ed25519") + text(b"o" * 32)
GIT = to_sign(b"git", b"", b"sha512", b"d" * 64)
LOGIN = text(b"session") + b"\x32" + text(b"root") + text(b"ssh-connection") + text(b"publickey") + b"\x01"


def test_a_signature_of_git_is_understood() -> None:
    asked = parse(sign_request(KEY, GIT, 4), ("git",))
    assert isinstance(asked, Signature)
    assert (asked.key, asked.namespace, asked.hash_name, asked.flags) == (KEY, "git", "sha512", 4)
    assert isinstance(parse(b"\x0b", ()), Listing)


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "empty"),
        (b"\x0b\0", "type 11"),
        (b"\x11" + KEY, "type 17"),
        (b"\x12" + text(KEY), "type 18"),
        (b"\x13", "type 19"),
        (b"\x16" + text(b"word"), "type 22"),
        (b"\x1b" + text(b"session-bind@openssh.com"), "type 27"),
        (sign_request(KEY, LOGIN + KEY), "login"),
        (sign_request(KEY, b"SSHSI"), "login"),
        (sign_request(KEY, b"x" + GIT), "login"),
        (sign_request(KEY, to_sign(b"file", b"", b"sha512", b"d" * 64)), "namespace"),
        (sign_request(KEY, to_sign(b"git", b"r", b"sha512", b"d" * 64)), "well formed"),
        (sign_request(KEY, to_sign(b"git", b"", b"sha1", b"d" * 20)), "well formed"),
        (sign_request(KEY, to_sign(b"git", b"", b"sha256", b"d" * 64)), "well formed"),
        (sign_request(KEY, GIT + b"\0"), "well formed"),
        (sign_request(KEY, GIT, 1), "flags"),
        (sign_request(KEY, GIT) + b"\0", "well formed"),
        (b"\x0d" + struct.pack("!I", 1 << 31) + b"k", "too early"),
        (b"\x0d\0\0", "too early"),
    ],
)
def test_all_else_is_not(payload: bytes, why: str) -> None:
    with pytest.raises(NotAllowed, match=why):
        parse(payload, ("git",))


def test_the_list_of_keys_loses_foreign_ones_and_comments() -> None:
    answer = b"\x0c" + struct.pack("!I", 2) + text(KEY) + text(b"me@home") + text(OTHER) + text(b"work")
    assert keys_answer(answer, frozenset({OTHER})) == (
        b"\x0c" + struct.pack("!I", 1) + text(OTHER) + text(b"")
    )
    assert keys_answer(answer, None).count(b"me@home") == 0
    for bad in (b"", b"\x05", answer + b"\0", answer[:-1], b"\x0c" + struct.pack("!I", 1 << 30)):
        with pytest.raises(NotAllowed):
            keys_answer(bad, None)


def test_only_a_signature_comes_back() -> None:
    assert signature_answer(b"\x0e" + text(b"sig")) == b"\x0e" + text(b"sig")
    for bad in (b"", b"\x05", b"\x0c" + text(b"sig"), b"\x0e" + text(b""), b"\x0e" + text(b"sig") + b"\0"):
        with pytest.raises(NotAllowed):
            signature_answer(bad)


def test_a_fingerprint_is_the_one_that_ssh_keygen_prints() -> None:
    assert fingerprint(b"") == "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
