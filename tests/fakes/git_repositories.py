"""Git for tests: no configuration of the machine's or the user's own."""

import os
import subprocess
from pathlib import Path

GIT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.test",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.test",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip


def git(where: Path, *words: str) -> bytes:
    """Run it to its end. Returns: what it said."""
    return subprocess.run(["git", *words], cwd=where, env=GIT, check=True, capture_output=True).stdout
