"""Toolkits by name or by file: those that ship with Interlock, and the user's own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.model.toolkits import Toolkit

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "toolkits")
RUNTIMES = "runtimes"
"""The folder, beside the shipped toolkits, of what programs need that run tools."""
_ENDINGS = (".yaml", ".yml", ".json")


@lru_cache(maxsize=4)
def shipped(folder: str = FOLDER) -> tuple[tuple[str, str], ...]:
    """Return the toolkits that ship: name, with its folder where it lies in one (`injecagent/gmail`), and file."""
    found: dict[str, str] = {}
    for here, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if name != RUNTIMES and not name.startswith("_"))
        for name in names:
            if name.endswith(".yaml"):
                path = os.path.join(here, name)
                found[os.path.relpath(path, folder).removesuffix(".yaml")] = path
    return tuple(sorted(found.items()))


def runtimes() -> tuple[tuple[str, str], ...]:
    """Return the runtimes that ship: name and file."""
    return shipped(os.path.join(FOLDER, RUNTIMES))


def load(use: str) -> Toolkit:
    """Read a toolkit. Takes: `use`, a shipped name or a file. Raises: InputError."""
    kit = _read(use, shipped(), "toolkit")
    if not kit.tools:
        raise InputError(f"`{use}` is a runtime, and no toolkit", hint=f"name it as one: --runtime {use}")
    return kit


def load_all(uses: Iterable[str]) -> tuple[Toolkit, ...]:
    """Read toolkits, each once. Raises: InputError, also where two files have the same toolkit's name."""
    kits: dict[str, tuple[str, Toolkit]] = {}
    for use in dict.fromkeys(uses):
        kit = load(use)
        if kit.name in kits:
            raise InputError(
                f"`{kits[kit.name][0]}` and `{use}` are both the toolkit `{kit.name}`",
                hint="name one of them",
            )
        kits[kit.name] = (use, kit)
    return tuple(kit for _, kit in kits.values())


def load_runtime(use: str) -> Toolkit:
    """Read a runtime. Takes: `use`, a shipped name or a file. Raises: InputError."""
    kit = _read(use, runtimes(), "runtime")
    if kit.tools:
        raise InputError(f"`{use}` is a toolkit, and no runtime", hint=f"name it as one: --toolkits {use}")
    return kit


def is_file(use: str) -> bool:
    """Return whether a name is that of a file."""
    return use.startswith(("/", "./", "../", "~")) or use.endswith(_ENDINGS)


def _read(use: str, known: tuple[tuple[str, str], ...], what: str) -> Toolkit:
    from interlock.manifest.toolkits import load_toolkit
    from interlock.runtime.policies import read_text

    if is_file(use):
        path = os.path.expanduser(use)
        return load_toolkit(read_text(path, what, "see those that ship: interlock toolkit list"), use)
    path = dict(known).get(use, "")
    if not path:
        from interlock.manifest.document import near

        names = [name for name, _ in known]
        raise InputError(
            f"no {what} is called `{use}`",
            hint=(near(use, names) if names else "none ships")
            + f"; see them: interlock toolkit list; a file of your own: ./{use}.yaml",
        )
    return load_toolkit(read_text(path, what, "reinstall interlock"), use)
