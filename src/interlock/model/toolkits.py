"""Toolkits: what an application or service offers as tools, and what each of them needs of the kernel (KNOX §4.1).

A toolkit says least privilege in advance; a manifest takes the union over the tools that a plan uses.
"""

from enum import Enum

from interlock.model.records import dataclass


class Access(Enum):
    """What is done at a path."""

    READ = "read"
    WRITE = "write"
    """Read, change, create and remove."""
    EXECUTE = "execute"
    """Read and start as a program."""


class Limit(Enum):
    """What is bounded in sum; each is a POSIX resource limit (setrlimit(2))."""

    PROCESSES = "processes"
    OPEN_FILES = "open-files"
    FILE_BYTES = "file-bytes"
    MEMORY_BYTES = "memory-bytes"
    CPU_SECONDS = "cpu-seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemCallNeed:
    """A system call by its Linux name, and why it is needed."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathNeed:
    """A place that is reached, with all below it.

    Takes: `path`, absolute, or below `{workspace}`, `{home}` or `{tmp}`, which the run fills in.
    """

    path: str
    access: Access
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNeed:
    """A host that is spoken to. Takes: `host`, a name or a glob over one; `port`, 0 for any."""

    host: str
    reason: str
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitNeed:
    """How much is needed at most; of two needs the larger one counts. Takes: `most`, in the limit's own unit."""

    limit: Limit
    most: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a tool, a toolkit or a runtime needs, each with its reason."""

    system_calls: tuple[SystemCallNeed, ...] = ()
    paths: tuple[PathNeed, ...] = ()
    hosts: tuple[HostNeed, ...] = ()
    limits: tuple[LimitNeed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """How a tool gives data to somebody (KNOX, the executor's action tuple).

    Takes: names of parameters: `recipient`, who gets it; `data`, what is given; `subject`, whom it is about; `purpose`,
    why, where the tool is told so.
    """

    recipient: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    purpose: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool of a toolkit.

    Takes: `name`, without its toolkit's; `parameters` and `returns`, JSON Schema as canonical JSON text; `effect`, one
    of `policy.tools.roles.EFFECTS`; `steers`, parameters with their type; `carries`, parameters that are data alone;
    `output`, names of leaves of its answer that may be trusted, with their type; `discloses`, None where it gives
    nothing to anybody; `needs`, beside the toolkit's own.
    """

    name: str
    description: str = ""
    parameters: str = "{}"
    returns: str = "{}"
    effect: str = "write"
    steers: tuple[tuple[str, str], ...] = ()
    carries: tuple[str, ...] = ()
    output: tuple[tuple[str, str], ...] = ()
    discloses: Disclosure | None = None
    needs: Needs = Needs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """An application's tools.

    Takes: `needs`, what every one of its tools needs; `digest`, SHA-256 in hex of the canonical JSON of the file.
    """

    name: str
    version: str
    description: str
    tools: tuple[ToolSpec, ...]
    needs: Needs = Needs()
    digest: str = ""
