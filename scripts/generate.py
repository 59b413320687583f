"""Write what is made from tables in the source: the presets as read, and docs/executable-effects.md."""

from __future__ import annotations

from pathlib import Path

from interlock.policy import executable_document, presets

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write each file anew; the tests compare them with their tables."""
    for path, text in (
        ("src/interlock/policy/presets_read.py", presets.written_out()),
        ("docs/executable-effects.md", executable_document.written_out()),
    ):
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
