"""The lenses that a policy uses: shipped ones and the user's own files, written into the policy's text at a launch.

The text that a run records holds them, so that a replay needs nothing else.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from interlock.model.errors import InputError, PolicyError

if TYPE_CHECKING:
    from interlock.policy.lenses.trying import LensFile

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lenses")
_KEY = re.compile(r"^lenses:", re.MULTILINE)
_WRITTEN = re.compile(r"^lens_texts:", re.MULTILINE)


def shipped() -> tuple[str, ...]:
    """Return the names of the lenses that ship."""
    return tuple(sorted(name.removesuffix(".yaml") for name in os.listdir(FOLDER) if name.endswith(".yaml")))


def path_of(use: str, beside: str) -> str:
    """Return the file of a lens. Takes: `use`, a shipped name or a file; `beside`, the folder that a file is below.

    Raises: InputError.
    """
    if "/" in use or use.endswith((".yaml", ".yml")):
        return os.path.normpath(os.path.join(beside, os.path.expanduser(use)))
    if use not in shipped():
        from difflib import get_close_matches

        near = get_close_matches(use, shipped(), 1, 0.5)
        raise InputError(
            f"no lens is called `{use}`",
            hint=f"did you mean `{near[0]}`?"
            if near
            else "see them: interlock lens list; a file: ./own-lens.yaml",
        )
    return os.path.join(FOLDER, f"{use}.yaml")


def load(use: str, beside: str = "", *, hosts: tuple[str, ...] = ()) -> LensFile:
    """Read a lens. Raises: InputError, where its file cannot be read; PolicyError, for a mistake in it."""
    from interlock.policy.lenses.trying import read_file
    from interlock.runtime.policies import read_text

    path = path_of(use, beside or os.getcwd())
    text = read_text(path, "lens", "see those that ship: interlock lens list")
    shown = use if path.startswith(FOLDER) else path
    return read_file(text, filename=shown, hosts=hosts)


def written_in(text: str, filename: str) -> str:
    """Return a policy's text with the lenses that it uses written into it.

    Raises: InputError; PolicyError, where the policy or a lens has a mistake, or an example of a lens does not hold.
    """
    if _KEY.search(text) is None or _WRITTEN.search(text) is not None:
        return text
    from interlock.policy.document import read_document
    from interlock.policy.lenses.loading import use_of

    document = read_document(text, filename=filename)
    given = document.values.get("lenses")
    if not isinstance(given, list):
        return text  # the loader says what is wrong with it
    texts: dict[str, object] = {}
    for index in range(len(given)):
        use, hosts = use_of(document, index)
        read = load(use, os.path.dirname(os.path.abspath(filename)), hosts=tuple(one.text for one in hosts))
        wrong = next((one for one in read.tried if not one.holds), None)
        if wrong is not None and not hosts:
            raise PolicyError(
                f"the lens's example `{wrong.name}` does not hold",
                filename=use,
                hint=f"see it: interlock lens test {use}",
            )
        texts[use] = read.kept
    line = "lens_texts: " + json.dumps(texts, ensure_ascii=True, separators=(", ", ": "))
    return f"{text.rstrip()}\n{line}\n"
