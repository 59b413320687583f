"""A folder of results that a later run goes on with: one file a case, then the whole.

Holds: a case's file is there as a whole or not at all; results of other settings, of another commit or of other role
files never stand beside each other.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interlock.bench.compare import RESULTS
from interlock.model.errors import InputError

HEADER = "made-with.json"
CASES = "cases"
_ANEW = "give another --out, or delete this folder to begin anew"
Document = Mapping[str, Any]


class ResultFolder:
    """An open folder. Takes: `header`, all that the results depend on."""

    def __init__(self, path: Path, header: Document) -> None:
        self._path = path
        self._header = header

    @classmethod
    def opened(cls, path: Path, header: Document) -> ResultFolder:
        """Make a folder, or go on with one. Raises: InputError where it holds something else."""
        found = cls(path, header)
        try:
            (path / CASES).mkdir(parents=True, exist_ok=True)
            if (path / HEADER).exists():
                found._check(json.loads((path / HEADER).read_text(encoding="utf-8")))
            elif sorted(each.name for each in path.iterdir()) != [CASES] or any((path / CASES).iterdir()):
                raise InputError(f"`{path}` holds something else", hint="give a new folder as --out")
            else:
                _write(path / HEADER, header)
        except OSError as failure:
            raise InputError(
                f"`{path}` cannot be used ({type(failure).__name__})", hint="give a new folder as --out"
            ) from None
        except ValueError:
            raise InputError(f"`{path / HEADER}` cannot be read", hint=_ANEW) from None
        return found

    def _check(self, before: object) -> None:
        old = before if isinstance(before, dict) else {}
        now = json.loads(json.dumps(self._header))
        for name in sorted({*old, *now} - {"command"}):  # it says nothing that the settings do not
            was, wanted = old.get(name), now.get(name)
            if was == wanted:
                continue
            inner = {*was, *wanted} if isinstance(was, dict) and isinstance(wanted, dict) else set()
            differing = [f"{name} {key}" for key in sorted(inner) if was.get(key) != wanted.get(key)]  # type: ignore[union-attr]
            raise InputError(
                f"the results in `{self._path}` were made with another {', '.join(differing) or name}",
                hint=_ANEW,
            )

    def kept(self, case_id: str) -> Document | None:
        """Return a case's result, None where it is not there yet. Raises: InputError where it cannot be read."""
        place = self._place(case_id)
        try:
            found = json.loads(place.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise InputError(
                f"`{place}` cannot be read", hint="delete this file: the case is run again"
            ) from None
        if not isinstance(found, dict) or found.get("id") != case_id:
            raise InputError(f"`{place}` is no result of `{case_id}`", hint="delete this file")
        return found

    def keep(self, case_id: str, value: Document) -> None:
        """Write a case's result."""
        _write(self._place(case_id), value)

    def finish(self, value: Document, name: str = RESULTS) -> None:
        """Write the whole."""
        _write(self._path / name, value)

    def _place(self, case_id: str) -> Path:
        return self._path / CASES / (re.sub(r"[^\w-]+", ".", case_id) + ".json")


def written(value: Document) -> str:
    """Return a document as a result file holds it: the same for the same results, byte for byte."""
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _write(place: Path, value: Document) -> None:
    unfinished = place.with_name(place.name + f".{os.getpid()}.new")
    unfinished.unlink(missing_ok=True)
    with open(unfinished, "x", encoding="utf-8") as file:
        file.write(written(value))
    os.replace(unfinished, place)
