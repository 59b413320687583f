"""The command line as a user has it: a process of its own, over a home and a workspace made for the test."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

ORDINARY = 1000
SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "src")


@dataclass
class Cli:
    """Takes: `uid`, who runs it; `interpreter`, a Python that this user can execute."""

    base: str
    uid: int
    interpreter: str

    @property
    def home(self) -> str:
        return os.path.join(self.base, "home")

    @property
    def workspace(self) -> str:
        return os.path.join(self.base, "home", "project")

    @property
    def state(self) -> str:
        return os.path.join(self.base, "state")

    def environment(self, extra: Mapping[str, str] = {}) -> dict[str, str]:
        packages = [path for path in sys.path if path.endswith("site-packages")]
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": self.home,
            "LANG": "C.UTF-8",
            "INTERLOCK_STATE": self.state,
            "PYTHONPATH": os.pathsep.join([SOURCE, *packages]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            **extra,
        }

    def __call__(
        self,
        *words: str,
        cwd: str | None = None,
        stdin: bytes = b"",
        environment: Mapping[str, str] = {},
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `interlock WORDS…` to its end."""
        return subprocess.run(
            self.words(*words),
            cwd=cwd or self.workspace,
            env=self.environment(environment),
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
            **self.identity(),
        )

    def words(self, *words: str) -> list[str]:
        return [self.interpreter, "-m", "interlock", *words]

    def identity(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.uid, "extra_groups": []} if os.geteuid() == 0 else {}

    def sh(self, script: str, *options: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a shell script behind the boundary."""
        return self("run", *options, "--", "sh", "-c", script, **more)

    def outcome(self, done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
        """Return what `run --json` said on stderr's last line."""
        value = json.loads(done.stderr.splitlines()[-1])
        assert isinstance(value, dict)
        return value

    def put(self, path: str, text: str | bytes, mode: int = 0o644) -> str:
        """Write a host file below the workspace, owned by the user."""
        full = os.path.join(self.workspace, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        os.chmod(full, mode)
        self.own()
        return full

    def get(self, path: str) -> str:
        with open(os.path.join(self.workspace, path), encoding="utf-8") as file:
            return file.read()

    def has(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self.workspace, path))

    def own(self) -> None:
        if os.geteuid() == 0:
            for folder, names, files in os.walk(self.base):
                for name in (".", *names, *files):
                    os.chown(os.path.join(folder, name), self.uid, self.uid, follow_symlinks=False)

    def story(self, run: str = "last") -> dict[str, Any]:
        done = self("show", run, "--json")
        assert done.returncode == 0, done.stderr
        value = json.loads(done.stdout)
        assert isinstance(value, dict)
        return value

    def verdict(self, run: str = "last", *options: str) -> str:
        done = self("verify", run, "--json", *options)
        return str(json.loads(done.stdout)["verdict"])


@functools.cache
def _interpreter(uid: int) -> str:
    """Return a Python of this version that the user can execute, "" if there is none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            tried = subprocess.run(
                [candidate, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import interlock", SOURCE],
                user=uid,
                group=uid,
                extra_groups=[],
                cwd="/",
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if tried.returncode == 0:
            return candidate
    return ""


_STANDINGS = ("root", "user") if os.geteuid() == 0 else ("user", "root")
in_one_standing = pytest.mark.parametrize(
    "cli", [_STANDINGS[0], pytest.param(_STANDINGS[1], marks=pytest.mark.slow)], indirect=True
)
"""For what does not hang on who runs it: the other user's half runs in `make soak`."""


@pytest.fixture(params=["root", "user"])
def cli(request: pytest.FixtureRequest) -> Iterator[Cli]:
    """`interlock` as root and as an ordinary user, over folders of their own."""
    uid = 0 if request.param == "root" else ORDINARY
    interpreter = sys.executable
    if os.geteuid() == 0:
        interpreter = sys.executable if uid == 0 else _interpreter(uid)
        if not interpreter:
            pytest.skip("not run: no Python that an ordinary user can execute")
    elif uid == 0:
        pytest.skip("not run: needs root")
    base = tempfile.mkdtemp(prefix="il-cli-")
    os.chmod(base, 0o755)
    made = Cli(base=base, uid=uid, interpreter=interpreter)
    os.makedirs(made.workspace)
    made.own()
    yield made
    shutil.rmtree(base, ignore_errors=True)


def answers(cli: Cli, text: str) -> str:
    """Write answers given ahead. Returns: the word for `--oracle`."""
    path = os.path.join(cli.base, "answers.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    cli.own()
    return f"answers:{path}"
