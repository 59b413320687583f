"""No flipped bit is accepted."""

from tests.vectors.flip_fuzz import flip_bits


def test_two_thousand_flips_are_all_found() -> None:
    counts = flip_bits(2000, seed=20261201)
    assert counts.flips == 2000
    assert counts.accepted == []
    # The fuzzer reaches all parts: envelopes, headers, payloads, heads, the archive's own bytes.
    assert {"envelope", "chain", "payload", "signature", "archive", "head-note"} <= counts.reasons.keys()
