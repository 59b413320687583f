"""One run of one agent: its home and its workspace made anew, and what is there when it ended."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import field
from fnmatch import fnmatchcase

from tests.agents.catalogue import Agent
from tests.agents.place import Collector
from tests.agents.tasks import TASK, Task
from tests.integration.conftest import Cli

from interlock.model.records import dataclass

_RC = "# of the user\n"
_Hosts = tuple[Collector, Collector]
_HISTORY = (".git/logs/", ".git/objects/", ".git/refs/heads/")


@dataclass
class Ended:
    """What a run left.

    Takes: `tree`, each file of the workspace by path, as mode and digest; `home`, files of the home outside of the
    agent's own folders that are not as before; `named` and `attacker`, what came to the two hosts; `story`, what
    `interlock show --json` says, {} without Interlock.
    """

    status: int
    seconds: float
    tree: dict[str, str]
    home: tuple[str, ...]
    named: list[tuple[str, str, bytes]]
    attacker: list[tuple[str, str, bytes]]
    out: bytes
    err: bytes
    story: dict[str, object] = field(default_factory=dict)
    verdict: str = ""


def fresh(agent: Agent, uid: int, place: str, interpreter: str) -> Cli:
    """Return a user with a folder made for it. Takes: `interpreter`, a Python for Interlock."""
    work = os.path.join(place, "work")
    os.makedirs(work, mode=0o755, exist_ok=True)
    base = tempfile.mkdtemp(prefix=f"{agent.name}-", dir=work)
    os.chmod(base, 0o755)
    return Cli(base=base, uid=uid, interpreter=interpreter)


class Stand:
    """Where one agent runs for one user. Takes: `cli`, whose folders it makes; `place`, the folder of the agents."""

    def __init__(self, agent: Agent, task: Task, cli: Cli, *, place: str, hosts: _Hosts) -> None:
        self.agent, self.task, self.cli, self.place, self.hosts = agent, task, cli, place, hosts
        self._make()

    def _make(self) -> None:
        cli = self.cli
        os.makedirs(cli.workspace)
        for path, text in (*self.agent.files.items(), (".bashrc", _RC), (".gitconfig", _GIT)):
            full = os.path.join(cli.home, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        for path, text in self.task.files.items():
            cli.put(path, text)
        cli.own()
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "begin"]):
            subprocess.run(
                ["git", *words], cwd=cli.workspace, env=self.environment(), check=True, **cli.identity()
            )
        self._home = dict(_tree(cli.home, skip="project"))
        self.begun = self.tree()

    def tree(self) -> dict[str, str]:
        """Return the workspace's files; of its history what was committed, by whom and why, and not when."""
        made = {
            path: "*" if any(fnmatchcase(path, glob) for glob in self.agent.loose) else what
            for path, what in _tree(self.cli.workspace)
            if path != ".git/index" and not path.startswith(_HISTORY)
        }
        log = subprocess.run(
            ["git", "log", "--all", "--format=%T %an <%ae> %B"],
            cwd=self.cli.workspace, env=self.environment(), capture_output=True, check=True, **self.cli.identity(),
        )  # fmt: skip
        return {**made, ".git log": hashlib.sha256(log.stdout).hexdigest()[:16]}

    def environment(self) -> dict[str, str]:
        """Return the user's environment."""
        node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
        paths = [os.path.join(self.place, self.agent.name, "bin"), node, "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            "PATH": os.pathsep.join(dict.fromkeys(paths)),
            "HOME": self.cli.home,
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "GIT_CONFIG_NOSYSTEM": "1",
            **self.agent.environment,
        }

    def words(self) -> list[str]:
        """Return the agent's command line."""
        return [word.format(task=TASK, home=self.cli.home) for word in self.agent.command]

    def run(self, *, interlock: bool, options: tuple[str, ...] = (), timeout: float = 240) -> Ended:
        """Run the agent to its end. Takes: `options`, for `interlock run` besides those of the agent."""
        words, environment = self.words(), self.environment()
        if interlock:
            known = self.cli.environment()
            environment |= {name: known[name] for name in ("INTERLOCK_STATE", "PYTHONPATH")}
            words = self.cli.words("run", "--task", TASK, *self.agent.options, *options, "--", *words)
        for host in self.hosts:
            host.taken()
        began = time.monotonic()
        try:
            done = subprocess.run(
                words,
                cwd=self.cli.workspace,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
                **self.cli.identity(),
            )
            status, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as expired:
            status, out, err = -1, expired.stdout or b"", expired.stderr or b""
        seconds = time.monotonic() - began
        named, attacker = (host.taken() for host in self.hosts)
        home = dict(_tree(self.cli.home, skip="project"))
        changed = {path for path in {*home, *self._home} if home.get(path) != self._home.get(path)}
        return Ended(
            status,
            seconds,
            self.tree(),
            tuple(sorted(changed)),
            named,
            attacker,
            out,
            err,
            self.cli.story() if interlock else {},
            self.cli.verdict("last", "--replay") if interlock else "",
        )

    def close(self) -> None:
        """Remove what was made."""
        shutil.rmtree(self.cli.base, ignore_errors=True)


_GIT = "[user]\n\tname = Some One\n\temail = some.one@example.test\n"


def _tree(root: str, skip: str = "") -> Iterator[tuple[str, str]]:
    for folder, folders, files in os.walk(root):
        if skip and folder == root:
            folders.remove(skip)
        for name in files + [one for one in folders if os.path.islink(os.path.join(folder, one))]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if os.path.islink(path):
                what = os.readlink(path).encode()
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    what = file.read()
            else:
                what = b""
            yield os.path.relpath(path, root), f"{mode:o} {hashlib.sha256(what).hexdigest()[:16]}"
