"""Interlock within the fake internet: a home, a project and a policy of its own, as root and as an ordinary user."""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.fakes.internet.world import REPOSITORY, World

ORDINARY = 1000


class Standing:
    """Runs `interlock` in the fake internet. Takes: `uid`, who; `interpreter`, a Python that this user can execute."""

    def __init__(self, world: World, uid: int, interpreter: str) -> None:
        self.world = world
        self.uid = uid
        self.interpreter = interpreter
        self.base = tempfile.mkdtemp(prefix="il-net-", dir="/var/tmp")
        os.chmod(self.base, 0o755)
        self.home = f"{self.base}/home"
        self.project = f"{self.home}/project"
        os.makedirs(self.project)
        self.own()

    def own(self) -> None:
        """Give everything to the user."""
        for folder, names, files in os.walk(self.base):
            for name in (".", *names, *files):
                os.chown(os.path.join(folder, name), self.uid, self.uid, follow_symlinks=False)

    def put(self, path: str, text: str | bytes, mode: int = 0o644) -> str:
        """Write a file below the project and return its path."""
        full = os.path.join(self.project, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        os.chmod(full, mode)
        self.own()
        return full

    def policy(self, network: Mapping[str, Any], **more: Any) -> str:
        """Write a policy whose `network` is this, and return its path."""
        path = f"{self.base}/policy.yaml"
        with open(path, "w") as file:
            json.dump({"version": 1, "preset": "coding", "network": network, **more}, file)
        os.chmod(path, 0o644)
        return path

    def environment(self, extra: Mapping[str, str] = {}) -> dict[str, str]:
        """Return the monitor's environment: it trusts the fake internet's public authority."""
        packages = [path for path in sys.path if path.endswith("site-packages")]
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": self.home,
            "LANG": "C.UTF-8",
            "INTERLOCK_STATE": f"{self.base}/state",
            "PYTHONPATH": os.pathsep.join([f"{REPOSITORY}/src", *packages]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "SSL_CERT_FILE": self.world.trust,
            **extra,
        }

    def words(self, *words: str) -> list[str]:
        """Return the command that runs `interlock WORDS…` there."""
        command = self.world.enter([self.interpreter, "-m", "interlock", *words], self.uid)
        command[3] = f"--wd={self.project}"
        return command

    def __call__(
        self, *words: str, environment: Mapping[str, str] = {}, stdin: bytes = b"", timeout: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `interlock WORDS…` to its end."""
        return subprocess.run(
            self.words(*words),
            env=self.environment(environment),
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )

    def sh(
        self,
        script: str,
        network: Mapping[str, Any],
        environment: Mapping[str, str] = {},
        timeout: float = 60,
        **more: Any,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a shell script behind the boundary, under a policy with this `network`; nobody answers questions."""
        words = self.strict(network, **more)
        return self(*words, "sh", self.script(script), environment=environment, timeout=timeout)

    def strict(self, network: Mapping[str, Any], **more: Any) -> list[str]:
        """Return the words before those of the command, for a run whose questions nobody answers."""
        return ["run", "--policy", self.policy(network, **more), "--oracle", "strict", "--"]

    def script(self, text: str) -> str:
        """Write a script into the project and return its name.

        What stands on the command line, the user has said: a host that is named there would be vouched for.
        """
        self.put("steps.sh", text)
        return "steps.sh"

    def close(self) -> None:
        """Remove its folders."""
        shutil.rmtree(self.base, ignore_errors=True)


def standing_with(world: World, who: str, files: Mapping[str, str]) -> Iterator[Standing]:
    """Yield a standing with these files in its project, then close it. Takes: `who`, `root` or `user`."""
    uid = 0 if who == "root" else ORDINARY
    interpreter = interpreter_for(uid)
    if not interpreter:
        pytest.skip("not run: no Python that an ordinary user can execute")
    made = Standing(world, uid, interpreter)
    for path, text in files.items():
        made.put(path, text)
    yield made
    made.close()


@functools.cache
def interpreter_for(uid: int) -> str:
    """Return a Python of this version that the user can execute, "" if there is none."""
    if uid == 0:
        return sys.executable
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = [path for path in sys.path if path.endswith("site-packages")]
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            tried = subprocess.run(
                [candidate, "-c", "import interlock.policy, orjson, cedarpy"],
                user=uid,
                group=uid,
                extra_groups=[],
                cwd="/",
                env={"PYTHONPATH": os.pathsep.join([f"{REPOSITORY}/src", *packages])},
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if tried.returncode == 0:
            return candidate
    return ""


def allow(*hosts: str) -> dict[str, Any]:
    """Return a policy's `network` that lets everything pass to these hosts, each a name or `name:port`."""
    entries: list[dict[str, Any]] = []
    for one in hosts:
        host, _, port = one.partition(":")
        entry = {"host": host, "methods": ["*"], "clearance": "internal"}
        entries.append({**entry, "port": int(port)} if port else entry)
    return {"hosts": entries}
