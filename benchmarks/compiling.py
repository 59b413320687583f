"""Builds the small C program that makes the load."""

from __future__ import annotations

import os
import shutil
import subprocess

from benchmarks.ground import Ground
from benchmarks.rows import NotRun

_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.c")


def put_load(at: Ground) -> None:
    """Compile load.c and put the program into both sides' folders, as `./load`.

    Raises: NotRun, if there is no compiler or it fails.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise NotRun("no C compiler; install one (Debian: apt-get install gcc libc6-dev)")
    done = subprocess.run(
        [compiler, "-O2", "-o", os.path.join(at.bare, "load"), _SOURCE], capture_output=True, check=False
    )
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise NotRun(f"load.c does not compile: {' '.join(last)[:300]}")
    shutil.copy(os.path.join(at.bare, "load"), os.path.join(at.workspace, "load"))
    at.give(*at.sides)
