"""What a probe is: one attack by raw system calls, the promise it belongs to, and what stopping it looks like.

The same files run inside the sandbox and, as the control that gives a probe its power, outside of it.
"""

import ctypes
import errno
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
# Keeps the interpreter's lock: after a raw clone there is no other thread to take it from.
_locked = ctypes.PyDLL(None, use_errno=True)
_locked.syscall.restype = ctypes.c_long

Argument = int | bytes | ctypes.Array[ctypes.c_char] | None


Enter = Callable[[Callable[["Scene"], str]], Callable[["Scene"], str]]


class World(Enum):
    """Where a control runs: no sandbox, and as much right as can be had there."""

    HOST = "host"
    """The host's own namespaces; as root with private mounts and names, so that nothing stays."""
    APART = "apart"
    """Namespaces of its own with every capability in them: for what would change the machine."""
    LOGIN = "login"
    """An ordinary user on the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What lies on the host for the probes to reach for.

    Takes: `guardian`, the sandbox's first process (outside: a stand-in); `victim`, a host process of the same
    user that holds `token` in its memory at `victim_address` and in its environment; `secrets`, by label the
    paths of files that hold `token` and are readable by mode; `public`, a folder that everybody may write, or
    ""; `outside4`, `outside6`, addresses of the host that are not loopback, or "".
    """

    world: str
    uid: int
    workspace: str
    home: str
    base: str
    token: str
    guardian: int = 1
    victim: int = 0
    victim_address: int = 0
    secrets: dict[str, str] = field(default_factory=dict)
    public: str = ""
    sockets: dict[str, str] = field(default_factory=dict)
    letterbox: str = ""
    abstract: str = ""
    port: int = 0
    resolver_port: int = 0
    outside4: str = ""
    outside6: str = ""
    key: int = 0
    queue: str = ""
    shared: str = ""
    setid: str = ""
    setcap: str = ""
    slug: str = ""
    name: str = ""

    def aim(self, place: str, end: str = "file") -> str:
        """Return this probe's own file in `public`, `home`, `workspace` or `base`."""
        folder = {"public": self.public, "home": self.home, "workspace": self.workspace, "base": self.base}[
            place
        ]
        if not folder:
            raise NotRun("needs root to lay out a folder that all may write")
        return f"{folder}/{self.slug}.{end}"

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "Scene":
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in plain.items() if key in known})


class Stopped(Exception):
    """The attack was stopped without an errno. Takes: a word of the probe's `stops`."""


class NotRun(Exception):
    """The attack cannot be tried here. Takes: the reason."""


UNSEEN = "unseen"
"""Nothing was refused inside; whether anything left is judged on the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One attack.

    Takes: `attacks`, what it goes for; `promise`, the number in DESIGN §2; `stops`, the errno names, signals
    and words that count as stopped for the right reason; `run`, which returns what it got if it got through;
    `control`, where the same program must get through; `target`, where the host lays out a file of its own
    for it; `fatal`, signals that mean it got through; `no_control`, why no control can be had.
    """

    name: str
    attacks: str
    promise: int
    stops: frozenset[str]
    run: Callable[[Scene], str]
    control: World
    target: str
    fatal: frozenset[str]
    no_control: str

    @property
    def slug(self) -> str:
        return "".join(char if char.isalnum() else "-" for char in self.name)


REGISTRY: dict[str, Probe] = {}


def probe(
    name: str,
    attacks: str,
    *,
    stops: str = "EPERM",
    promise: int = 1,
    control: World = World.HOST,
    target: str = "",
    fatal: str = "",
    no_control: str = "",
) -> Enter:
    """Enter a probe into the registry."""

    def enter(run: Callable[[Scene], str]) -> Callable[[Scene], str]:
        if name in REGISTRY:
            raise ValueError(f"two probes are named `{name}`")
        REGISTRY[name] = Probe(
            name=name, attacks=attacks, promise=promise, stops=frozenset(stops.split("|")), run=run,
            control=control, target=target, fatal=frozenset(fatal.split("|") if fatal else ()),
            no_control=no_control,
        )  # fmt: skip
        return run

    return enter


def plain_call(
    name: str,
    attacks: str,
    number: int,
    *arguments: Argument,
    reached: tuple[int, ...] = (),
    stops: str = "EPERM",
    control: World = World.HOST,
    no_control: str = "",
    fatal: str = "",
) -> None:
    """Enter a probe that is one system call.

    Takes: `reached`, errnos that only the call's own code gives: it was not stopped before.
    """

    def run(_: Scene) -> str:
        return attempt(number, *arguments, reached=reached)

    probe(name, attacks, stops=stops, control=control, no_control=no_control, fatal=fatal)(run)


def call(number: int, *arguments: Argument, lock: bool = False) -> int:
    """Make a raw system call.

    Raises: OSError.
    """
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    values.extend(ctypes.c_long(0) for _ in range(6 - len(values)))
    result: int = (_locked if lock else _libc).syscall(ctypes.c_long(number), *values)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def attempt(number: int, *arguments: Argument, reached: tuple[int, ...] = ()) -> str:
    """Make a raw system call and say how far it got."""
    try:
        return f"the call returned {call(number, *arguments)}"
    except OSError as error:
        if error.errno in reached:
            return f"the call's own code answered {errno.errorcode[error.errno or 0]}"
        raise


def block(size: int) -> "ctypes.Array[ctypes.c_char]":
    """Return zeroed memory."""
    return ctypes.create_string_buffer(size)


def address(memory: "ctypes.Array[ctypes.c_char]") -> int:
    return ctypes.addressof(memory)


class Sleeper:
    """A child that waits, to be attacked."""

    def __enter__(self) -> int:
        self.pid = os.fork()
        if self.pid == 0:
            signal.pause()
            os._exit(0)
        return self.pid

    def __exit__(self, *_: object) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
