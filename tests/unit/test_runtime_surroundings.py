"""Whose HOME and state folder a run has under cron and `sudo`."""

import os
import pwd
from pathlib import Path

import pytest

from interlock.runtime.surroundings import settle

ME = pwd.getpwuid(os.geteuid()).pw_dir


def test_without_home_the_user_database_says_it() -> None:
    for environment in ({}, {"HOME": ""}):
        assert settle(environment) == ""
        assert environment == {"HOME": ME}
    environment = {"HOME": "/somewhere"}
    assert settle(environment) == ""
    assert environment == {"HOME": "/somewhere"}


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root")
def test_sudo_makes_nothing_in_the_callers_home_and_says_whose_files_are(tmp_path: Path) -> None:
    os.chown(tmp_path, 1000, 1000)
    sudo = {"SUDO_UID": "1000", "SUDO_USER": "me"}
    kept = {**sudo, "HOME": str(tmp_path)}
    said = settle(kept)
    assert kept["INTERLOCK_STATE"] == f"{ME}/.local/state/interlock"
    assert f"HOME={tmp_path}" in said
    assert "leave sudo out to run as me" in said
    state = {**sudo, "HOME": "/root", "XDG_STATE_HOME": str(tmp_path / "not" / "there")}
    settle(state)
    assert state["INTERLOCK_STATE"] == f"{ME}/.local/state/interlock"
    roots = {**sudo, "HOME": ME}
    assert "root" in settle(roots)
    assert "INTERLOCK_STATE" not in roots
    chosen = {**sudo, "HOME": str(tmp_path), "INTERLOCK_STATE": "/chosen"}
    settle(chosen)
    assert chosen["INTERLOCK_STATE"] == "/chosen"


def test_sudo_of_root_by_root_is_no_matter() -> None:
    environment = {"SUDO_UID": "0", "SUDO_USER": "root", "HOME": "/root"}
    assert settle(environment) == ""
