"""A held run of the real product on a disk that can be put back, and the product's verbs over it, whole or killed."""

import inspect
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any

from tests.crash.disk import RecordedDisk
from tests.crash.edits import twenty_effects
from tests.crash.far_side import Arrival, FarSide
from tests.crash.tracing import Ended, Stop, traced
from tests.fakes.staged_edits import fill
from tests.fakes.staged_tree import Snapshot, snapshot

POSTS = ("/one", "/two", "/three")
_POLICY = """version: 1
preset: none
environment: {{pass: [PATH, HOME]}}
network:
  hosts: [{{host: "127.0.0.1", port: {port}, park: [POST]}}]
  publish: [{{port: {port}, to: "127.0.0.1:{port}"}}]
trusted: [{{task: true}}]
cedar: |
  @id("files-and-reads")
  permit(principal, action, resource)
  when {{ context.channel == "file" || context.operation == "read" }};
"""
_AGENT = """import http.client, os, shutil
{edits}
line = http.client.HTTPConnection("127.0.0.1", {port})
line.request("GET", "/began")
assert line.getresponse().status == 200
line.close()
os.chdir({workspace!r})
twenty_effects(".")
for path in {posts!r}:
    line = http.client.HTTPConnection("127.0.0.1", {port})
    line.request("POST", path, b"of the agent" + path.encode())
    line.getresponse().read()
    line.close()
"""
# what a verb may load late: loaded before the fork, so that each killed process starts in no time
_LATE = (
    "interlock.cli.apply", "interlock.cli.discard", "interlock.cli.recover", "interlock.cli.show",
    "interlock.cli.verify", "interlock.cli.diff", "interlock.evidence.recovery", "interlock.evidence.side_by_side",
    "interlock.runtime.history", "interlock.runtime.story", "interlock.runtime.sending", "interlock.runtime.network",
    "interlock.runtime.recovering", "interlock.boundary.net.parked", "interlock.boundary.net.pool",
    "interlock.staging.merging", "interlock.verify", "asyncio", "uvloop", "concurrent.futures", "orjson", "yaml",
    "cedarpy", "encodings.idna", "encodings.latin_1",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a verb said and how it ended."""

    status: int
    out: bytes
    err: bytes

    def document(self) -> Any:
        return json.loads(self.out)


class HeldRun:
    """One held run: some twenty effects on files and three parked requests, on a disk of its own.

    Takes: `options` of the disk's mount; `hold`, False to leave the making of the run to the caller.
    """

    def __init__(self, options: str = "", *, hold: bool = True) -> None:
        self._scratch = tempfile.mkdtemp(prefix="il-crash-", dir="/var/tmp")
        os.chmod(self._scratch, 0o755)
        self.top = f"{self._scratch}/disk"
        os.mkdir(self.top)
        self.disk = RecordedDisk(self.top, options=options)
        self.far = FarSide(self.disk.control)
        self.run_id = ""
        self.began = 0
        try:
            self._prepare(hold=hold)
        except BaseException:
            self.close()
            raise

    def _prepare(self, *, hold: bool) -> None:
        self.workspace = f"{self.top}/home/project"
        self._policy = f"{self._scratch}/policy.yaml"
        os.environ.update(
            HOME=f"{self.top}/home",
            PATH="/usr/local/bin:/usr/bin:/bin",
            INTERLOCK_STATE=f"{self.top}/state",
            LANG="C.UTF-8",
        )
        with open(self._policy, "w", encoding="ascii") as file:
            file.write(_POLICY.format(port=self.far.port))
        for name in _LATE:
            import_module(name)
        self.disk.mount()
        os.makedirs(self.workspace)
        fill(self.workspace, links=False)
        script = _AGENT.format(
            edits=inspect.getsource(twenty_effects),
            posts=POSTS,
            port=self.far.port,
            workspace=self.workspace,
        )
        with open(f"{self.workspace}/agent.py", "w", encoding="ascii") as file:
            file.write(script)
        self.before = self.look()
        if hold:
            self.hold()
        self.disk.unmount()
        self.base = self.disk.content()

    def hold(self) -> None:
        held = self.verb(*self.held_words())
        assert held.status == 0, held.err
        (self.run_id,) = os.listdir(f"{self.top}/state/runs")
        assert self.look() == self.before
        (began,) = self.far.arrivals()
        assert began.path == "/began"
        self.began = began.position

    def held_words(self) -> tuple[str, ...]:
        return (
            "run", "--hold", "--policy", self._policy, "--task", "t", "--workspace", self.workspace, "--",
            "python3", f"{self.workspace}/agent.py",
        )  # fmt: skip

    def __enter__(self) -> "HeldRun":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.far.close()
        self.disk.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def look(self) -> Snapshot:
        return snapshot(self.workspace, folder_times=True)

    def verb(self, *words: str) -> Said:
        """Run `interlock WORDS…` to its end, in a process of its own."""
        out, err = os.memfd_create("out"), os.memfd_create("err")
        pid = os.fork()
        if pid == 0:
            self._become(words, out, err)
        _, status = os.waitpid(pid, 0)
        return Said(status=os.waitstatus_to_exitcode(status), out=_all(out), err=_all(err))

    def killed(self, words: Sequence[str], kill_at: Callable[[Stop], bool]) -> Ended:
        """Run `interlock WORDS…`, asking at each of its changing calls whether it is to be killed there."""
        out = os.memfd_create("out")
        try:
            return traced(lambda: self._become(words, out, out), kill_at)
        finally:
            os.close(out)

    def arrivals(self) -> list[Arrival]:
        return self.far.arrivals()

    def phase(self) -> str:
        """Return the phase that the run's own account gives, "" where there is none."""
        told = self.verb("show", self.run_id, "--json")
        return str(told.document()["phase"]) if told.status == 0 else ""

    def put_back(self) -> None:
        """Have the disk as it was when the run was held, mounted, and nothing at the far side."""
        self.disk.restore(self.base)
        self.disk.mount()
        self.far.arrivals()

    def fates(self) -> dict[str, list[str]]:
        """Return the fates that the run's own account gives, of files together and of each request by its path."""
        told = self.verb("show", self.run_id, "--json")
        if told.status != 0:
            return {"files": [f"show failed: {told.err.decode()}"]}
        found: dict[str, list[str]] = {"files": []}
        for effect in told.document()["effects"]:
            operation, fate = str(effect["operation"]), str(effect["fate"])
            if operation.startswith("net."):
                found.setdefault("/" + str(effect["object"]).rpartition("/")[2], []).append(fate)
            elif fate not in found["files"]:
                found["files"].append(fate)
        return found

    def _become(self, words: Sequence[str], out: int, err: int) -> None:
        """Be the command from here on, with what it would have been given."""
        try:
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.chdir("/")
            sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
            sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
            sys.argv = ["interlock", *words]
            from interlock.cli import entry

            entry()
        finally:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
            os._exit(71)


def _all(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read()
