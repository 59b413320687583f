"""Write what is made from tables: presets and agents' profiles as read, docs/executable-effects.md and
docs/derivations.md."""

from __future__ import annotations

from pathlib import Path

from interlock.policy import executable_document, presets, profiles
from interlock.policy.derivations import document as derivations

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write each file anew; the tests compare them with their tables."""
    shipped = {
        path.stem: path.read_text(encoding="utf-8")
        for path in (ROOT / "src/interlock/profiles").glob("*.yaml")
    }
    for path, text in (
        ("src/interlock/policy/presets_read.py", presets.written_out()),
        ("src/interlock/policy/profiles_read.py", profiles.written_out(shipped)[0]),
        ("src/interlock/policy/profile_commands.py", profiles.written_out(shipped)[1]),
        ("docs/executable-effects.md", executable_document.written_out()),
        ("docs/derivations.md", derivations.written_out()),
    ):
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
