"""A few scenarios through their harness: `make scenarios` runs all of them, as both users."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]
TOOLS = (
    "unshare",
    "setpriv",
    "ip",
    "openssl",
    "git",
    "curl",
    "node",
    "npm",
    "sqlite3",
    "xxd",
    "ssh-agent",
    "python3",
)


@pytest.mark.slow
@pytest.mark.needs_root
def test_scenarios_end_as_a_person_would_have_them() -> None:
    """An attack on what runs, a wanted push, one of two pushes, and one of three requests."""
    if os.geteuid() != 0:
        pytest.skip("not run: the harness makes namespaces, which needs root")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"not run: no {', '.join(missing)}")
    # The sandbox hides /tmp, so the scenarios' folders cannot lie there.
    runs = tempfile.mkdtemp(prefix="il-scenarios-", dir="/var/lib")
    os.chmod(runs, 0o755)
    try:
        ran = subprocess.run(
            ["scripts/scenarios", "--as", "root", "M02", "M15", "M25", "M35"],
            cwd=HERE,
            env={**os.environ, "RUNS": runs, "SCENARIOS": "tests/scenarios/more.json"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(runs, ignore_errors=True)
    assert "4 of 4 (root)" in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode == 0
