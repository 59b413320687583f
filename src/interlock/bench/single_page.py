"""A page of docs/results that is made from one result file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from interlock.bench.compare import Document, read_results
from interlock.model.errors import InputError


def single_page(place: Path, lines: Callable[[Document], Iterable[str]], *, written_by: str) -> str:
    """Return the page of a result file.

    Takes: `lines`, which writes it; `written_by`, the command that makes such a file.
    Raises: InputError where the file is missing, is no result, or is of another version.
    """
    found = read_results(place)
    try:
        return "\n".join(lines(found))
    except (KeyError, TypeError, ValueError, IndexError):
        raise InputError(f"`{place}` is of another version", hint=f"{written_by} writes it") from None
