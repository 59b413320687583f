"""The host's files shown without owners to a root command: it can read what anyone can read, no more.

A sandbox of root has root's ids, and with them root's right to every file of the host that is shown. Where
the file system can map owners per mount, the read-only part is shown as owned by nobody whom the sandbox knows.
"""

import os
import signal

from interlock.boundary import kernel, layout, mounts

_NOBODYS_ID = 4294967200
"""An id that no file has: all others are then unmapped, out of reach of ownership and capabilities."""


def mounts_of(tree: layout.Layout) -> dict[str, int]:
    """Clone what the layout shows of the host, without owners.

    Returns: descriptors of detached mounts by source; a folder whose file system cannot map owners is left
    out.
    """
    found: dict[str, int] = {}
    namespace = empty = -1
    try:
        namespace = _namespace()
        empty = kernel.new_mount("tmpfs", (), kernel.MOUNT_ATTR_RDONLY)
        for step in tree.steps:
            if isinstance(step, layout.Screen) or (isinstance(step, layout.Bind) and not step.exposed):
                mount = kernel.clone_tree(os.fsencode(step.source))
                try:
                    kernel.map_mount(mount, namespace)
                    if isinstance(step, layout.Screen):
                        # Linux before 6.15 takes no detached mount as a layer.
                        bare, mount = mount, mounts.screen_of(mount, empty)
                        os.close(bare)
                except OSError:
                    os.close(mount)
                else:
                    found[step.source] = mount
    except OSError:
        # No more than a second lock: what it would have covered shows in the receipt.
        pass
    finally:
        for descriptor in (namespace, empty):
            if descriptor >= 0:
                os.close(descriptor)
    return found


def _namespace() -> int:
    """Make a user namespace that maps one unused id; its first process is gone on return."""
    ready, told = os.pipe()
    monitor = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != monitor:
                os._exit(1)
            kernel.call("unshare", kernel.NR_UNSHARE, kernel.CLONE_NEWUSER)
            os.write(told, b"u")
            signal.pause()
        finally:
            os._exit(1)
    os.close(told)
    try:
        if os.read(ready, 1) != b"u":
            raise OSError("no user namespace")
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
                file.write(f"{_NOBODYS_ID} {_NOBODYS_ID} 1")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
