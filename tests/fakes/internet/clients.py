"""Where the client programs of the network tests are, once `scripts/need_clients` has run."""

import glob
import os
import shutil

PLACE = os.environ.get("INTERLOCK_CLIENTS", "/opt/interlock-clients")
PYTHON = f"{PLACE}/python/bin/python"
GO = f"{PLACE}/bin/fetch-go"
JAVA_CLASSES = f"{PLACE}/java"
NODE_MODULES = f"{PLACE}/node/node_modules"


def has_module(name: str) -> bool:
    """Say whether the clients' Python has a package."""
    return bool(glob.glob(f"{PLACE}/python/lib/python*/site-packages/{name}"))


def missing(*needed: str) -> str:
    """Return why something cannot be run, "" if all is there.

    Takes: `needed`, programs by name or path, `python:NAME` for a package, `node:NAME` for a module.
    """
    for one in needed:
        kind, _, name = one.rpartition(":")
        there = {
            "python": lambda name=name: has_module(name),
            "node": lambda name=name: os.path.isdir(f"{NODE_MODULES}/{name}"),
            "": lambda name=name: shutil.which(name) is not None or os.path.exists(name),
        }[kind]()
        if not there:
            return f"not run: no {name} (scripts/need_clients installs it)"
    return ""
