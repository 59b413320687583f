"""The fake internet as a test has it: start it, run programs in it, read what it saw."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tests.fakes.internet import journal
from tests.fakes.internet.journal import Record, Request

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
_START_S = 30


class World:
    """A running fake internet. Takes: `pid`, of its servers, whose namespaces are entered."""

    def __init__(self, folder: str, pid: int) -> None:
        self.folder = folder
        self.pid = pid
        self.trust = f"{folder}/public.pem"
        self.private_trust = f"{folder}/private.pem"

    def enter(self, words: list[str], uid: int = 0) -> list[str]:
        """Return the command that runs words inside, as that user."""
        become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", f"--mount=/proc/{self.pid}/ns/mnt",
                f"--wd={os.getcwd()}", *become, *words]  # fmt: skip

    def run(
        self,
        *words: str,
        uid: int = 0,
        environment: Mapping[str, str] | None = None,
        cwd: str = "/",
        stdin: bytes = b"",
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program in the fake internet, with no Interlock about it."""
        command = self.enter(list(words), uid)
        command[3] = f"--wd={cwd}"
        return subprocess.run(
            command,
            env=dict(environment) if environment is not None else self.environment(),
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )

    def environment(self) -> dict[str, str]:
        """Return what a plain client needs to trust the fake internet."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            **dict.fromkeys(TRUST_VARIABLES, self.trust),
        }

    def mark(self) -> int:
        """Return where the journal ends now, for `seen`."""
        return os.path.getsize(f"{self.folder}/journal")

    def seen(self, mark: int = 0, *, settle_s: float = 0.15) -> list[Record]:
        """Return what came after a mark, once nothing more comes."""
        size = -1
        while size != (size := self.mark()):
            time.sleep(settle_s)
        return journal.read(f"{self.folder}/journal", mark)

    def requests(self, mark: int = 0) -> list[Request]:
        """Return the HTTP requests that came after a mark."""
        return journal.requests(self.seen(mark))


TRUST_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "NPM_CONFIG_CAFILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
)


def why_not() -> str:
    """Return why no fake internet can be made here, "" if it can."""
    if os.geteuid() != 0:
        return "not run: needs root, for a network namespace of its own"
    for name in ("ip", "nsenter", "unshare", "setpriv", "git"):
        if shutil.which(name) is None:
            return f"not run: no {name} (scripts/need_clients installs it)"
    return ""


@contextlib.contextmanager
def fake_internet() -> Iterator[World]:
    """Make a fake internet, and end it."""
    folder = tempfile.mkdtemp(prefix="il-world-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    options: dict[str, Any] = {"cwd": REPOSITORY, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    words = ["unshare", "--net", "--mount", "--propagation=private", sys.executable, "-B"]
    server = subprocess.Popen([*words, "-m", "tests.fakes.internet", folder], **options)
    try:
        assert server.stdin is not None
        assert server.stdout is not None
        if server.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the fake internet did not start: exit {server.wait(_START_S)}")
        yield World(folder, server.pid)
    finally:
        server.stdin.close()  # type: ignore[union-attr]
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()  # type: ignore[union-attr]
        shutil.rmtree(folder, ignore_errors=True)
