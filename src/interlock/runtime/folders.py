"""Where runs live: one folder each below the state folder, readable by their owner alone.

runs/<run id>/
    run.json     what was staged from where (written once, before the command starts)
    lock         held (flock) by the process that works on the run
    ledger/      the evidence (docs/formats/evidence-v1.md)
    keys/        signing seed and salt secret; gone once the ledger is sealed
    stage/<n>/   upper and work folder of each staged root
    journal/     write-ahead log of a commit, only while one is under way
    undo/        what a finished merge replaced or removed, so that it can be undone; its own journal in it
    scratch/     the sandbox's own mount points
    net/         trust files, spooled bodies, parked requests, inbound bodies; gone once the run is closed
locks/           one file a workspace, held while something is merged into it (runtime/merging_lock.py)
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from interlock.model.errors import InputError, IntegrityError
from interlock.model.events import Staging, Standing
from interlock.model.places import FOLDER_PREFIX, HOME, WORKSPACE, Root, path_bytes, path_text
from interlock.model.records import dataclass

if TYPE_CHECKING:
    from interlock.staging.roots import StagedRoot

JOURNAL = "journal"
UNDO = "undo"
NET_FOLDER = "net"
PLACEHOLDERS = "placeholders.json"
"""Below the network's folder: which placeholder stands for which secret; the secrets are never written."""
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFolder:
    """A staged root as the run was set up: its name, the host folder, and where its changes lie.

    Takes: `globs`, what of it counts; empty: all of it.
    """

    name: str
    lower: str
    upper: str
    work: str
    globs: tuple[str, ...] = ()

    def keeps(self) -> Callable[[str], object] | None:
        """Return what tells which places count, None where all do."""
        if not self.globs:
            return None
        from interlock.policy.globs import matcher

        # a folder that counts with all below it counts itself: removed, or with other permissions
        wholes = (glob.removesuffix("/**") for glob in self.globs)
        return matcher(tuple(dict.fromkeys((*self.globs, *wholes))), wide=False).fullmatch

    def root(self) -> Root:
        """Return the root as the ledger names it."""
        return Root(name=self.name, path=path_text(os.fsencode(self.lower)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """A run's folder and the description in its run.json."""

    path: str
    run_id: str
    folders: tuple[StagedFolder, ...]
    staging: Staging
    standing: Standing
    xattr_prefix: str
    argv: tuple[str, ...]
    started_at_ns: str

    def at(self, *names: str) -> str:
        """Return a path below the run's folder."""
        return os.path.join(self.path, *names)

    @property
    def ledger(self) -> str:
        """The ledger's folder."""
        return self.at("ledger")

    @property
    def sealed(self) -> bool:
        """Whether the run is closed: nothing is appended to a sealed ledger."""
        return os.path.exists(self.at("ledger", "seal.dsse.json"))

    def staged_root(self, item: StagedFolder) -> StagedRoot:
        """Return one of the folders as the staging knows it."""
        from interlock.staging.roots import TRUSTED_XATTR_PREFIX, StagedRoot

        has_index = self.staging is Staging.OVERLAY and self.xattr_prefix == TRUSTED_XATTR_PREFIX
        mine = (WORKSPACE, FOLDER_PREFIX)
        return StagedRoot(
            name=item.name,
            lower=item.lower,
            upper=item.upper,
            mode=self.staging,
            xattr_prefix=self.xattr_prefix,
            index=os.path.join(item.work, "index") if has_index else "",
            keeps=item.keeps(),
            beside=tuple(one.lower for one in self.folders if one.name.startswith(mine) and one is not item)
            if item.name.startswith(mine)
            else (),
        )

    def lowers_of_its_own(self) -> list[str]:
        """Return the host folders that it stages, without HOME: the workspaces of most other runs lie in that."""
        return [item.lower for item in self.folders if item.name != HOME]

    def workspace(self) -> str:
        """Return the host path of the workspace, `""` of a run that stages none."""
        return self.folders[0].lower if self.folders else ""


def state_folder() -> str:
    """Return Interlock's folder: `$INTERLOCK_STATE`, else `$XDG_STATE_HOME/interlock`, else below HOME."""
    if chosen := os.environ.get("INTERLOCK_STATE"):
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(os.path.abspath(base), "interlock")


def runs_folder() -> str:
    """Return the folder that holds one folder a run."""
    return os.path.join(state_folder(), "runs")


def new_run_id() -> str:
    """Return an id that sorts by time, to the millisecond, and is short enough to type the end of."""
    now_ns = time.time_ns()
    seconds, milliseconds = now_ns // 10**9, now_ns // 10**6 % 1000
    return (
        f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(seconds))}-{milliseconds:03}{secrets.token_hex(2)[:3]}"
    )


def create(
    run_id: str, lowers: tuple[tuple[str, str], ...], home_globs: tuple[str, ...] = (), parent: str = ""
) -> tuple[str, tuple[StagedFolder, ...]]:
    """Make a run's folder with a stage for each (name, host folder).

    Takes: `home_globs`, what counts of the root `home`, whose folder may hold the state folder: it is masked there;
    `parent`, where the run lies, the folder of all runs where none is given.
    Raises: InputError if the state folder cannot be written, or lies inside a staged folder.
    """
    state = state_folder()
    for name, lower in lowers:
        if name != HOME and _inside(state, lower):
            raise InputError(
                f"Interlock's state folder lies inside the staged folder `{lower}`",
                hint="choose another place for it: INTERLOCK_STATE=DIR interlock run …",
            )
    parent = parent or runs_folder()
    path = os.path.join(parent, run_id)
    folders = []
    try:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        os.mkdir(path, 0o700)
        for name in ("keys", "stage", "scratch"):
            os.mkdir(os.path.join(path, name), 0o700)
        for index, (name, lower) in enumerate(lowers):
            stage = os.path.join(path, "stage", str(index))
            upper, work = os.path.join(stage, "upper"), os.path.join(stage, "work")
            os.mkdir(stage, 0o700)
            os.mkdir(upper, 0o700)
            os.mkdir(work, 0o700)
            _like(lower, upper)
            globs = home_globs if name == HOME else ()
            folders.append(StagedFolder(name=name, lower=lower, upper=upper, work=work, globs=globs))
    except OSError as error:
        raise InputError(
            f"the state folder `{state}` cannot be used: {error.strerror}",
            hint="choose another place for it: INTERLOCK_STATE=DIR interlock run …",
        ) from error
    return path, tuple(folders)


def _like(lower: str, upper: str) -> None:
    """Give the upper folder the lower's mode, owner and times: the merged root shows the upper's."""
    status = os.stat(lower)
    if os.geteuid() == 0:
        os.chown(upper, status.st_uid, status.st_gid)
    os.chmod(upper, status.st_mode & 0o7777)
    for name in os.listxattr(lower):
        if name.startswith(("user.", "system.posix_acl_")) and not name.startswith("user.overlay."):
            os.setxattr(upper, name, os.getxattr(lower, name))
    os.utime(upper, ns=(status.st_atime_ns, status.st_mtime_ns))


def _inside(path: str, folder: str) -> bool:
    return os.path.commonpath((os.path.realpath(path), os.path.realpath(folder))) == os.path.realpath(folder)


def describe(folder: RunFolder) -> None:
    """Write run.json, once and durably."""
    import orjson

    text = orjson.dumps(
        {
            "format": 1,
            "run_id": folder.run_id,
            "argv": list(folder.argv),
            "started_at_ns": folder.started_at_ns,
            "staging": folder.staging.value,
            "standing": folder.standing.value,
            "xattr_prefix": folder.xattr_prefix,
            "folders": [
                {
                    "name": item.name,
                    "lower": path_text(os.fsencode(item.lower)),
                    "upper": path_text(os.fsencode(item.upper)),
                    "work": path_text(os.fsencode(item.work)),
                    **({"globs": list(item.globs)} if item.globs else {}),
                }
                for item in folder.folders
            ],
        },
        option=orjson.OPT_INDENT_2,
    )
    temporary = folder.at("run.json.tmp")
    with open(temporary, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, folder.at("run.json"))
    # its name, and the run's own: a ledger without them could not be found again after a loss of power
    for path in (folder.path, os.path.dirname(folder.path)):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def load(path: str) -> RunFolder:
    """Read a run's description.

    Raises: IntegrityError if it is missing or not what `describe` writes.
    """
    import json

    try:
        with open(os.path.join(path, "run.json"), encoding="utf-8") as file:
            data = json.load(file)
        return RunFolder(
            path=path,
            run_id=str(data["run_id"]),
            folders=tuple(
                StagedFolder(
                    name=str(item["name"]),
                    lower=os.fsdecode(path_bytes(item["lower"])),
                    upper=os.fsdecode(path_bytes(item["upper"])),
                    work=os.fsdecode(path_bytes(item["work"])),
                    globs=tuple(str(glob) for glob in item.get("globs", ())),
                )
                for item in data["folders"]
            ),
            staging=Staging(data["staging"]),
            standing=Standing(data["standing"]),
            xattr_prefix=str(data["xattr_prefix"]),
            argv=tuple(str(word) for word in data["argv"]),
            started_at_ns=str(data["started_at_ns"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"the run's description in `{path}` cannot be read ({type(error).__name__})",
            hint="its staged files are still below stage/; its ledger can be checked with: interlock verify "
            + os.path.join(path, "ledger"),
        ) from error


def find(name: str) -> str:
    """Return the folder of the run with this id, a unique end of an id, or `last`.

    Raises: InputError if there is none or more than one.
    """
    names = all_run_ids()
    if name == "last" and names:
        return os.path.join(runs_folder(), names[-1])
    matches = [run_id for run_id in names if run_id == name] or [
        run_id for run_id in names if run_id.endswith(name)
    ]
    if len(matches) == 1:
        return os.path.join(runs_folder(), matches[0])
    if matches:
        raise InputError(
            f"`{name}` names {len(matches)} runs: {', '.join(matches[:5])}", hint="give more of it"
        )
    raise InputError(f"there is no run `{name}` in {runs_folder()}", hint="list them: interlock runs")


def all_run_ids() -> list[str]:
    """Return the ids of all runs, oldest first."""
    try:
        with os.scandir(runs_folder()) as entries:
            return sorted(
                entry.name
                for entry in entries
                # what begins with a dot is on its way out (runtime/cleaning.py)
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []


def merging() -> list[str]:
    """Return the folders of the runs with a merge, or its undo, under way or cut off, oldest first.

    Holds: it is cheap, since every start asks: one look at the folder, and two for each run.
    """
    found = []
    with suppress(FileNotFoundError), os.scandir(runs_folder()) as entries:
        for entry in entries:
            path = entry.path
            if os.path.exists(f"{path}/{JOURNAL}/wal") or os.path.exists(f"{path}/{UNDO}/{JOURNAL}/wal"):
                found.append(path)
    return sorted(found)


class RunLock:
    """The lock on a run: one process works on it at a time; it goes with the process."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, run_id: str) -> None:
        """Take the lock. Raises: InputError if another process works on the run."""
        # a moment's patience: who only looks whether a run is locked holds it that long
        end = time.monotonic() + _LOOK_S
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(0.01)
                    continue
                holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
                raise InputError(
                    f"the run {run_id} is being worked on by "
                    + (f"process {holder}" if holder.isdigit() else "another process"),
                    hint="wait until it ends, then try again",
                ) from None
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)


def is_locked(path: str) -> bool:
    """Tell whether a process works on the run now."""
    try:
        descriptor = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # shared: two who look do not see each other
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
