"""Git over HTTP: git's own backend over bare repositories."""

import asyncio
import os
import subprocess
from typing import Any

_SETTINGS = (("safe.directory", "*"), ("http.receivepack", "true"), ("uploadpack.allowFilter", "true"))


def plain_environment() -> dict[str, str]:
    """Return an environment in which git reads nobody's settings."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ana",
        "GIT_AUTHOR_EMAIL": "ana@allowed.test",
        "GIT_COMMITTER_NAME": "Ana",
        "GIT_COMMITTER_EMAIL": "ana@allowed.test",
    }


def make(folder: str) -> None:
    """Make `folder/git/demo.git` with one commit on `main`."""
    os.makedirs(f"{folder}/git")
    work = f"{folder}/seed"

    def git(*words: str, at: str) -> None:
        subprocess.run(["git", *words], cwd=at, env=plain_environment(), check=True, capture_output=True)

    os.mkdir(work)
    git("init", "-b", "main", ".", at=work)
    for name in ("README", "lib.py"):
        with open(f"{work}/{name}", "w") as file:
            file.write(f"{name} of the demo\n")
    git("add", ".", at=work)
    git("commit", "-m", "first", at=work)
    git("clone", "--bare", work, f"{folder}/git/demo.git", at=folder)


async def serve(
    method: str, path: str, headers: tuple[tuple[str, str], ...], body: bytes, folder: str
) -> dict[str, Any]:
    """Let git's backend answer, and return the parts of the reply."""
    route, _, query = path.partition("?")
    fields = {name.lower(): value for name, value in headers}
    environment = {
        **plain_environment(),
        "GIT_PROJECT_ROOT": f"{folder}/git",
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": route,
        "QUERY_STRING": query,
        "REQUEST_METHOD": method,
        "CONTENT_TYPE": fields.get("content-type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": fields.get("content-encoding", ""),
        "GIT_PROTOCOL": fields.get("git-protocol", ""),
        "REMOTE_USER": "dev",
        "REMOTE_ADDR": "203.0.113.1",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    }
    for number, (key, value) in enumerate(_SETTINGS):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    backend = await asyncio.create_subprocess_exec(
        "git", "http-backend", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    out, _ = await backend.communicate(body)
    head, _, rest = out.partition(b"\r\n\r\n")
    status, kept = 200, []
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "status":
            status = int(value.split()[0])
        elif name:
            kept.append((name.lower(), value.strip()))
    return {"status": status, "headers": tuple(kept), "body": rest}
