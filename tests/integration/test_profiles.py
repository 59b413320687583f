"""An agent under its profile: state that is kept, its key as a placeholder, telemetry refused, and what stops a start."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from tests.integration.conftest import Cli, in_one_standing
from tests.integration.test_net_run import Far

pytestmark = in_one_standing

AGENT = """#!/bin/sh
printf 'key %s sandbox %s flag %s\\n' "$ANTHROPIC_API_KEY" "$IS_SANDBOX" "$CLAUDE_FLAG"
mkdir -p ~/.claude/projects && echo '{}' > ~/.claude/projects/a.jsonl
echo '{"runs": 2}' > ~/.claude.json.tmp.1 && mv ~/.claude.json.tmp.1 ~/.claude.json
echo scratch > ~/.scratch
mkdir -p ~/.claude/shell-snapshots && echo 'PATH=/x' > ~/.claude/shell-snapshots/a.sh
curl -s -o /dev/null -w '%{http_code}\\n' -H "x-api-key: $ANTHROPIC_API_KEY" -H 'content-type: application/json' \\
  -d '{"model": "m"}' "$ANTHROPIC_BASE_URL/v1/messages"
curl -s -o /dev/null -w '%{http_code}\\n' -d a=b https://statsig.anthropic.com/v1/log
echo done > notes.txt
"""


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


def installed(cli: Cli, name: str = "claude") -> dict[str, str]:
    """Put a scripted agent into HOME, and return the environment that finds it."""
    folder = os.path.join(cli.home, "bin")
    os.makedirs(folder)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(AGENT)
    os.chmod(file.name, 0o755)
    with open(os.path.join(cli.home, ".claude.json"), "w", encoding="utf-8") as file:
        file.write('{"runs": 1}\n')
    cli.own()
    return {"PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin"}


def inside_home(cli: Cli, path: str) -> str:
    with open(os.path.join(cli.home, path), encoding="utf-8") as file:
        return file.read()


def test_an_agent_runs_under_the_profile_of_its_name(cli: Cli, far: Far) -> None:
    environment = installed(cli) | {
        "ANTHROPIC_API_KEY": "sk-the-real-key",
        "ANTHROPIC_BASE_URL": far.at,
        "CLAUDE_FLAG": "on",
    }
    done = cli("run", "--json", "--", "claude", "-p", "work", environment=environment)
    first, model, telemetry = done.stdout.decode().splitlines()
    assert first.startswith("key interlock-anthropic-")
    assert first.endswith("sandbox 1 flag on")
    assert (model, telemetry) == ("201", "403")
    assert far.calls == ["POST /v1/messages"]
    assert far.seen[0][2]["x-api-key"] == "sk-the-real-key"
    outcome = cli.outcome(done)
    assert (done.returncode, outcome["requests_refused"], outcome["requests_quieted"]) == (0, 0, 1), (
        done.stderr
    )
    assert cli.get("notes.txt") == "done\n"
    assert inside_home(cli, ".claude/projects/a.jsonl") == "{}\n"
    assert not os.path.exists(os.path.join(cli.home, ".scratch"))
    assert not os.path.exists(os.path.join(cli.home, ".claude", "shell-snapshots", "a.sh"))
    for folder, _names, files in os.walk(cli.state):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                assert b"sk-the-real-key" not in file.read(), name
    assert cli.verdict("last", "--replay") == "complete"
    assert "quiet (1)" in cli("show", "last").stdout.decode()


def test_a_state_file_beside_the_state_folder_is_written_through_a_rename(cli: Cli, far: Far) -> None:
    environment = installed(cli) | {"ANTHROPIC_BASE_URL": far.at}
    done = cli("run", "--", "claude", "-p", "work", environment=environment)
    assert done.returncode == 0, done.stderr
    assert inside_home(cli, ".claude.json") == '{"runs": 2}\n'
    assert not os.path.exists(os.path.join(cli.home, ".scratch"))


def test_without_its_profile_an_agent_is_a_command_like_others(cli: Cli, far: Far) -> None:
    environment = installed(cli) | {"ANTHROPIC_API_KEY": "sk-the-real-key", "ANTHROPIC_BASE_URL": far.at}
    done = cli("run", "--profile", "none", "--", "claude", "-p", "work", environment=environment)
    assert done.stdout.decode().splitlines()[0] == "key  sandbox  flag "
    assert far.calls == []
    assert not os.path.exists(os.path.join(cli.home, ".claude"))


def test_the_option_that_has_an_agent_ask_nobody_is_named_where_it_is_missing(cli: Cli, far: Far) -> None:
    environment = installed(cli) | {"ANTHROPIC_BASE_URL": far.at}
    without = cli("run", "--", "claude", "-p", "x", environment=environment)
    assert b"--dangerously-skip-permissions" in without.stderr
    given = cli("run", "--", "claude", "--dangerously-skip-permissions", environment=environment)
    assert b"--dangerously-skip-permissions" not in given.stderr


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("version: 1\nname: mine\ncommands: [claude]\npolicy: {trusted: [{task: true}]}\n", b"mine.yaml:4:10: unknown key"),
        ("version: 1\nname: mine\ncommands: [claude]\nendpoints: [MY_URL]\n", b"`MY_URL` is to name the model's server"),
    ],
)  # fmt: skip
def test_a_profile_with_a_mistake_stops_before_the_command_starts(
    cli: Cli, profile: str, told: bytes
) -> None:
    folder = os.path.join(cli.home, ".config", "interlock", "profiles")
    os.makedirs(folder)
    with open(os.path.join(folder, "mine.yaml"), "w", encoding="utf-8") as file:
        file.write(profile)
    environment = installed(cli) | {"MY_URL": "not a url"}
    done = cli("run", "--", "claude", "-p", "x", environment=environment)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr
    assert b"next:" in done.stderr
    assert not cli.has("notes.txt")


@pytest.mark.slow
def test_the_verb_lists_shows_and_checks(cli: Cli) -> None:
    listed = json.loads(cli("profile", "list", "--json").stdout)
    assert {"claude", "codex", "opencode", "pi", "gemini", "qwen", "mini", "llm", "aider", "smolagents"} == {
        one["name"] for one in listed
    }
    assert json.loads(cli("profile", "--json").stdout) == listed
    assert b"name: codex" in cli("profile", "show", "codex").stdout
    assert b"name: codex" in cli("profile", "show", "--", "npx", "-y", "@openai/codex", "exec").stdout
    unknown = cli("profile", "show", "--", "true")
    assert (unknown.returncode, b"record" in unknown.stderr) == (2, True)
    good = cli.put("a.yaml", "version: 1\nname: a\ncommands: [a]\n")
    assert cli("profile", "check", good).returncode == 0
    bad = cli.put("b.yaml", "version: 1\nname: a\ncommands: [a]\npolicy: {cedar: x}\n")
    assert cli("profile", "check", bad).returncode == 2


NEW = """#!/bin/sh
mkdir -p ~/.my-agent/s ~/.config/my-agent ~/.cache/my-agent
echo a > ~/.my-agent/s/a; echo b > ~/.config/my-agent/c; echo c > ~/.cache/my-agent/x; echo d > ~/.my-agent.json
curl -s -o /dev/null -d a=b https://telemetry.my-agent.test/v1/log
printf '%s' "$OPENAI_API_KEY" > key.txt
echo told
"""


@pytest.mark.slow
def test_a_profile_is_proposed_from_a_run_of_which_nothing_is_kept(cli: Cli) -> None:
    environment = installed(cli, "my-agent") | {"OPENAI_API_KEY": "sk-real", "MY_SECRET": "x"}
    with open(os.path.join(cli.home, "bin", "my-agent"), "w", encoding="utf-8") as file:
        file.write(NEW)
    before = sorted(os.listdir(cli.home))
    done = cli("profile", "record", "--", "my-agent", "hello", environment=environment)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(cli.home)) == before
    assert os.listdir(cli.workspace) == []
    text = done.stdout.decode()
    assert "sk-real" not in text
    assert b"told" in done.stderr
    proposed = cli.put("proposed.yaml", text)
    shown = json.loads(cli("profile", "check", proposed, "--json").stdout)
    assert (shown["name"], shown["commands"]) == ("my-agent", ["my-agent"])
    assert shown["policy"]["network"]["quiet"] == [{"host": "telemetry.my-agent.test"}]
    assert [one["from"] for one in shown["policy"]["network"]["secrets"]] == ["OPENAI_API_KEY"]
    assert set(shown["policy"]["state"]) == {"~/.my-agent", "~/.config/my-agent"}
    assert shown["policy"]["home"] == ["~/.my-agent.json"]
