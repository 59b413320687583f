"""Which profile a command line gets: by its name, behind wrappers and links, the user's own first."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from interlock.model.errors import InputError, PolicyError
from interlock.runtime.profiles import command_names, find_profile, lacks_unattended, named, shipped


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("claude -p x", "claude"),
        ("/opt/bin/claude -p x", "claude"),
        ("env -u C A=b claude", "claude"),
        ("env -i PATH=/bin claude", "claude"),
        ("timeout -k 5 60 nice -n 5 codex exec x", "codex"),
        ("nohup setsid stdbuf -oL codex", "codex"),
        ("npx -y @anthropic-ai/claude-code@2.1 -p x", "claude"),
        ("npx --package x @openai/codex", "codex"),
        ("npm exec -- @google/gemini-cli", "gemini"),
        ("bun x opencode-ai", "opencode"),
        ("uvx --from mini-swe-agent mini -t x", "mini"),
        ("uv tool run llm x", "llm"),
        ("pipx run aider-chat==0.86", "aider"),
        ("python3 -u -m aider --message x", "aider"),
        ("python -W ignore -m minisweagent.run.mini", "mini"),
        ("python /venv/bin/aider", "aider"),
        ("node --no-warnings /x/node_modules/@google/gemini-cli/dist/index.js", "gemini"),
        ("node /x/node_modules/@qwen-code/qwen-code/cli.js", "qwen"),
        ("/x/node_modules/@mariozechner/pi-coding-agent/dist/cli.js", "pi"),
        ("bash -lc 'claude -p hello'", "claude"),
        ("sh -c 'exec env A=b codex'", "codex"),
        ("true", None),
        ("env", None),
        ("", None),
        ("python -c 'import aider'", None),
        ("sh -c 'cd x && claude'", None),
        ("grep claude codex", None),
        ("python claude/setup.py", None),
        ("env env env env env env env env env claude", None),
    ],
)
def test_a_command_line_names_its_agent(line: str, name: str | None, tmp_path: Path) -> None:
    found = find_profile(
        None, shlex.split(line), {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, str(tmp_path)
    )
    assert (found.name if found else None) == name


def test_a_link_names_what_it_leads_to(tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "@openai" / "codex" / "bin"
    package.mkdir(parents=True)
    (package / "start.js").write_text("")
    (package / "start.js").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "my-tool").symlink_to("../node_modules/@openai/codex/bin/start.js")
    assert list(command_names(["my-tool"], str(tmp_path / "bin"))) == ["my-tool", "start", "codex"]
    (tmp_path / "bin" / "loop").symlink_to("loop")
    assert "loop" in list(command_names([str(tmp_path / "bin" / "loop")]))


MINE = "version: 1\nname: mine\ncommands: [claude, my-agent]\n"


def home_with(tmp_path: Path, **files: str) -> dict[str, str]:
    folder = tmp_path / "home" / ".config" / "interlock" / "profiles"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return {"HOME": str(tmp_path / "home"), "PATH": "/bin"}


def test_the_users_own_profile_wins_over_a_shipped_one(tmp_path: Path) -> None:
    environment = home_with(tmp_path, mine=MINE)
    found = find_profile(None, ["claude"], environment, "/w")
    assert found is not None
    assert found.name == "mine"
    assert named("mine", environment).filename.endswith("mine.yaml")
    assert named("claude", environment).filename == "profile claude"
    chosen = find_profile("codex", ["claude"], environment, "/w")
    assert chosen is not None
    assert chosen.name == "codex"
    assert find_profile("none", ["claude"], environment, "/w") is None


def test_a_profile_in_the_workspace_is_never_taken_by_itself(tmp_path: Path) -> None:
    environment = home_with(tmp_path, mine=MINE)
    found = find_profile(None, ["my-agent"], environment, str(tmp_path / "home"))
    assert found is None
    path = os.path.join(environment["HOME"], ".config", "interlock", "profiles", "mine.yaml")
    chosen = find_profile(path, ["my-agent"], environment, str(tmp_path / "home"))
    assert chosen is not None


def test_two_profiles_of_one_command_are_told(tmp_path: Path) -> None:
    environment = home_with(tmp_path, a=MINE, b=MINE.replace("mine", "other"))
    with pytest.raises(PolicyError, match="too"):
        find_profile(None, ["my-agent"], environment, "/w")


def test_a_mistake_in_any_of_the_users_profiles_is_told(tmp_path: Path) -> None:
    environment = home_with(tmp_path, bad="version: 1\nname: [\n")
    with pytest.raises(PolicyError, match=r"bad\.yaml"):
        find_profile(None, ["true"], environment, "/w")
    assert find_profile("none", ["true"], environment, "/w") is None


def test_a_name_that_is_not_there_is_told_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no profile is named `x`") as caught:
        named("x", {"HOME": str(tmp_path)})
    assert "profile list" in caught.value.hint
    with pytest.raises(InputError, match="cannot be read"):
        named(str(tmp_path / "x.yaml"), {"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    "place", ["~/.ssh", "~/.config/gh", "~/.docker", "~/.config/google-chrome", "~/.aws/sub"]
)
@pytest.mark.parametrize("key", ["state", "home"])
def test_a_profile_that_would_show_other_programs_keys_is_a_mistake(
    tmp_path: Path, place: str, key: str
) -> None:
    environment = home_with(tmp_path, mine=f"{MINE}policy: {{{key}: ['{place}']}}\n")
    with pytest.raises(PolicyError, match="would show"):
        find_profile(None, ["true"], environment, "/w")


def test_a_missing_option_is_named_and_one_that_is_there_is_not() -> None:
    assert lacks_unattended(shipped("claude"), ["claude", "-p", "x"]) == "--dangerously-skip-permissions"
    assert not lacks_unattended(shipped("claude"), ["claude", "--permission-mode", "bypassPermissions"])
    assert not lacks_unattended(shipped("gemini"), ["gemini", "--approval-mode=yolo"])
    assert not lacks_unattended(shipped("pi"), ["pi"])
