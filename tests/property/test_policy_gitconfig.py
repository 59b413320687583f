"""Git's own reading of a configuration against ours: where Git reads a file, we read the same or nothing."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.policy.gitconfig import HARMLESS, parse, telling_change

PIECES = st.sampled_from(
    ["[core]", "[Core]", '[a "b"]', '[a "b\\"c"]', '[a "B.c"]', "[a.B]", "[ a]", "[a ]", "key", "Key-2", "2k",
     "=", " = ", " = ", "value", '"', "\\", "\\n", "\\q", "\n", "\n", "\n\t", "\r\n", "\r", "#", ";", " ", "\t", "]",
     "ü", "\f"]
)  # fmt: skip


def by_git(path: Path) -> dict[str, tuple[str, ...]] | None:
    run = subprocess.run(["git", "config", "--list", "-z", "-f", str(path)], capture_output=True, check=False)
    if run.returncode:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for entry in run.stdout.decode().split("\0")[:-1]:
        key, separator, value = entry.partition("\n")
        found[key] = (*found.get(key, ()), value if separator else "true")
    return found


@settings(
    max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "150")),  # `make fuzz` takes 400
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(PIECES, max_size=14).map("".join), st.booleans())
def test_we_read_what_git_reads(tmp_path_factory: pytest.TempPathFactory, text: str, headed: bool) -> None:
    text = "[core]\n" + text if headed else text
    path = tmp_path_factory.getbasetemp() / "config"
    path.write_bytes(text.encode())
    ours, theirs = parse(text), by_git(path)
    if ours is not None and theirs is not None:
        assert ours == theirs


def test_most_of_what_git_reads_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    text = '\ufeff[core] bare = false # x\n[a "b\\\\c"]\n\tk = "x ; y"  z \n\tl\n\tm = a\\\n b\n[x.Y]\nq=\n'
    path.write_bytes(text.encode())
    assert parse(text) == by_git(path)
    assert parse(text) == {
        "core.bare": ("false",),
        "a.b\\c.k": ("x ; y  z",),
        "a.b\\c.l": ("true",),
        "a.b\\c.m": ("a b",),
        "x.y.q": ("",),
    }


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text("abcdefghij.-", min_size=1, max_size=12), st.text("abcxyz", min_size=1, max_size=6))
def test_a_key_outside_of_the_list_is_told(section: str, name: str) -> None:
    text = f"[{section}]\n\t{name} = x\n"
    told = telling_change("", text)
    harmless = f"{section.lower()}.{name}" in HARMLESS
    assert bool(told) is not harmless
