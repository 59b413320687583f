"""Kept bodies: where each lies, when it lies on the disk, and what a failing disk ends."""

from __future__ import annotations

from pathlib import Path

from interlock.model.requests import NetResponse, Outcome
from interlock.runtime.inbound import Inbound

DONE = NetResponse(outcome=Outcome.DONE, status=200)


def body_at(path: Path, kept: str) -> bytes:
    start, length = map(int, kept.split("+"))
    return path.read_bytes()[start : start + length]


def test_each_body_lies_where_its_answer_says(tmp_path: Path) -> None:
    path = tmp_path / "inbound"
    inbound = Inbound(str(path), budget_bytes=10_000_000)
    bodies = [b"a", b"bb" * 10, b"c" * 70_000, b"", b"d" * 40_000, b"e" * 40_000, b"f"]
    kept = [inbound.keep(DONE, body, as_text=False).kept for body in bodies]
    inbound.close()
    assert [body_at(path, where) for where in kept] == bodies
    assert path.read_bytes() == b"".join(bodies)


def test_small_bodies_are_gathered_until_they_are_flushed_or_many(tmp_path: Path) -> None:
    path = tmp_path / "inbound"
    inbound = Inbound(str(path), budget_bytes=10_000_000)
    inbound.keep(DONE, b"x" * 1000, as_text=False)
    assert not path.exists()
    assert inbound.flush()
    assert path.stat().st_size == 1000
    assert inbound.flush()
    for _ in range(66):
        inbound.keep(DONE, b"y" * 1000, as_text=False)
    assert path.stat().st_size == 1000 + 66_000
    inbound.close()


def test_beyond_the_budget_nothing_is_kept_but_its_text(tmp_path: Path) -> None:
    path = tmp_path / "inbound"
    inbound = Inbound(str(path), budget_bytes=10)
    assert inbound.keep(DONE, b"12345678", as_text=True).kept == "0+8"
    over = inbound.keep(DONE, b"123", as_text=True)
    assert (over.kept, over.text) == ("", "123")
    assert inbound.keep(DONE, b"12", as_text=False).kept == "8+2"
    inbound.close()
    assert path.read_bytes() == b"1234567812"


def test_text_is_taken_only_where_it_is_text_and_asked_for(tmp_path: Path) -> None:
    inbound = Inbound(str(tmp_path / "inbound"), budget_bytes=10_000_000)
    assert inbound.keep(DONE, b"caf\xc3\xa9", as_text=True).text == "café"
    assert inbound.keep(DONE, b"\xff", as_text=True).text is None
    assert inbound.keep(DONE, b"plain", as_text=False).text is None
    inbound.close()


def test_a_disk_that_fails_only_ends_the_keeping(tmp_path: Path) -> None:
    inbound = Inbound(str(tmp_path / "no folder" / "inbound"), budget_bytes=10_000_000)
    inbound.keep(DONE, b"x", as_text=False)
    assert not inbound.flush()
    for body in (b"y", b"z" * 70_000):
        answer = inbound.keep(DONE, body, as_text=True)
        assert (answer.kept, answer.text) == ("", body.decode())
    inbound.close()
    inbound = Inbound(str(tmp_path / "no folder" / "inbound"), budget_bytes=10_000_000)
    assert inbound.keep(DONE, b"z" * 70_000, as_text=False).kept == ""
    inbound.close()
