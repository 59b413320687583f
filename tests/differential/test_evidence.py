"""A verifier that was written from the format's page alone says the same as the code, of each vector and of flips."""

import json
import os
import random
from typing import Any

import pytest
from spec import evidence as spec
from tests.vectors import make_vectors

from interlock.verify import verify_path

with open(os.path.join(make_vectors.HERE, "expected.json"), encoding="utf-8") as _file:
    EXPECTED: dict[str, Any] = json.load(_file)
LATER = ("inference", "replay-mismatch", "kernel-receipt")
"""Reasons of the steps 3, 6 and 7, which the plain lines do not take."""
FLIPS = int(os.environ.get("INTERLOCK_FLIPS", "300"))


def stored(name: str) -> bytes:
    with open(os.path.join(make_vectors.BUNDLES, f"{name}.tar"), "rb") as file:
        return file.read()


@pytest.mark.parametrize("name", EXPECTED)
def test_each_vector_is_judged_alike(name: str) -> None:
    expected = EXPECTED[name]
    options = expected["options"]
    found = spec.verify(
        stored(name),
        key=options.get("key", ""),
        nonce=options.get("nonce", ""),
        witness=options.get("witness", ""),
        witness_key=options.get("witness_key", ""),
    )
    later = expected["reason"] in LATER or expected["reason"].startswith(("derivation-", "manifest-"))
    assert found == (
        ("complete", "ok", None) if later else (expected["verdict"], expected["reason"], expected["node"])
    )


@pytest.mark.parametrize("name", ["complete", "complete-branches", "unfinished"])
def test_flipped_bits_are_judged_alike(name: str, tmp_path: Any) -> None:
    whole = stored(name)
    draw = random.Random(name)
    path = str(tmp_path / "bundle.tar")
    for bit in draw.sample(range(len(whole) * 8), FLIPS):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        with open(path, "wb") as file:
            file.write(changed)
        report = verify_path(path)
        assert spec.verify(bytes(changed))[0] == report.verdict == "tampered", bit
