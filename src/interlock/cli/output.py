"""What the verbs share of writing: errors, colours only on a terminal, names that cannot move the cursor."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TextIO

from interlock.model.errors import InterlockError


def parser(verb: str, summary: str, example: str, exits: str) -> argparse.ArgumentParser:
    """Return a verb's argument parser: one line of help, one example, the exit statuses."""
    return argparse.ArgumentParser(
        prog=f"interlock {verb}",
        description=summary,
        epilog=f"example:\n  {example}\n\nexit status:\n  {exits}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def print_json(value: object) -> None:
    """Print a value as one JSON document."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


def tell_error(error: InterlockError, *, as_json: bool) -> int:
    """Tell an error and its next step on stderr; return its exit status."""
    if as_json:
        print(
            json.dumps({"error": {"code": error.code, "message": error.message, "hint": error.hint}}),
            file=sys.stderr,
        )
    else:
        print(f"interlock: {safe(error.message)}", file=sys.stderr)
        if error.hint:
            print(f"  next: {safe(error.hint)}", file=sys.stderr)
    return error.exit_status


def safe(text: str) -> str:
    """Return text with everything that is not printable written as an escape: agents choose these bytes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else f"\\u{ord(char):04x}" for char in text)


class Ink:
    """Colours for a stream: escape codes on a terminal, nothing elsewhere or with NO_COLOR."""

    def __init__(self, stream: TextIO) -> None:
        self._on = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._on else text

    def good(self, text: str) -> str:
        """Green."""
        return self._wrap("32", text)

    def warn(self, text: str) -> str:
        """Yellow."""
        return self._wrap("33", text)

    def bad(self, text: str) -> str:
        """Red."""
        return self._wrap("31", text)

    def strong(self, text: str) -> str:
        """Bold."""
        return self._wrap("1", text)

    def faint(self, text: str) -> str:
        """Dim."""
        return self._wrap("2", text)

    def decision(self, decision: str, width: int = 0) -> str:
        """A decision in its colour."""
        text = f"{decision:<{width}}"
        return {"release": self.good, "defer": self.warn, "refuse": self.bad}.get(decision, str)(text)
