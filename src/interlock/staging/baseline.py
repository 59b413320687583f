"""What the host was when the agent began with each place: the other end of every staged change.

The kernel's ctime of a file moves at each change of it and no user can set it, so a host file whose ctime lies
before the run's start is what the agent saw, whenever that was. Only for what the host changed later must be known
when the agent first touched the place, and what the host had there then.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import field

from interlock.model.effects import FileStamp
from interlock.model.places import Place, path_text
from interlock.model.records import dataclass
from interlock.staging.stamps import type_of_mode

SLACK_NS = 10_000_000
"""The kernel stamps files with the time of its last tick, which is up to this old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """One entry of the host at one moment.

    Takes: `mode`, with the type's bits; `digest`, SHA-256 in hex where its bytes were kept, else `""`;
    `link_target` of a symlink, in `path_text` writing.
    """

    ino: int
    mode: int
    uid: int
    gid: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    digest: str = ""
    link_target: str = ""

    @classmethod
    def of(cls, status: os.stat_result, *, digest: str = "", link_target: str = "") -> "HostEntry":
        """Make it from a status; `link_target` as the kernel gave it."""
        return cls(
            ino=status.st_ino,
            mode=status.st_mode,
            uid=status.st_uid,
            gid=status.st_gid,
            size_bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
            digest=digest,
            link_target=path_text(os.fsencode(link_target)),
        )

    def still_is(self, status: os.stat_result) -> bool:
        """Say whether an entry of the host is this one, unchanged."""
        return (self.ino, self.ctime_ns, self.mtime_ns, self.size_bytes, self.mode) == (
            status.st_ino,
            status.st_ctime_ns,
            status.st_mtime_ns,
            status.st_size,
            status.st_mode,
        )

    def stamp(self) -> FileStamp:
        """Return the entry as one side of a change."""
        return FileStamp(
            type=type_of_mode(self.mode),
            mode=stat.S_IMODE(self.mode),
            uid=self.uid,
            gid=self.gid,
            size_bytes=self.size_bytes if stat.S_ISREG(self.mode) else 0,
            digest=self.digest,
            link_target=self.link_target,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """The first that the agent had to do with a place of which more must be known than the run's start.

    Takes: `seen`, what the host had there; `sure`, whether it was so already when the agent touched it; `read`,
    whether the agent's first touch gave it the host's bytes.
    """

    seen: HostEntry
    sure: bool
    read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the host was when the agent began.

    Takes: `since_ns`, when the run started, as the kernel stamps files; `host_since_ns`, from when on an edit of the
    host counts: the same, and of a full copy when it was begun; `now_ns`, when the changes are listed; `whole`,
    whether every first touch of a file was seen; `stepped_back`, whether the clock was set back meanwhile, so that
    a ctime says nothing; `touches`; `merged`, what a merge of this run's own put at each place since, None where it
    removed what was there; `inodes`, of each root's folder at the start.
    """

    since_ns: int
    host_since_ns: int
    now_ns: int
    whole: bool = False
    stepped_back: bool = False
    touches: Mapping[Place, Touch] = field(default_factory=dict)
    merged: Mapping[Place, FileStamp | None] = field(default_factory=dict)
    inodes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def at(cls, since_ns: int, now_ns: int) -> "Baseline":
        """Make one that knows nothing but the start: every later edit of the host is a conflict."""
        return cls(since_ns=since_ns, host_since_ns=since_ns, now_ns=now_ns)

    def is_late(self, status: os.stat_result) -> bool:
        """Say whether an entry of the host may have been changed since the start."""
        return self.stepped_back or self.is_stamped_late(status)

    def is_stamped_late(self, status: os.stat_result) -> bool:
        """Say whether the kernel stamped an entry of the host after the start."""
        return status.st_ctime_ns >= self.host_since_ns - SLACK_NS
