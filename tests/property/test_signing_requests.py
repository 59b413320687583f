"""No byte string makes the broker ask the agent for anything but an allowed signature."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from interlock.boundary.signing.protocol import Listing, NotAllowed, parse

NAMESPACES = ("git", "file")


def text(data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + data


def sign_request(key: bytes, data: bytes, flags: int = 0) -> bytes:
    return b"\x0d" + text(key) + text(data) + struct.pack("!I", flags)


def to_sign(namespace: bytes, reserved: bytes, hash_name: bytes, digest: bytes) -> bytes:
    return b"SSHSIG" + text(namespace) + text(reserved) + text(hash_name) + text(digest)


names = st.sampled_from([b"git", b"file", b"gi", b"git\0", b"ssh", b"", b"GIT"])
hashes = st.sampled_from([b"sha256", b"sha512", b"sha1", b"", b"sha256 "])
digests = st.sampled_from([0, 20, 31, 32, 33, 64, 65]).map(lambda size: b"d" * size)
near = st.builds(
    sign_request,
    st.binary(max_size=40),
    st.one_of(
        st.binary(max_size=80),
        st.builds(to_sign, names, st.sampled_from([b"", b"x"]), hashes, digests),
        st.binary(max_size=8).map(lambda more: to_sign(b"git", b"", b"sha256", b"d" * 32) + more),
    ),
    st.sampled_from([0, 1, 2, 3, 4, 6, 1 << 31]),
)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """A request that is nearly right: bytes changed, cut or added."""
    data = bytearray(draw(near))
    for _ in range(draw(st.integers(0, 2))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


def allowed(payload: bytes) -> bool:
    """Say it once more, from the end: only these byte strings may reach the agent as a request to sign."""
    for namespace in NAMESPACES:
        for name, size in ((b"sha256", 32), (b"sha512", 64)):
            tail = to_sign(namespace.encode(), b"", name, b"?" * size)
            start = len(payload) - 4 - len(tail)
            if start < 9 or payload[-4:] not in (b"\0\0\0\0", b"\0\0\0\2", b"\0\0\0\4"):
                continue
            head, body = payload[:start], payload[start:-4]
            key = head[5:-4]
            if body[:-size] == tail[:-size] and head == b"\x0d" + text(key) + struct.pack("!I", len(tail)):
                return True
    return False


@given(st.one_of(st.binary(max_size=200), near, spoiled()))
def test_only_allowed_requests_are_understood_and_they_leave_as_they_came(payload: bytes) -> None:
    try:
        asked = parse(payload, NAMESPACES)
    except NotAllowed:
        assert not allowed(payload)
        assert payload != b"\x0b"
        return
    if isinstance(asked, Listing):
        assert payload == b"\x0b"
        return
    assert allowed(payload)
    assert asked.request == payload
    assert asked.signed.startswith(b"SSHSIG")
