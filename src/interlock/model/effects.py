"""Effects: outbound events that others could see once released."""

from enum import Enum

from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.model.requests import NetMessage, NetRequest
from interlock.model.tools import ToolCall


class Channel(Enum):
    """Where an event passed. `tool` and `model` are lenses over the others."""

    FILE = "file"
    NET = "net"
    CTRL = "ctrl"
    TOOL = "tool"
    MODEL = "model"


class Reach(Enum):
    """What holding an effect costs: a staged copy, a placeholder, or the agent waits."""

    STAGEABLE = "stageable"
    PARKABLE = "parkable"
    BLOCKING = "blocking"


class FileType(Enum):
    """A file's type (inode(7))."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    FIFO = "fifo"
    SOCKET = "socket"
    CHARACTER_DEVICE = "character-device"
    BLOCK_DEVICE = "block-device"


class ChangeKind(Enum):
    """What a staged change does to its place."""

    CREATE = "create"
    MODIFY = "modify"
    DELETE = "delete"
    RENAME = "rename"
    REPLACE = "replace"
    """The type changes: a file becomes a folder, a link becomes a file."""
    ATTRIBUTES = "attributes"
    """Mode, owner, times or extended attributes alone."""


class Hazard(Enum):
    """What must never reach the host unseen, whatever its place."""

    SET_ID = "set-id"
    DEVICE = "device"
    FIFO = "fifo"
    SOCKET = "socket"
    OUTWARD_LINK = "outward-link"
    """A symbolic link that leaves the root it lies in."""
    FILE_CAPABILITY = "file-capability"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStamp:
    """What a file is at one side of a change.

    Takes: `mode`, permission bits (0o7777); `size_bytes`; `digest`, SHA-256 in hex of a
    regular file's bytes, `""` where it was not read, or of a host file that is too large or may not be read `stat:` and
    a hash over inode, size and time, which tells an edit and no content; `link_target` of a symlink in
    `path_text` writing, else `""`.
    """

    type: FileType
    mode: int
    uid: int
    gid: int
    size_bytes: int
    digest: str = ""
    link_target: str = ""


class HostEdit(Enum):
    """What somebody else did to a place on the host since the agent first touched or read it."""

    EDITED = "edited"
    APPEARED = "appeared"
    """The agent made it where the host had nothing; now the host has something there too."""
    GONE = "gone"
    UNCERTAIN = "uncertain"
    """It cannot be told that nothing was done (the clock was set back, say), so it counts as edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A path's change in a commit that a branch gets: Git writes it into a worktree at the next checkout or push.

    Takes: `kind`, of CREATE, MODIFY, DELETE and REPLACE; `path`, as a place's, below the root where the worktree lies
    there, else below the worktree; `type`, of what it becomes; `link_target`, of a link; `before_text`/`after_text`,
    as of a `FileChange`.
    """

    kind: ChangeKind
    path: str
    type: FileType = FileType.FILE
    link_target: str = ""
    before_text: str | None = None
    after_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One path's difference between the staged copy and the host, as the gate saw it.

    Takes: `source`, the old place of a rename; `before`/`after`, None where there is no file on
    that side; `before_text`/`after_text`, the content of a place whose verdict depends on its
    content (`policy.reads_content`), bounded, None where not read or not UTF-8; `host_edit`, where the host was
    changed under the agent (a conflict: `before` is then what the host has now); `base`, of a conflict, what the
    host had when the agent first touched the place, None where that was not kept; `waits`, whether it can be merged
    only once the command has ended; `unsaved`, whether what the host had there goes with it and no repository holds it;
    `brings`, of a branch, what its new commits hold that may run, and `brings_unknown`, where that cannot be told;
    `needs`, paths of the same root: where those change too, this change stands or falls with them; `outside_names`, how
    many hard links of what the host has there lie outside of the root: they keep the old file.
    """

    kind: ChangeKind
    place: Place
    source: Place | None = None
    before: FileStamp | None = None
    after: FileStamp | None = None
    hazards: tuple[Hazard, ...] = ()
    before_text: str | None = None
    after_text: str | None = None
    host_edit: HostEdit | None = None
    base: FileStamp | None = None
    waits: bool = False
    unsaved: bool = False
    brings: tuple[Brought, ...] = ()
    brings_unknown: bool = False
    needs: tuple[str, ...] = ()
    outside_names: int = 0

    @property
    def parting(self) -> str:
        """Return what is said of the names that keep the old file, "" where there are none."""
        if not self.outside_names:
            return ""
        names = "another name" if self.outside_names == 1 else f"{self.outside_names:,} other names"
        keep = "keeps" if self.outside_names == 1 else "keep"
        return f"parted: {names} of it, outside of its root, {keep} the old file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value that an effect depends on.

    Takes: `role` (`path`, `recipient`, `command`, `url` …); `text` as the effect carries it.
    """

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """Why an effect is more than data: it will be run, or it steers something that runs.

    Takes: `kind`, from the closed list of docs/executable-effects.md; `reason`, one line for the user.
    """

    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A proposed effect, ready to be decided.

    Takes: `id`, `e1`, `e2` … in order of proposal; `operation`, e.g. `file.create`,
    `file.delete`, `net.write`; `object`, a place or URL as text; `steering`, the values that need
    a derivation; `carried`, the level of the data it carries; `clearance`, what its destination may
    hold; `change`, for file effects; `request`, for net effects, of a message the one that opened its
    stream; `message`, for `net.message` alone; `tool`, for effects of the channel `tool`; `action`, what a lens (a key
    `lenses` of the policy) recognises a request as.
    """

    id: str
    channel: Channel
    operation: str
    object: str
    reach: Reach
    steering: tuple[Value, ...]
    carried: Confidentiality
    clearance: Confidentiality
    facets: tuple[Facet, ...] = ()
    change: FileChange | None = None
    request: NetRequest | None = None
    message: NetMessage | None = None
    tool: ToolCall | None = None
    action: ToolCall | None = None
