"""Placeholders of secrets: the same in each run of a user, another for another value, and no part of the secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interlock.policy import load_policy
from interlock.runtime.placeholders import KEY_FILE, placeholders_of

POLICY = load_policy(
    "version: 1\nnetwork: {secrets: [{name: one, from: ONE, hosts: [a.test]}, {name: two, from: ONE, as: X, hosts: [b.test]}]}\n",
    filename="p",
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path))
    return tmp_path


def test_they_are_the_same_in_each_run_and_differ_by_secret_and_value() -> None:
    first = placeholders_of(POLICY, {"ONE": "value"})
    assert first == placeholders_of(POLICY, {"ONE": "value"})
    other = placeholders_of(POLICY, {"ONE": "changed"})
    assert len({*first.values(), *other.values()}) == 4
    assert first["one"].startswith("interlock-one-")


def test_another_users_key_gives_others(state: Path, tmp_path: Path) -> None:
    first = placeholders_of(POLICY, {"ONE": "value"})
    assert os.stat(state / KEY_FILE).st_mode & 0o777 == 0o600
    assert sorted(os.listdir(state)) == [KEY_FILE]
    os.unlink(state / KEY_FILE)
    assert placeholders_of(POLICY, {"ONE": "value"}) != first


def test_a_key_that_was_cut_or_cannot_be_kept_gives_new_ones_each_time(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / KEY_FILE).write_bytes(b"short")
    assert placeholders_of(POLICY, {"ONE": "value"}) != placeholders_of(POLICY, {"ONE": "value"})
    monkeypatch.setenv("INTERLOCK_STATE", str(state / "missing" / "folder"))
    assert placeholders_of(POLICY, {"ONE": "value"}) != placeholders_of(POLICY, {"ONE": "value"})


def test_a_policy_without_secrets_makes_no_key(state: Path) -> None:
    assert placeholders_of(load_policy(None, filename="coding"), {}) == {}
    assert os.listdir(state) == []
