"""Every vector is judged as it says, and the committed files are what the script makes."""

import json
import os
from typing import Any

import pytest
from tests.vectors import make_vectors

from interlock.verify import REASONS, read_nodes, read_witness, read_witness_key, verify_path
from interlock.verify.report import Flaw

with open(os.path.join(make_vectors.HERE, "expected.json"), encoding="utf-8") as _file:
    EXPECTED: dict[str, Any] = json.load(_file)


def _bundle(name: str) -> str:
    return os.path.join(make_vectors.BUNDLES, f"{name}.tar")


@pytest.mark.parametrize("name", EXPECTED)
def test_vector(name: str, tmp_path: Any) -> None:
    expected = EXPECTED[name]
    options = expected["options"]
    witness = ()
    if "witness" in options:
        (tmp_path / "witness").write_text(options["witness"], encoding="utf-8")
        witness = read_witness(str(tmp_path / "witness"))  # type: ignore[assignment]
    report = verify_path(
        _bundle(name),
        expected_nonce=options.get("nonce", ""),
        expected_key=options.get("key", ""),
        witness=witness,
        replay="replay" in options,
        plan_key=options.get("plan_key", ""),
        witness_keys=[read_witness_key(options["witness_key"])] if "witness_key" in options else (),
    )
    assert (report.verdict, report.reason, report.node) == (
        expected["verdict"],
        expected["reason"],
        expected["node"],
    ), report.detail
    failed = [check for check in report.checks if check.status == "fail"]
    assert len(failed) == (report.verdict == "tampered")
    assert all(check.reason == report.reason for check in failed)


def test_vectors_cover_every_reason() -> None:
    seen = {item["reason"] for item in EXPECTED.values()}
    elsewhere = {"file-type"}  # an archive cannot hold links: test_verify_source.py
    assert REASONS - seen == elsewhere
    assert len(EXPECTED) >= 30


def test_vectors_are_what_the_script_makes() -> None:
    made = make_vectors.vectors()
    with open(os.path.join(make_vectors.HERE, "expected.json"), encoding="utf-8") as file:
        assert file.read() == make_vectors.expected(made)
    assert sorted(os.listdir(make_vectors.BUNDLES)) == sorted(f"{vector.name}.tar" for vector in made)
    for vector in made:
        with open(_bundle(vector.name), "rb") as bundle:
            assert bundle.read() == vector.content, vector.name


@pytest.mark.parametrize("name", EXPECTED)
def test_reading_a_vector_ends_in_nodes_or_in_a_flaw(name: str) -> None:
    seqs: list[int] = []
    flawed = False
    try:
        seqs.extend(node.seq for node in read_nodes(_bundle(name)))
    except Flaw:
        flawed = True
    assert seqs == list(range(len(seqs)))
    assert not flawed or EXPECTED[name]["verdict"] == "tampered"
