"""Lays single files of the run over paths of the finished tree: `resolv.conf`, trusted certificates."""

import os
import stat

from interlock.boundary import kernel
from interlock.boundary.plan import PlacedFile
from interlock.boundary.surroundings import start_fix
from interlock.model.errors import BoundaryError
from interlock.model.places import path_text

_SHUT = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
_SHUT_FILE = _SHUT | kernel.MOUNT_ATTR_NOEXEC


class Placing:
    """The placed files of one sandbox: opened while the host's tree is there, laid once the new one stands.

    Takes: the files.
    Raises: BoundaryError, if a source is no file that can be shown.
    """

    def __init__(self, files: tuple[PlacedFile, ...]) -> None:
        self._mounts = [(one, *self._open(one)) for one in files]
        self._placed: list[str] = []
        self._skipped: list[str] = []

    def _open(self, one: PlacedFile) -> tuple[int, bool]:
        try:
            mode = os.stat(one.source).st_mode
            folder = stat.S_ISDIR(mode)
            if not (folder or stat.S_ISREG(mode)) or not one.target.startswith("/"):
                raise OSError(0, "not a file or folder, or no absolute path")
            mount = kernel.clone_tree(os.fsencode(one.source), recursive=False)
        except OSError as error:
            raise BoundaryError(
                f"the file for `{path_text(os.fsencode(one.target))}` cannot be shown: {error.strerror}",
                hint=start_fix(error),
            ) from None
        kernel.set_mount(mount, _SHUT_FILE, recursive=False)
        return mount, folder

    def lay(self, own: frozenset[int]) -> list[int]:
        """Attach them all, in the new root, after everything that could hide them.

        Takes: `own`, the device numbers of the tmpfs mounts that are the sandbox's own.
        Returns: mounts to be made read-only at the end.
        Raises: BoundaryError, if one that is not optional cannot be attached.
        """
        sealed: list[int] = []
        devices = set(own)
        for one, mount, folder in self._mounts:
            try:
                kernel.attach(mount, os.fsencode(_ready(one.target, folder, devices, sealed)))
            except OSError as error:
                if not one.optional:
                    raise BoundaryError(
                        f"`{path_text(os.fsencode(one.target))}` cannot be shown inside: {error.strerror}",
                        hint="make the file on the host, or name another place",
                    ) from None
                self._skipped.append(one.target)
            else:
                self._placed.append(one.target)
        return sealed

    def facts(self) -> list[str]:
        """Return what to note in the receipt."""
        return [
            f"{name}={' '.join(targets)}"
            for name, targets in (("placed", self._placed), ("placed-skipped", self._skipped))
            if targets
        ]


def _ready(target: str, folder: bool, own: set[int], sealed: list[int]) -> str:
    """Return what to attach at: the path itself, or the symbolic link that leads nowhere; make it if it may be made.

    Raises: OSError, if there is nothing and nothing may be made there.
    """
    real = os.path.realpath(target)
    if os.path.isdir(real) if folder else os.path.isfile(real):
        return real
    if os.path.lexists(real):
        raise OSError(0, "something else stands there")
    parent, name = os.path.split(os.path.normpath(target))
    link = f"{os.path.realpath(parent)}/{name}"
    if os.path.islink(link):
        # It points into a folder that is fresh here (`/run`). A mount may stand on the link itself; it is safer
        # there, since the command may rename folders in its own `/run`.
        return link
    missing = real
    while not os.path.lexists(os.path.dirname(missing)):
        missing = os.path.dirname(missing)
    if os.stat(os.path.dirname(missing)).st_dev not in own:
        raise OSError(0, "no such file, and none may be made there")
    if missing != real:
        # A mount point cannot be renamed or removed: the command cannot put a folder of its own in this place.
        os.mkdir(missing, 0o755)
        mount = kernel.new_mount("tmpfs", (("mode", "755"),), _SHUT & ~kernel.MOUNT_ATTR_RDONLY)
        kernel.attach(mount, os.fsencode(missing))
        sealed.append(mount)
        own.add(os.fstat(mount).st_dev)
        os.makedirs(os.path.dirname(real), 0o755, exist_ok=True)
        if folder and real == missing:
            return real
    if folder:
        os.mkdir(real, 0o755)
        return real
    os.close(os.open(real, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    return real
