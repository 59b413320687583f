"""What a sandbox is asked to be, and what it answers: the data of this room."""

from collections.abc import Mapping
from dataclasses import field

from interlock.boundary.net.plan import NetPlan
from interlock.model.errors import BoundaryError
from interlock.model.records import dataclass
from interlock.model.toolkits import Needs


class OverlayError(BoundaryError):
    """A staged folder's file system cannot be an overlay's layer; a full copy can stand in for it."""

    code = "overlay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A folder whose writes land in a layer of their own.

    Takes: `target`, the absolute path inside the sandbox, which is the host path of `lower`; `lower`,
    `upper`, `work`, the layer folders on the host (upper and work empty or an earlier scope's, on one file
    system); `observed`, whether its reads and writes are reported; `copied`, whether `upper` is a full copy to
    be shown as it is (where the file system can be no overlay's layer); `sparse`, whether only some of its
    places count (HOME): the layers may lie inside it, masked, and no folder of the host is moved in it. Paths
    are text with surrogate escapes.
    """

    name: str
    target: str
    lower: str
    upper: str
    work: str
    observed: bool
    copied: bool = False
    sparse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use up. None leaves the host's own limit."""

    processes: int = 4096
    file_size_bytes: int = 8 * 1024**3
    open_files: int | None = None
    memory_bytes: int | None = None
    tmp_size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFile:
    """A file of the host that is shown, read-only, at a path inside where something else may stand.

    Takes: `target`, the absolute path inside; `source`, a file that exists at the start; its content may be
    written (in place) until the command runs; `optional`, whether a target that cannot be had is left out, and
    the receipt says so.
    """

    target: str
    source: str
    optional: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPlan:
    """Everything that decides what a command sees and may do.

    Takes: `environment`, the exact environment of the command; `hidden`, paths masked besides the default
    list, also inside the workspace; `exposed`, paths taken off the default list; `nested`, whether the
    command may make namespaces and mounts of its own; `allow_degraded`, whether a promise that this kernel
    cannot keep is listed instead of stopping the start; `scratch`, an existing folder of this run, not
    visible inside; `net`, how traffic is taken (None: the network is closed, nothing is taken); `placed`, files
    shown at paths of the system (`resolv.conf`, trusted certificates); `authorised`, what the command's plan needs of
    the kernel: it gets that and nothing else (None: what every sandbox permits).
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    working_directory: str
    home: str
    overlays: tuple[Overlay, ...]
    scratch: str
    hidden: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    nested: bool = False
    allow_degraded: bool = False
    net: NetPlan | None = None
    placed: tuple[PlacedFile, ...] = ()
    authorised: Needs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitStatus:
    """How the command ended.

    Takes: `code`, 0-255, or -1 if `signal` (else 0) ended it.
    """

    code: int
    signal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One thing that this kernel and user can or cannot do, for `interlock doctor`.

    Takes: `needed`, whether a promise of containment rests on it.
    """

    name: str
    available: bool
    detail: str
    fix: str
    needed: bool = True
