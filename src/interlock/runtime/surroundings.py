"""Whose HOME and whose state folder a run has, where the environment does not say it or says it by accident."""

from __future__ import annotations

import os
import pwd
from collections.abc import MutableMapping

_STATE = ".local/state/interlock"


def settle(environment: MutableMapping[str, str]) -> str:
    """Fill in what cron, a container or `sudo` left out or left askew.

    Without HOME it is the one of the user database. Under `sudo` that kept the caller's HOME, Interlock's own files go
    to root's home, so that none of the caller's folders becomes root's.
    Returns: a line for the user, `""` for none.
    """
    if not environment.get("HOME") and (home := _home_of(os.geteuid())):
        environment["HOME"] = home
    caller = environment.get("SUDO_UID", "")
    if os.geteuid() != 0 or not caller.isdigit() or caller == "0":
        return ""
    if "INTERLOCK_STATE" not in environment:
        base = environment.get("XDG_STATE_HOME") or environment.get("HOME", "")
        if _owner(base) == int(caller) and (home := _home_of(0)):
            environment["INTERLOCK_STATE"] = os.path.join(home, _STATE)
    name = environment.get("SUDO_USER", caller)
    return (
        f"sudo: the command runs as root with HOME={environment.get('HOME', '/')}, and files that it makes are root's; "
        f"an ordinary user is confined as well, so leave sudo out to run as {name}"
    )


def _home_of(uid: int) -> str:
    try:
        home = pwd.getpwuid(uid).pw_dir
    except KeyError:
        return ""
    return home if os.path.isdir(home) else ""


def _owner(path: str) -> int:
    """Return who has a folder, or the nearest one above it that is there."""
    while path not in ("", "/"):
        try:
            return os.stat(path).st_uid
        except OSError:
            path = os.path.dirname(path)
    return 0
