"""A sandbox over a throw-away workspace, as root and as an ordinary user: `box.run(...)`, then look."""

import ctypes
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from interlock.boundary import ExitStatus, Limits, Overlay, Sandbox, SandboxPlan, start
from interlock.boundary.net.doors import Serve
from interlock.model.errors import InterlockError
from interlock.model.events import ActivityLost, ActivityObserved, FileRead, FileWrite, Standing

ORDINARY_UID = 1000
PYTHON = "/usr/bin/python3"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
DEADLINE_S = 40

Attend = Callable[[Sandbox, list[str]], Serve | None]
"""Called in the monitor between start and run with the sandbox and a list whose lines the outcome has as `noted`."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one run left. `error` is `code: message` if it did not start."""

    status: ExitStatus | None
    out: bytes
    err: bytes
    events: tuple[ActivityObserved | ActivityLost, ...] = ()
    receipt: Mapping[str, str] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    standing: Standing | None = None
    error: str = ""
    hint: str = ""
    noted: tuple[str, ...] = ()

    @property
    def code(self) -> int | None:
        return self.status.code if self.status else None

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "surrogateescape")

    @property
    def reads(self) -> list[FileRead]:
        return [one for event in self.events if isinstance(event, ActivityObserved) for one in event.reads]

    @property
    def writes(self) -> list[FileWrite]:
        return [one for event in self.events if isinstance(event, ActivityObserved) for one in event.writes]

    @property
    def lost(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, ActivityLost)]


class Box:
    """A workspace, a home and the folders of one run, all owned by the user that the run stands as."""

    def __init__(self, base: str, uid: int) -> None:
        self.base = base
        self.uid = uid
        self.root = uid == 0
        self.workspace = f"{base}/work space"
        self.home = f"{base}/home"
        for path in (self.workspace, self.home, f"{base}/run"):
            self.folder(path)
        for name in ("upper", "work", "scratch"):
            self.folder(f"{base}/run/{name}")
        self.upper = f"{base}/run/upper"

    def folder(self, path: str) -> str:
        os.mkdir(path)
        os.chown(path, self.uid, self.uid)
        return path

    def file(self, path: str, text: str | bytes = "", mode: int = 0o644) -> str:
        """Write a host file, its path relative to the workspace."""
        full = os.path.join(self.workspace, path)
        at = self.workspace
        for part in path.split("/")[:-1]:
            at = f"{at}/{part}"
            if not os.path.isdir(at):
                self.folder(at)
        with open(full, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        os.chmod(full, mode)
        os.chown(full, self.uid, self.uid)
        return full

    def plan(self, argv: tuple[str, ...], **changes: object) -> SandboxPlan:
        values: dict[str, object] = {
            "argv": argv,
            "environment": {"PATH": PATH, "HOME": self.home, "LC_ALL": "C.UTF-8"},
            "working_directory": self.workspace,
            "home": self.home,
            "overlays": (
                Overlay(
                    name="workspace",
                    target=self.workspace,
                    lower=self.workspace,
                    upper=self.upper,
                    work=f"{self.base}/run/work",
                    observed=True,
                ),
            ),
            "scratch": f"{self.base}/run/scratch",
            "limits": Limits(),
        }
        values.update(changes)
        return SandboxPlan(**values)  # type: ignore[arg-type]

    def run(
        self,
        *argv: str,
        stdin: bytes = b"",
        during: Callable[[int], None] | None = None,
        attend: Attend | None = None,
        **changes: object,
    ) -> Outcome:
        """Run a command in a forked monitor; `during` is called with the monitor's pid while it runs."""
        with tempfile.TemporaryDirectory(prefix="il-out-") as desk:
            os.chmod(desk, 0o777)
            with open(f"{desk}/in", "wb") as file:
                file.write(stdin)
            plan = self.plan(argv, **changes)
            pid = os.fork()
            if pid == 0:
                self._monitor(plan, desk, attend)
            if during is not None:
                during(pid)
            wait_for(pid)
            with open(f"{desk}/out", "rb") as out, open(f"{desk}/err", "rb") as err:
                texts = out.read(), err.read()
            try:
                with open(f"{desk}/result", "rb") as result:
                    values = pickle.load(result)
            except (OSError, EOFError):
                values = {"status": None, "error": "died: the monitor left no result"}
            return Outcome(out=texts[0], err=texts[1], **values)

    def sh(self, script: str, **options: object) -> Outcome:
        return self.run("sh", "-c", script, **options)  # type: ignore[arg-type]

    def py(self, script: str, *arguments: str, **options: object) -> Outcome:
        return self.run(PYTHON, "-c", script, *arguments, **options)  # type: ignore[arg-type]

    def become(self) -> None:
        """Stand as this box's user, in a forked child."""
        if os.geteuid() != self.uid:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # dumpable again, as a login would be

    def _monitor(self, plan: SandboxPlan, desk: str, attend: Attend | None) -> None:
        try:
            os.setsid()
            for number, name, flags in (
                (0, "in", os.O_RDONLY),
                (1, "out", os.O_CREAT | os.O_WRONLY | os.O_APPEND),
                (2, "err", os.O_CREAT | os.O_WRONLY | os.O_APPEND),
            ):
                os.dup2(os.open(f"{desk}/{name}", flags, 0o666), number)
                os.fchmod(number, 0o666)
            self.become()
            values = run_here(plan, attend)
            with open(f"{desk}/result", "wb") as result:
                pickle.dump(values, result)
            os._exit(0)
        except BaseException as error:  # a forked copy of the test must never go on
            os.write(2, f"monitor: {error!r}\n".encode())
            os._exit(70)


def run_here(plan: SandboxPlan, attend: Attend | None = None) -> dict[str, object]:
    """Start, run and close a sandbox in this process."""
    events: list[ActivityObserved | ActivityLost] = []
    noted: list[str] = []
    try:
        sandbox = start(plan)
        try:
            serve = attend(sandbox, noted) if attend is not None else None
            status = sandbox.run(events.append, serve)
        finally:
            sandbox.close()
    except InterlockError as error:
        said = f"{error.code}: {error.message}"
        return {"status": None, "error": said, "hint": error.hint, "noted": tuple(noted)}
    return {
        "status": status,
        "events": tuple(events),
        "receipt": dict(sandbox.receipt),
        "degraded": sandbox.degraded,
        "standing": sandbox.standing,
        "noted": tuple(noted),
    }


def wait_for(pid: int, deadline_s: float = DEADLINE_S) -> int:
    """Wait for a child; kill it and fail at the deadline."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.004)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail(f"the monitor was still there after {deadline_s} s")


@pytest.fixture(params=["root", "user"])
def standing(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "root" and os.geteuid() != 0:
        pytest.skip("not run: needs root")
    if not os.path.exists(PYTHON):
        pytest.skip(f"not run: no {PYTHON} to probe with")
    return name


@pytest.fixture
def make_box() -> Iterator[Callable[[str], Box]]:
    """Make boxes by standing; they are removed afterwards."""
    made: list[str] = []

    def make(name: str) -> Box:
        uid = 0 if name == "root" else (ORDINARY_UID if os.geteuid() == 0 else os.geteuid())
        base = tempfile.mkdtemp(prefix="il-box-", dir="/var/tmp")
        os.chmod(base, 0o755)
        os.chown(base, uid, uid)
        made.append(base)
        return Box(base, uid)

    yield make
    for base in made:
        for path, folders, _ in os.walk(base):
            for folder in folders:
                if not os.path.islink(f"{path}/{folder}"):
                    os.chmod(f"{path}/{folder}", 0o700)
        shutil.rmtree(base)


@pytest.fixture
def box(standing: str, make_box: Callable[[str], Box]) -> Box:
    return make_box(standing)


sys.dont_write_bytecode = True
