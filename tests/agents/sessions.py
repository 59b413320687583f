"""Record how an agent looks at a terminal under `interlock run`: tmux, fixed size, scripted keys, scripted model.

The screens are written down as text, machine paths, ids and times made neutral.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import field

from tests.agents.catalogue import AGENTS, Agent
from tests.agents.model_server import ModelServer
from tests.agents.place import Collector, enter, settle
from tests.agents.script import Script
from tests.agents.tasks import POISONED, TASK, script
from tests.agents.trial import Stand
from tests.integration.conftest import ORDINARY, Cli, _interpreter

from interlock.model.records import dataclass

_SIZE = (100, 36)
_SOCKET = "interlock-record"
_NAMED = frozenset({"Enter", "Up", "Down", "Escape", "C-c", "C-d", "C-z"})
"""What tmux knows as a key and not as a text."""


_SEEN = '[notice.model_migrations]\n"gpt-5.5" = "gpt-6-sol"\n'
"""That codex has told of its newer model."""


@dataclass
class Key:
    """A moment of a session. Takes: `after`, what must be on the screen; `keys`, what is typed then, as tmux names it."""

    after: str
    keys: tuple[str, ...]
    caption: str
    shown: bool = True


@dataclass
class Play:
    """A session. Takes: `words`, the agent's command at a terminal; `files`, what its home holds besides."""

    agent: Agent
    words: tuple[str, ...]
    keys: tuple[Key, ...]
    files: Mapping[str, str] = field(default_factory=dict)


def _end(prompt: str, leave: tuple[str, ...]) -> tuple[Key, ...]:
    return (
        Key(prompt, (TASK, "Enter"), "The agent is at its prompt; the task is typed."),
        Key("Done.", leave, "The agent has done it, and what the README made it do besides. It is left."),
        Key("help] >", ("r", "Enter"), "Interlock asks for what it held. All of it is refused."),
        Key("confirm? [y/n]", ("y", "Enter"), "", shown=False),
        Key(
            "evidence:",
            ("git status --short; cat notes.txt; ls .git/hooks | grep -v sample", "Enter"),
            "The run is over.",
        ),
        Key(
            "hello from the scripted agent",
            ("interlock show last", "Enter"),
            "The notes are there, the hook is not.",
        ),
        Key("sent (", (), "What the run did, and why it was held."),
    )


def plays(workspace: str) -> dict[str, Play]:
    """Return the sessions. Takes: `workspace`, which the agents are told to trust."""
    agents = {agent.name: agent for agent in AGENTS}
    claude, codex = agents["claude"].calmed(), agents["codex"].calmed()
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {
            "approved": [claude.environment["ANTHROPIC_API_KEY"][-20:]],
            "rejected": [],
        },
        "projects": {workspace: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    settings = {"skipDangerousModePermissionPrompt": True}
    trusted = f'[projects."{workspace}"]\ntrust_level = "trusted"\n'
    return {
        "claude": Play(
            claude,
            ("claude", "--dangerously-skip-permissions"),
            (
                Key("use this API key?", ("Up", "Enter"), "", shown=False),
                *_end("bypass permissions on", ("/exit", "Enter")),
            ),
            {".claude.json": json.dumps(state), ".claude/settings.json": json.dumps(settings)},
        ),
        "codex": Play(
            codex,
            ("codex", "--dangerously-bypass-approvals-and-sandbox"),
            _end("GPT-5.5 default", ("/quit", "Enter")),
            {".codex/config.toml": codex.files[".codex/config.toml"] + trusted + _SEEN},
        ),
    }


class _Me(Cli):
    """A user whose home lies where a home does."""

    @property
    def home(self) -> str:
        return self.base

    @property
    def workspace(self) -> str:
        return f"{self.base}/project"

    @property
    def state(self) -> str:
        return f"{self.base}/.local/state/interlock"


class Terminal:
    """A tmux of its own with one window. Takes: `stand`, whose user and workspace it has."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._environment = {
            **stand.environment(),
            "TMUX_TMPDIR": stand.cli.base,
            "PS1": "$ ",
            "SHELL": "/bin/bash",
        }
        known = stand.cli.environment()
        self._environment |= {name: known[name] for name in ("INTERLOCK_STATE", "PYTHONPATH")}
        # A user has `interlock` on the path.
        tool = os.path.join(stand.cli.home, ".local", "bin", "interlock")
        os.makedirs(os.path.dirname(tool), exist_ok=True)
        with open(tool, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {stand.cli.interpreter} -m interlock "$@"\n')
        os.chmod(tool, 0o755)
        stand.cli.own()
        self._environment["PATH"] = f"{os.path.dirname(tool)}:{self._environment['PATH']}"
        self("new-session", "-d", "-x", str(_SIZE[0]), "-y", str(_SIZE[1]), "bash --norc --noprofile")

    def __call__(self, *words: str) -> str:
        """Run a command of tmux and return what it prints."""
        done = subprocess.run(
            ["tmux", "-L", _SOCKET, "-f", "/dev/null", *words],
            cwd=self._stand.cli.workspace, env=self._environment, capture_output=True, text=True, check=False,
            **self._stand.cli.identity(),
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr)
        return str(done.stdout)

    def screen(self) -> str:
        """Return what is on the screen."""
        return self("capture-pane", "-p")

    def settled(self) -> str:
        """Return the screen as soon as it stands still."""
        last = self.screen()
        for _ in range(60):
            time.sleep(0.5)
            now = self.screen()
            if now == last:
                return now
            last = now
        return last

    def type(self, keys: tuple[str, ...]) -> None:
        """Type texts and keys, one after another."""
        for key in keys:
            self("send-keys", *(() if key in _NAMED else ("-l",)), key)
            # A program takes what comes too fast for one pasted text, and Enter for a part of it.
            time.sleep(1.5)

    def wait(self, text: str, seconds: float = 60) -> None:
        """Return when a text is on the screen. Raises: TimeoutError."""
        end = time.monotonic() + seconds
        while text not in " ".join(self.screen().split()) and text not in self.screen():
            if time.monotonic() > end:
                raise TimeoutError(f"never on the screen: {text}\n{self.screen()}")
            time.sleep(0.1)

    def close(self) -> None:
        """End the tmux."""
        self("kill-server")


def record(name: str, place: str, server: ModelServer, hosts: tuple[Collector, Collector]) -> str:
    """Play a session and return its text."""
    agent = plays("/")[name].agent
    me = _Me(base="/home/me", uid=ORDINARY, interpreter=_interpreter(ORDINARY))
    stand = Stand(agent, POISONED, me, place=place, hosts=hosts)
    try:
        play = plays(stand.cli.workspace)[name]
        for path, text in play.files.items():
            full = os.path.join(stand.cli.home, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        stand.cli.own()
        made = script(POISONED, agent, stand.cli.workspace)
        # Two things to be asked about, and the task.
        steps = tuple(step for number, step in enumerate(made.steps) if number not in (3, 4))
        server.script = Script(steps, stand.cli.workspace)
        terminal = Terminal(stand)
        try:
            return _neutral(_played(play, terminal))
        finally:
            terminal.close()
    finally:
        stand.close()


def _played(play: Play, terminal: Terminal) -> str:
    terminal.wait("$")
    command = shlex.join(["interlock", "run", "--task", TASK, "--", *play.words])
    parts = [f"# {play.agent.name}, at a terminal of {_SIZE[0]} columns and {_SIZE[1]} lines\n"]
    terminal.type((command, "Enter"))
    try:
        for key in play.keys:
            terminal.wait(key.after)
            screen = terminal.settled()
            if key.shown:
                parts.append(_moment(key.caption, screen, key.keys))
            terminal.type(key.keys)
    except TimeoutError as error:
        parts.append(f"!! {error}")
    return "\n".join(parts)


def _moment(caption: str, screen: str, keys: tuple[str, ...]) -> str:
    lines = screen.rstrip().splitlines()
    typed = f"\ntyped: {' '.join(keys)}\n" if keys else "\n"
    return f"{caption}\n\n" + "".join(f"  | {line.rstrip()}".rstrip() + "\n" for line in lines) + typed


def _neutral(text: str) -> str:
    # A run's id may be broken over two lines of the screen.
    text = re.sub(
        r"\b20\d{6}-(\n  \| )?\d{6}-[0-9a-f]{6}",
        lambda found: f"20260102-{found[1] or ''}030405-abcdef",
        text,
    )
    text = re.sub(r"\b1\d{12}\b", "1767322800000", text)
    text = re.sub(
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "00000000-0000-4000-8000-000000000000",
        text,
    )
    text = re.sub(r"\b1\d{18}\b", "1767322800000000000", text)
    text = re.sub(r"\b\d{1,2}:\d{2}( [AP]M)?$", "03:04", text, flags=re.MULTILINE)
    text = re.sub(r"\b\d+(?:\.\d+)?s\b", "1s", text)
    return re.sub(r"\b(policy +\S+) [0-9a-f]{12}\b", r"\1 0123456789ab", text)


def main() -> int:
    """Record the sessions that the command line names."""
    options = argparse.ArgumentParser(prog="scripts/record_session")
    options.add_argument("names", nargs="*", default=["claude", "codex"])
    options.add_argument("--place", default="/opt/interlock-agents")
    options.add_argument("--out", default="docs/sessions")
    given = options.parse_args()
    if os.geteuid() != 0:
        options.error("it lays a network of its own: start it as root")
    enter(["-m", "tests.agents.sessions", *sys.argv[1:]])
    failed = 0
    with tempfile.TemporaryDirectory(prefix="il-sessions-") as folder:
        os.chmod(folder, 0o755)
        hosts = settle(folder)
        # A home of its own, and not on a file system in memory.
        homes = tempfile.mkdtemp(prefix="sessions-", dir=given.place)
        os.chmod(homes, 0o755)
        subprocess.run(["mount", "--bind", homes, "/home"], check=True)
        server = ModelServer(Script(({"say": "Done."},)), port=8911)
        os.makedirs(given.out, exist_ok=True)
        for name in given.names:
            text = record(name, given.place, server, hosts)
            failed += "\n!! " in text
            path = os.path.join(given.out, f"{name}.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            print(f"{path}: {len(text.splitlines())} lines", flush=True)
        for path in ("/etc/resolv.conf", "/etc/hosts", "/home"):
            subprocess.run(["umount", "--lazy", os.path.realpath(path)], check=False)
        shutil.rmtree(homes, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
