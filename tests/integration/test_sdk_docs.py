"""What docs/sdk.md shows runs as it is shown, and so does the example."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.guarded import quick_folder

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NEEDS = re.compile(r"# needs ([\w.]+)\n")
_POLICY = """\
version: 1
preset: none
trusted: [{task: true}]
cedar: 'permit(principal, action, resource) when { context.derived };'
"""


def shown() -> list[tuple[str, str]]:
    """Return each block of Python with what it is said to print."""
    blocks = _BLOCK.findall((ROOT / "docs" / "sdk.md").read_text(encoding="utf-8"))
    found: list[tuple[str, str]] = []
    for kind, text in blocks:
        if kind == "python":
            found.append((text, ""))
        else:
            found[-1] = (found[-1][0], text)
    return found


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    with quick_folder() as folder:
        Path(folder, "policy.yaml").write_text(_POLICY, encoding="utf-8")
        yield {**os.environ, "INTERLOCK_STATE": f"{folder}/state", "HERE": folder}


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("number", range(len(shown())))
def test_what_the_page_shows_runs(number: int, environment: dict[str, str]) -> None:
    text, printed = shown()[number]
    compile(text, "docs/sdk.md", "exec")
    needs = _NEEDS.match(text)
    if needs is not None and not _is_there(needs[1]):
        pytest.skip(f"{needs[1]} is not installed: scripts/need_adapters")
    ended = subprocess.run(
        [sys.executable, "-c", text],
        cwd=environment["HERE"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == printed


def test_the_example_runs(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, ROOT / "examples" / "guarded_mail.py"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "answer:  sent to bob@b.test"
    assert lines[1].startswith("refused:")
    assert lines[2].startswith("answer:  interlock-placeholder-")
    verified = subprocess.run(
        [sys.executable, "-m", "interlock", "verify", "last", "--replay"],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert verified.returncode == 0
