"""The sandbox's file tree as a list of steps, computed on the host before anything is mounted."""

import os
import stat

from interlock.boundary import hidden
from interlock.boundary.plan import SandboxPlan
from interlock.model.errors import BoundaryError, InputError
from interlock.model.places import path_text
from interlock.model.records import dataclass

STATIC_FOLDERS = frozenset(("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu"))
"""Top-level folders that programs are installed in, and no service puts a socket in: a read-only bind, which costs
nothing. The others are shown through a read-only overlay, on which a host's socket cannot be connected to."""

_NEVER_STAGED = ("proc", "sys", "dev", "etc", *STATIC_FOLDERS)

PRIVATE_FOLDERS = ("/tmp", "/run", "/var/tmp")  # noqa: S108 - the sandbox's own, not shared
"""Folders in which the host's programs leave sockets and secrets: a fresh tmpfs of the run's own."""

_MAX_FILES = 256

OWN_FOLDERS = frozenset(("proc", "sys", "dev", "tmp", "run"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Symlink:
    """A symbolic link of the host, made again."""

    target: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """The host's own mount, read-only. Unix sockets below it can be connected to: mask them.

    Takes: `exposed`, whether the policy asked for it, so that it is shown as its owner sees it.
    """

    target: str
    source: str
    exposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A read-only overlay of a host folder, through which no unix socket can be connected to."""

    target: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """An empty tmpfs. Takes: `sealed`, whether it becomes read-only once all is mounted."""

    target: str
    mode: int
    sealed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeLayer:
    """An overlay of the home folder whose upper layer dies with the run."""

    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """One of the plan's overlays, by its index."""

    target: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """An empty read-only folder or file over a path."""

    target: str
    folder: bool


Step = Symlink | Bind | Screen | Fresh | HomeLayer | Staged | Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The steps, in the order in which they are mounted.

    Takes: `writable`, the paths that the command may write below.
    """

    steps: tuple[Step, ...]
    writable: tuple[str, ...]


def within(path: str, folder: str) -> bool:
    """Say whether `path` is `folder` or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def compute(plan: SandboxPlan) -> Layout:
    """Lay the sandbox's tree out.

    Raises: InputError, if the plan's paths cannot be used.
    """
    home = os.path.realpath(plan.home)
    _check(plan)
    mounts = _mount_points()
    targets = tuple(overlay.target for overlay in plan.overlays)
    masks = _masked(plan, home)
    has_home = os.path.isdir(home) and home != "/" and not any(within(home, target) for target in targets)

    steps = _shown("/", mounts, frozenset(masks))
    bound = [step.source for step in steps if isinstance(step, Bind)]
    private = [path for path in PRIVATE_FOLDERS if not os.path.islink(path) and os.path.isdir(path)]
    steps.extend(
        Fresh(target=path, mode=0o1777 if path != "/run" else 0o755, sealed=False) for path in private
    )

    # Parents before children; at one depth the layers after the masks that they lie in.
    inner: list[tuple[int, int, Step]] = []
    anchors = [*targets, *([home] if has_home else [])]
    exposed = tuple(
        real
        for real in (os.path.realpath(_absolute(path, home)) for path in plan.exposed)
        if os.path.exists(real)
    )
    for path, folder in masks.items():
        top = path.count("/") == 1
        parts = [one for one in (*anchors, *exposed) if one != path and within(one, path)]
        covered = any(within(path, one) for one in private) and not any(within(path, one) for one in anchors)
        if not top and (parts or not covered):
            if parts and folder:
                inner.append((path.count("/"), 0, Fresh(target=path, mode=0o755, sealed=True)))
            elif not parts:
                inner.append((99_999, 0, Mask(target=path, folder=folder)))
        if folder:
            inner.extend(
                (one.count("/"), 1, Bind(target=one, source=one, exposed=True))
                for one in exposed
                if one != path
                and within(one, path)
                and not any(within(one, anchor) and within(anchor, path) for anchor in anchors)
            )
    if has_home:
        inner.append((home.count("/"), 2, HomeLayer(target=home)))
    shut = {one for target in targets if (one := _shut_above(target, (*anchors, *private)))}
    inner.extend((one.count("/"), 0, Fresh(target=one, mode=0o755, sealed=True)) for one in shut - set(masks))
    if has_home or home in targets:
        inner.extend(
            (step.target.count("/"), 1, step) for step in _mounted_below(home, mounts, masks, targets)
        )
    inner.extend(
        (target.count("/"), 3, Staged(target=target, index=index)) for index, target in enumerate(targets)
    )
    inner.sort(key=lambda one: one[:2])
    steps.extend(step for _, _, step in inner)
    for path in _listening_sockets():
        if any(within(path, folder) for folder in bound) and not any(
            within(path, one) for one in (*masks, *anchors)
        ):
            steps.append(Mask(target=path, folder=False))
    writable = [*targets, *([home] if has_home else []), *private, "/dev", "/proc"]
    return Layout(steps=tuple(steps), writable=tuple(writable))


def _shut_above(target: str, layers: tuple[str, ...]) -> str | None:
    """Return the topmost folder above a staged one that nobody but its owner may pass.

    Root's command sees the host's folders as nobody's: the staged one is reached through a new folder there, without
    what lies beside it.
    """
    if os.geteuid() != 0 or any(within(target, layer) for layer in layers if layer != target):
        return None
    path = ""
    for part in target.strip("/").split("/")[:-1]:
        path += "/" + part
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return path
    return None


def _mounted_below(
    home: str, mounts: frozenset[str], masks: dict[str, bool], targets: tuple[str, ...]
) -> list[Step]:
    """Lay out, read-only, the other file systems below HOME: its layer shows HOME's own alone.

    Raises: BoundaryError for an ordinary user, to whom the kernel gives no layer over a folder with such mounts.
    """
    below = sorted(point for point in mounts if point.startswith(home + "/"))
    if below and os.geteuid() != 0:
        raise BoundaryError(
            "no layer can be laid over HOME by an ordinary user, since other file systems are mounted below it: "
            + ", ".join(path_text(os.fsencode(one)) for one in below[:3]),
            hint="unmount them, or give the run another home: HOME=DIR interlock run …",
        )
    steps: list[Step] = []
    for point in below:
        # what a mask or a staged folder of its own lies over is that one's
        if any(within(point, one) for one in (*masks, *targets) if one != home and within(one, home)):
            continue
        if not os.path.isdir(point):
            if os.path.isfile(point):
                steps.append(Bind(target=point, source=point))
        elif not any(one.startswith(point + "/") for one in below):
            steps.append(Screen(target=point, source=point))
        else:
            steps.append(Fresh(target=point, mode=0o755, sealed=True))
            steps.extend(
                step for step in _shown(point, mounts, frozenset(masks)) if step.target not in mounts
            )
    return steps


def _shown(folder: str, mounts: frozenset[str], masks: frozenset[str]) -> list[Step]:
    """Lay out what is shown of a host folder that other file systems are mounted below.

    Each folder without such mounts is one screen; one with them is made anew and its entries are laid out one
    by one, since an overlay shows its own file system alone. Host sockets among the entries are left out, and
    so are plain files where there are more than `_MAX_FILES`: each is a mount of its own.
    """
    steps: list[Step] = []
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda one: one.name)
    except PermissionError:
        return steps  # whoever may not list it sees an empty folder in its place
    crowded = len(entries) > _MAX_FILES
    for entry in entries:
        path = folder.rstrip("/") + "/" + entry.name
        if folder == "/" and entry.name in OWN_FOLDERS:
            continue
        if path in masks:
            if folder == "/" and entry.is_dir():
                steps.append(Fresh(target=path, mode=0o755, sealed=True))
        elif entry.is_symlink():
            steps.append(Symlink(target=path, text=os.readlink(path)))
        elif entry.is_dir():
            if folder == "/" and entry.name in STATIC_FOLDERS:
                steps.append(Bind(target=path, source=path))
            elif any(point.startswith(path + "/") for point in mounts):
                steps.append(Fresh(target=path, mode=0o755, sealed=True))
                steps.extend(_shown(path, mounts, masks))
            else:
                steps.append(Screen(target=path, source=path))
        elif entry.is_file() and not crowded:
            steps.append(Bind(target=path, source=path))
    return steps


def _check(plan: SandboxPlan) -> None:
    if not plan.argv:
        raise InputError("there is no command to run", hint="give one after `--`")
    if not os.path.isdir(plan.scratch):
        raise BoundaryError("the run's scratch folder is missing", hint="make the folder first")
    for overlay in plan.overlays:
        for path in (overlay.target, overlay.lower, overlay.upper, overlay.work):
            if not path.startswith("/") or not os.path.isdir(path):
                raise InputError(
                    f"`{overlay.name}` needs a folder that is not there",
                    hint="give an existing, absolute folder",
                )
        if overlay.target == "/" or overlay.target.split("/")[1] in _NEVER_STAGED:
            raise InputError(
                f"`{overlay.target}` cannot be staged",
                hint="choose a folder of your own, not one of the system's",
            )
        if os.path.realpath(overlay.target) != overlay.target:
            raise InputError(
                f"`{overlay.name}` leads through a symbolic link", hint="give the folder's real path"
            )
        if not overlay.sparse and within(os.path.realpath(overlay.upper), overlay.lower):
            raise InputError(
                f"the staged copy of `{overlay.name}` would lie inside it",
                hint="move the state folder elsewhere",
            )


def _absolute(path: str, home: str) -> str:
    return home + path[1:] if path.startswith("~/") else path


def _masked(plan: SandboxPlan, home: str) -> dict[str, bool]:
    """Return the real paths to hide, without those below another one, and whether each is a folder."""
    exposed = {os.path.realpath(_absolute(path, home)) for path in plan.exposed} | {
        os.path.normpath(_absolute(path, home)) for path in plan.exposed
    }
    # A workspace that is HOME, or holds it, is no choice to show the keys in it.
    chosen = [
        overlay.target
        for overlay in plan.overlays
        if overlay.name == "workspace" and not within(home, overlay.target)
    ]
    wanted: list[str] = []
    for path in hidden.expand(tuple(entry.path for entry in hidden.DEFAULT), home):
        real = os.path.realpath(path)
        if real in (home, "/") or path in exposed or real in exposed:
            continue
        if any(within(real, folder) for folder in (*exposed, *chosen)):
            continue
        wanted.append(real)
    wanted.extend(
        real
        for real in (os.path.realpath(path) for path in hidden.expand(plan.hidden, home))
        if real not in ("/", home)
    )
    wanted.append(os.path.realpath(plan.scratch))
    for overlay in plan.overlays:
        wanted.extend((os.path.realpath(overlay.upper), os.path.realpath(overlay.work)))
    masks: dict[str, bool] = {}
    kept: list[str] = []
    layers = {overlay.target for overlay in plan.overlays}
    for path in sorted(set(wanted) - layers, key=lambda one: one.count("/")):
        if any(within(path, parent) and not _reappears(path, parent, layers | {home}) for parent in kept):
            continue
        try:
            folder = stat.S_ISDIR(os.stat(path).st_mode)
        except OSError:
            continue
        kept.append(path)
        masks[path] = folder
    return masks


def _reappears(path: str, parent: str, layers: set[str]) -> bool:
    """Say whether a layer mounted below `parent` shows `path` again."""
    return any(within(layer, parent) and layer != parent and within(path, layer) for layer in layers)


def _mount_points() -> frozenset[str]:
    with open("/proc/self/mountinfo", "rb") as table:
        return frozenset(_unescape(line.split(b" ", 5)[4]) for line in table)


def _unescape(field: bytes) -> str:
    if b"\\" in field:
        for code, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
            field = field.replace(code, char)
    return os.fsdecode(field)


def _listening_sockets() -> tuple[str, ...]:
    """Return the real paths of the unix sockets that someone of this network namespace listens on."""
    found: list[str] = []
    try:
        with open("/proc/net/unix", "rb") as table:
            next(table, None)  # the heading
            for line in table:
                # Flags 0x10000: listens; type 2: a datagram socket, which takes messages without listening.
                fields = line.rstrip(b"\n").split(b" ", 6)
                if len(fields) == 7 and (fields[3] == b"00010000" or fields[4] == b"0002"):
                    place = fields[6].lstrip().partition(b" ")[2]
                    if place.startswith(b"/"):
                        real = os.path.realpath(os.fsdecode(place))
                        if os.path.lexists(real):
                            found.append(real)
    except OSError:
        raise BoundaryError(
            "the host's unix sockets cannot be listed", hint="mount /proc so that /proc/net/unix can be read"
        ) from None
    return tuple(found)
