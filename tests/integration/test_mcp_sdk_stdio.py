"""The official SDK's client with the official reference server, bare and guarded: both see the same of each other."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.guarded import quick_folder

from interlock.verify import verify_path

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACE = os.environ.get("INTERLOCK_MCP", os.path.join(REPOSITORY, "build", "mcp"))
PYTHON = os.path.join(PLACE, "bin", "python")
EVERYTHING = os.path.join(PLACE, "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
CLIENT, OWN = (
    os.path.join(REPOSITORY, "tests", "fakes", f"mcp_sdk_{one}.py") for one in ("client", "server")
)
SERVERS = {"own": (PYTHON, OWN), "everything": ("node", EVERYTHING, "stdio")}
_TIME = re.compile(r"\d{1,2}:\d\d:\d\d( [AP]M)?|\d{4}-\d\d-\d\dT[0-9:.]+Z")
ALL = """\
version: 1
preset: none
trusted: [{task: true}]
cedar: |
  @id("all")
  permit(principal, action, resource);
tools:
"""
TOOLS = [
    "echo",
    "get-sum",
    "get-tiny-image",
    "get-annotated-message",
    "get-structured-content",
    "get-resource-links",
    "get-resource-reference",
    "get-roots-list",
    "trigger-long-running-operation",
    "trigger-sampling-request",
    "trigger-elicitation-request",
    "simulate-research-query",
    "add",
    "shaped",
    "fails",
    "tells",
    "asks",
    "samples",
    "looks",
    "needs",
    "grows",
    "grown",
    "slow",
    "no-such-tool",
]
ARGUMENTS = [
    "message",
    "a",
    "b",
    "messageType",
    "includeImage",
    "location",
    "count",
    "resourceType",
    "resourceId",
    "duration",
    "steps",
    "prompt",
    "maxTokens",
    "topic",
    "ambiguous",
    "name",
]
ALL += "".join(f"  {tool}: {{effect: read, carries: [{', '.join(ARGUMENTS)}]}}\n" for tool in TOOLS)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.path.exists(PYTHON), reason="not run: the SDK is not installed (scripts/need_mcp)"
    ),
]


@pytest.fixture
def place() -> Iterator[str]:
    with quick_folder() as folder:
        Path(folder, "policy.yaml").write_text(ALL, encoding="utf-8")
        yield folder


def use(place: str, mode: str, *server: str) -> dict[str, Any]:
    """Have the client use a server. Returns: what it saw."""
    done = subprocess.run(
        [PYTHON, CLIENT, mode, *server],
        env={**os.environ, "HOME": place},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(_TIME.sub("TIME", done.stdout))
    return said


def guarded(place: str, server: tuple[str, ...]) -> tuple[str, ...]:
    policy = os.path.join(place, "policy.yaml")
    # The SDK's client hands on HOME and PATH alone, so the state's folder is a default below HOME.
    words = ("-m", "interlock", "mcp", "--policy", policy, "--server", "all", "--", *server)
    return (sys.executable, *words)


def ledger_of(place: str) -> str:
    (found,) = Path(place).rglob("ledger")
    return str(found)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("name", SERVERS)
def test_all_kinds_of_messages_are_the_same_bare_and_guarded(place: str, name: str, mode: str) -> None:
    if name == "everything" and not (os.path.exists(EVERYTHING) and shutil.which("node")):
        pytest.skip("not run: the reference server is not installed (scripts/need_mcp)")
    bare = use(place, mode, *SERVERS[name])
    behind = use(place, mode, *guarded(place, SERVERS[name]))
    assert behind["found"] == bare["found"]
    # The reference server asks for roots, and tells of them, at moments of its own.
    untimed = () if name == "own" else ("roots", "logged")
    seen = [sorted(str(line) for line in one["seen"] if line[0] not in untimed) for one in (bare, behind)]
    assert seen[0] == seen[1]
    assert verify_path(ledger_of(place), replay=True).verdict == "complete"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_what_the_policy_does_not_know_is_asked_of_the_clients_user(place: str, mode: str) -> None:
    Path(place, "policy.yaml").write_text(ALL.replace("  add: {", "  other: {"), encoding="utf-8")
    said = use(place, mode, *guarded(place, SERVERS["own"]))
    # The form's first choice is `refuse`, which is what this client says.
    assert said["found"]["call add"]["isError"] is True
    assert "refused it" in json.dumps(said["found"]["call add"])
    assert any("may `all/add` be called?" in str(line) for line in said["seen"])
