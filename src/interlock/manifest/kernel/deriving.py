"""From what a plan authorises to what the kernel is told: a filter of calls, rules of paths, and limits.

It is a pure function, so that a verifier derives it again and compares what it finds with the receipt.
Source: KNOX §4.1 (Auth) and §4.2 (the system-call guard); landlock(7), setrlimit(2).
"""

import hashlib

from interlock.manifest.kernel import rules
from interlock.manifest.kernel.filtering import Allowed, packed, planned_instructions
from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.model.system_calls import NUMBERS
from interlock.model.toolkits import Access, Limit, Needs, PathNeed

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHARACTER, _MAKE_BLOCK = 1 << 6, 1 << 11
_MAKING = ~(_EXECUTE | _READ_FILE | _READ_DIR | _MAKE_CHARACTER | _MAKE_BLOCK)
_RIGHTS_BY_ABI = {
    0: 0,
    1: (1 << 13) - 1,
    2: (1 << 14) - 1,
    3: (1 << 15) - 1,
    4: (1 << 15) - 1,
    5: (1 << 16) - 1,
}
_BIND, _CONNECT = 1, 2
_SCOPES = 3  # abstract unix sockets, signals
_RIGHTS = {
    Access.READ: _READ_FILE | _READ_DIR,
    Access.WRITE: ~(_EXECUTE | _MAKE_CHARACTER | _MAKE_BLOCK),
    Access.EXECUTE: _EXECUTE | _READ_FILE | _READ_DIR,
}
_LIMITS = {
    Limit.PROCESSES: "NPROC",
    Limit.OPEN_FILES: "NOFILE",
    Limit.FILE_BYTES: "FSIZE",
    # Not the address space, of which programs reserve much more than they use.
    Limit.MEMORY_BYTES: "DATA",
    Limit.CPU_SECONDS: "CPU",
}
_MOUNT = "mount"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What stands for `{workspace}`, `{home}` and `{tmp}`.

    Takes: absolute paths; `added`, folders that are staged beside the workspace, and are meant by `{workspace}` too.
    """

    workspace: str = "/"
    home: str = "/"
    tmp: str = "/tmp"  # noqa: S108 - the one of the sandbox
    added: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What of the kernel and of the run decides, beside the manifest, how it is enforced.

    Takes: `abi`, of Landlock, 0 for none; `observed`, whether refused calls are told (seccomp notify); `nested`, as the
    sandbox's; `started`, the files by which the first program is started: itself and its interpreters; `confined`,
    whether the process stands in no sandbox of ours, so that ports, signals and abstract sockets are bounded here;
    `instead`, places to write to that are not there yet, each with the folder above it that is: a rule can be on that
    alone, and then lets things be made and changed in it, not read.
    """

    abi: int
    observed: bool
    nested: bool = False
    started: tuple[str, ...] = ()
    confined: bool = False
    instead: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPolicy:
    """What the kernel enforces of a plan.

    Takes: `program`, the filter; `handled`, `ports_handled` and `scopes`, what Landlock bounds at all; `paths`, each
    with its rights; `ports`, to which a connection may be made; `limits`, names of setrlimit(2) with their bounds;
    `withheld`, calls that the plan names and the sandbox refuses all the same; `first`, whether the first program's
    start is a call that the plan does not authorise, and is let through once.
    """

    program: bytes
    handled: int
    paths: tuple[tuple[str, int], ...]
    ports_handled: int = 0
    ports: tuple[int, ...] = ()
    scopes: int = 0
    limits: tuple[tuple[str, int], ...] = ()
    withheld: tuple[str, ...] = ()
    first: bool = False

    def program_digest(self) -> str:
        """Return the SHA-256 of the filter in hex."""
        return hashlib.sha256(self.program).hexdigest()

    def ruleset_digest(self, absent: tuple[str, ...] = ()) -> str:
        """Return the SHA-256 of the rules in hex, a line each. Takes: `absent`, paths that were not there."""
        lines = [f"files {self.handled:#x}", f"ports {self.ports_handled:#x}", f"scopes {self.scopes:#x}"]
        lines += [f"{rights:#x} {path}" for path, rights in self.paths if path not in absent]
        lines += [f"connect {port}" for port in self.ports]
        text = "".join(f"{line}\0" for line in lines)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def limits_text(self) -> str:
        """Return the limits on one line, `none` where there are none."""
        return " ".join(f"{name}={most}" for name, most in self.limits) or "none"


def kernel_policy(needs: Needs, places: Places, ground: Ground) -> KernelPolicy:
    """Derive what the kernel enforces.

    Raises: InputError, if a call's name is unknown or a path cannot be a rule's.
    """
    named = frozenset(one.name for one in needs.system_calls)
    for name in sorted(named):
        if name not in NUMBERS:
            raise InputError(
                f"no system call of x86_64 is named `{name}`",
                hint="write it as in `man 2 syscalls`, or record it: `interlock toolkit record -- COMMAND`",
            )
    numbers = frozenset(NUMBERS[name] for name in (*named, *rules.ALWAYS))
    first = bool(ground.started) and "execve" not in named
    allowed = Allowed(
        numbers=numbers,
        observed=ground.observed,
        internet=bool(needs.hosts),
        nested=ground.nested,
        first=first,
    )
    return KernelPolicy(
        program=packed(planned_instructions(allowed)),
        handled=(handled := _handled(ground, named)),
        paths=_paths(needs, places, ground, handled),
        ports_handled=(ports_handled := _ports_handled(needs, ground)),
        ports=tuple(sorted({one.port for one in needs.hosts})) if ports_handled & _CONNECT else (),
        scopes=_SCOPES if ground.confined and ground.abi >= 6 else 0,
        limits=_limits(needs),
        withheld=tuple(
            call.name for call in rules.RESTRICTED
            if call.name in named and call.rule in (rules.Rule.DENY, rules.Rule.ABSENT)
            and (call.nested or not ground.nested)
        ),
        first=first,
    )  # fmt: skip


def _handled(ground: Ground, named: frozenset[str]) -> int:
    if ground.nested and _MOUNT in named:
        return 0  # under any rule of files the kernel refuses mounts
    return _RIGHTS_BY_ABI[min(ground.abi, 5)]


def _ports_handled(needs: Needs, ground: Ground) -> int:
    """Inside a sandbox all connections end at the monitor, which knows the hosts."""
    if not ground.confined or ground.abi < 4:
        return 0
    named = {one.name for one in needs.system_calls}
    bind = 0 if "bind" in named else _BIND
    return bind | (0 if any(one.port == 0 for one in needs.hosts) else _CONNECT)


def _paths(needs: Needs, places: Places, ground: Ground, handled: int) -> tuple[tuple[str, int], ...]:
    if not handled:
        return ()
    rights: dict[str, int] = {}
    instead = dict(ground.instead)
    for need in needs.paths:
        for path in _expanded(need, places):
            folder = instead.get(path) if need.access is Access.WRITE else None
            if folder is None:
                rights[path] = rights.get(path, 0) | _RIGHTS[need.access] & handled
                continue
            if not any(path.startswith(_under(base)) and _within(folder, base) for base in _bases(places)):
                raise InputError(f"`{folder}` is no folder in which `{path}` is made", hint="report it")
            rights[folder] = rights.get(folder, 0) | _MAKING & handled
    for path in ground.started:
        rights[path] = rights.get(path, 0) | _EXECUTE | _READ_FILE
    return tuple(sorted(rights.items()))


def to_make(needs: Needs, places: Places) -> tuple[tuple[str, str], ...]:
    """Return the places that may be written to below a word's folder, each with that folder. Raises: InputError."""
    return tuple(
        (path, base)
        for need in needs.paths
        if need.access is Access.WRITE
        for path in _expanded(need, places)
        for base in _bases(places)
        if path.startswith(_under(base))
    )


def _bases(places: Places) -> tuple[str, ...]:
    return tuple(_plain(one) for one in (places.workspace, places.home, places.tmp, *places.added))


def _under(base: str) -> str:
    return base.rstrip("/") + "/"


def _within(path: str, base: str) -> bool:
    return path == base or path.startswith(_under(base))


def _expanded(need: PathNeed, places: Places) -> tuple[str, ...]:
    roots = {
        "{workspace}": (places.workspace, *places.added),
        "{home}": (places.home,),
        "{tmp}": (places.tmp,),
    }
    for word, bases in roots.items():
        if need.path == word or need.path.startswith(f"{word}/"):
            return tuple(_plain(base.rstrip("/") + need.path.removeprefix(word)) for base in bases)
    return (_plain(need.path),)


def _plain(path: str) -> str:
    parts = [part for part in path.split("/") if part]
    # What would be such a path's parent is not known before the links in it are followed.
    if not (path.startswith("/") or not path) or "\0" in path or {".", ".."} & set(parts):
        raise InputError(
            f"`{path}` is no path that can be authorised",
            hint="write an absolute path, or one below {workspace}, {home} or {tmp}, without `..`",
        )
    return "/" + "/".join(parts)


def _limits(needs: Needs) -> tuple[tuple[str, int], ...]:
    bounds: dict[str, int] = {}
    for need in needs.limits:
        name = _LIMITS[need.limit]
        bounds[name] = max(bounds.get(name, 0), need.most)
    return tuple(sorted(bounds.items()))
