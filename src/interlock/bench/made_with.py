"""What a result was made with: the product's source, its commit, the role files."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

import interlock

_ROOMS = ("bench", "model", "monitor", "oracle", "policy", "runtime", "sdk")
_NOT_OURS = ("disguises.py", "leaks.py")
"""What `interlock bench leaks` alone uses."""


@cache
def source_digest() -> str:
    """Return a digest of all that decides and counts: equal where no result can differ by the product's source."""
    place = Path(interlock.__file__).parent
    found = sha256()
    for room in _ROOMS:
        for each in sorted((place / room).rglob("*.py")):
            if each.name not in _NOT_OURS:
                found.update(f"{each.relative_to(place)}\0".encode() + each.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@cache
def commit() -> str:
    """Return the commit of the source tree, with `+` where it was changed since; `""` of an installed product."""
    place = Path(interlock.__file__).parent
    head = _git(place, "rev-parse", "--short=12", "HEAD")
    return f"{head}+" if head and _git(place, "status", "--porcelain", "--", *_ROOMS) else head


def digests(roles: Mapping[str, str]) -> dict[str, str]:
    """Return a digest of each role file, by suite."""
    return {name: sha256(text.encode()).hexdigest()[:16] for name, text in sorted(roles.items())}


def _git(place: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(place), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
