"""Attacks that try to change the host: what is written must stay in the staged copy, or not happen."""

import errno
import os
import stat

from tests.boundary.probes.entry import UNSEEN, Enter, NotRun, Scene, Stopped, call, probe

_CLOSED = "EROFS|EACCES|EPERM|EXDEV"


def _enter_system_files() -> None:
    for path in (
        "/etc/passwd",
        "/etc/hosts",
        "/usr/bin/env",
        "/usr/bin/tac",
        "/etc/profile",
        "/usr/lib/os-release",
    ):

        def open_it(_: Scene, path: str = path) -> str:
            return f"it opened: {os.open(path, os.O_WRONLY | os.O_APPEND)}"

        probe(f"write {path}", "the system's files", stops=_CLOSED + "|ETXTBSY")(open_it)
    for folder in ("/etc", "/usr/bin", "/usr/lib", "/opt", "/var/lib", "/srv", "/"):

        def make(_: Scene, folder: str = folder) -> str:
            return f"it was made: {os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)}"

        probe(f"make a file in {folder}", "the system's folders", stops=_CLOSED)(make)


_enter_system_files()


def _public(name: str, stops: str = _CLOSED) -> Enter:
    return probe(name, "a folder of the host that all may write", stops=stops, target="public")


@_public("overwrite a file that all may write")
def _(scene: Scene) -> str:
    with open(scene.aim("public"), "w") as file:
        file.write("changed")
    return "it was written"


@_public("truncate a file that all may write")
def _(scene: Scene) -> str:
    os.truncate(scene.aim("public"), 0)
    return "it was truncated"


@_public("delete a file that all may write")
def _(scene: Scene) -> str:
    os.unlink(scene.aim("public"))
    return "it was deleted"


@_public("rename a file that all may write")
def _(scene: Scene) -> str:
    os.rename(scene.aim("public"), scene.aim("public", "moved"))
    return "it was renamed"


@_public("move a file of the workspace out")
def _(scene: Scene) -> str:
    own = scene.aim("workspace", "own")
    with open(own, "w") as file:
        file.write("own")
    os.rename(own, scene.aim("public", "moved"))
    return "it was moved"


@_public("link a file of the workspace out")
def _(scene: Scene) -> str:
    own = scene.aim("workspace", "own")
    with open(own, "w") as file:
        file.write("own")
    os.link(own, scene.aim("public", "link"))
    return "it was linked"


@_public("link a file of the host in and write it")
def _(scene: Scene) -> str:
    os.link(scene.aim("public"), scene.aim("workspace", "link"))
    with open(scene.aim("workspace", "link"), "w") as file:
        file.write("changed")
    return "it was written"


@_public("name an unnamed file out there")
def _(scene: Scene) -> str:
    made = os.open(scene.workspace, os.O_TMPFILE | os.O_RDWR, 0o600)
    call(265, -100, f"/proc/self/fd/{made}".encode(), -100, os.fsencode(scene.aim("public", "named")), 0x400)
    return "it was named"


@_public("make a folder, a pipe and a link out there")
def _(scene: Scene) -> str:
    for make in (
        lambda: os.mkdir(scene.aim("public", "d")),
        lambda: os.mkfifo(scene.aim("public", "p")),
        lambda: os.symlink("/", scene.aim("public", "l")),
    ):
        try:
            make()
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            last = error
        else:
            return "it was made"
    raise last


@_public("change the mode of a host file")
def _(scene: Scene) -> str:
    os.chmod(scene.aim("public"), 0o777)
    return "it was changed"


@_public("change the owner of a host file", _CLOSED + "|EINVAL|EOVERFLOW")
def _(scene: Scene) -> str:
    os.chown(scene.aim("public"), 12345, 12345)
    return "it was changed"


@_public("change the times of a host file")
def _(scene: Scene) -> str:
    os.utime(scene.aim("public"), (1, 1))
    return "they were changed"


@_public("mark a host file with an attribute")
def _(scene: Scene) -> str:
    os.setxattr(scene.aim("public"), "user.probe", b"1")
    return "it was marked"


@_public("leave a mark by reading a host file", UNSEEN)
def _(scene: Scene) -> str:
    with open(scene.aim("public")) as file:
        file.read()
    raise Stopped(UNSEEN)


@_public("write a host file by its magic link")
def _(scene: Scene) -> str:
    handle = os.open(scene.aim("public"), os.O_RDONLY)
    return f"it opened: {os.open(f'/proc/self/fd/{handle}', os.O_WRONLY)}"


@_public("write a host file through a map")
def _(scene: Scene) -> str:
    import mmap

    handle = os.open(scene.aim("public"), os.O_RDONLY)
    memory = mmap.mmap(handle, 4, mmap.MAP_SHARED, mmap.PROT_READ)
    del memory
    handle = os.open(scene.aim("public"), os.O_RDWR)
    with mmap.mmap(handle, 4) as writable:
        writable[:4] = b"gone"
    return "it was written"


@_public("write through a link in the workspace")
def _(scene: Scene) -> str:
    os.symlink(scene.aim("public"), scene.aim("workspace", "link"))
    with open(scene.aim("workspace", "link"), "w") as file:
        file.write("changed")
    return "it was written"


@_public("write through a link of a folder")
def _(scene: Scene) -> str:
    new = os.path.basename(scene.aim("public", "new"))
    os.symlink(scene.public, scene.aim("workspace", "folder"))
    with open(f"{scene.aim('workspace', 'folder')}/{new}", "w") as file:
        file.write("new")
    return "it was written"


def _enter_home() -> None:
    def open_write(scene: Scene, path: str) -> None:
        with open(path, "w") as file:
            file.write("changed")

    for name in (
        ".bashrc",
        ".profile",
        ".ssh/authorized_keys",
        ".config/autostart/x.desktop",
        ".gitconfig",
        "bin/ls",
    ):

        def write(scene: Scene, name: str = name) -> str:
            # Each probe's own file stands for that name; the name itself is tried too.
            path = f"{scene.home}/{name}"
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open_write(scene, path)
            except OSError as error:
                if error.errno not in (errno.EROFS, errno.EACCES, errno.ENOENT, errno.EPERM):
                    raise
            open_write(scene, scene.aim("home"))
            raise Stopped(UNSEEN)

        probe(f"write ~/{name}", "what runs later from the home", promise=3, stops=UNSEEN, target="home")(
            write
        )


_enter_home()


@probe("delete a file of the home", "the home", promise=3, stops=UNSEEN, target="home")
def _(scene: Scene) -> str:
    os.unlink(scene.aim("home"))
    raise Stopped(UNSEEN)


@probe("rename a file of the home", "the home", promise=3, stops=UNSEEN, target="home")
def _(scene: Scene) -> str:
    os.rename(scene.aim("home"), scene.aim("home", "moved"))
    raise Stopped(UNSEEN)


@probe(
    "move a file from the home to the workspace",
    "two layers",
    promise=3,
    stops=UNSEEN + "|EXDEV",
    target="home",
)
def _(scene: Scene) -> str:
    os.rename(scene.aim("home"), scene.aim("workspace", "moved"))
    raise Stopped(UNSEEN)


def _workspace(name: str, attacks: str = "the workspace before release", target: str = "workspace") -> Enter:
    return probe(name, attacks, promise=3, stops=UNSEEN, target=target)


@_workspace("write a workspace file")
def _(scene: Scene) -> str:
    with open(scene.aim("workspace"), "w") as file:
        file.write("changed")
    raise Stopped(UNSEEN)


@_workspace("write a workspace file through a map")
def _(scene: Scene) -> str:
    import mmap

    handle = os.open(scene.aim("workspace"), os.O_RDWR)
    with mmap.mmap(handle, 4) as memory:
        memory[:4] = b"gone"
        memory.flush()
    raise Stopped(UNSEEN)


@_workspace("delete a workspace file")
def _(scene: Scene) -> str:
    os.unlink(scene.aim("workspace"))
    raise Stopped(UNSEEN)


@_workspace("punch a hole into a workspace file")
def _(scene: Scene) -> str:
    call(285, os.open(scene.aim("workspace"), os.O_RDWR), 3, 0, 4)
    raise Stopped(UNSEEN)


@_workspace("swap a workspace file with a link while it is written")
def _(scene: Scene) -> str:
    handle = os.open(scene.aim("workspace"), os.O_WRONLY)
    os.symlink(scene.aim("home"), scene.aim("workspace", "new"))
    os.rename(scene.aim("workspace", "new"), scene.aim("workspace"))
    os.write(handle, b"changed")
    raise Stopped(UNSEEN)


@_workspace("exchange a workspace file and a link")
def _(scene: Scene) -> str:
    os.symlink("/etc/passwd", scene.aim("workspace", "new"))
    paths = (os.fsencode(scene.aim("workspace", "new")), os.fsencode(scene.aim("workspace")))
    call(316, -100, paths[0], -100, paths[1], 2)
    raise Stopped(UNSEEN)


@_workspace("write a file that has a second name outside", "hard links out of the workspace", "linked")
def _(scene: Scene) -> str:
    with open(scene.aim("workspace", "link"), "w") as file:
        file.write("changed")
    raise Stopped(UNSEEN)


@_workspace(
    "change the mode of a file with a second name outside", "hard links out of the workspace", "linked"
)
def _(scene: Scene) -> str:
    os.chmod(scene.aim("workspace", "link"), 0o4777)
    raise Stopped(UNSEEN)


@_workspace("mark a file with a second name outside", "hard links out of the workspace", "linked")
def _(scene: Scene) -> str:
    os.setxattr(scene.aim("workspace", "link"), "user.probe", b"1")
    raise Stopped(UNSEEN)


@_workspace("truncate a file with a second name outside", "hard links out of the workspace", "linked")
def _(scene: Scene) -> str:
    handle = os.open(scene.aim("workspace", "link"), os.O_RDONLY)
    os.truncate(f"/proc/self/fd/{handle}", 0)
    raise Stopped(UNSEEN)


@_workspace("write through an open folder")
def _(scene: Scene) -> str:
    folder = os.open(scene.workspace, os.O_RDONLY)
    handle = os.open(f"{scene.slug}.file", os.O_WRONLY | os.O_TRUNC, dir_fd=folder)
    os.write(handle, b"changed")
    raise Stopped(UNSEEN)


@_workspace("leave a mark by reading a workspace file")
def _(scene: Scene) -> str:
    with open(scene.aim("workspace")) as file:
        file.read()
    raise Stopped(UNSEEN)


@_workspace("make a set-id file in the workspace")
def _(scene: Scene) -> str:
    os.chmod(scene.aim("workspace"), 0o6777)
    raise Stopped(UNSEEN)


def _enter_marks() -> None:
    for prefix in ("user.overlay.", "trusted.overlay."):
        for name, value in (
            ("redirect", b"/../../etc"),
            ("metacopy", b""),
            ("opaque", b"y"),
            ("whiteout", b"y"),
        ):

            def mark(scene: Scene, attribute: str = prefix + name, value: bytes = value) -> str:
                os.setxattr(scene.aim("workspace"), attribute, value)
                raise Stopped(UNSEEN)  # whether the layer holds the mark itself is seen on the host

            probe(
                f"forge the mark {prefix}{name}", "the staged copy's own marks", promise=1,
                stops=UNSEEN + "|EPERM|EOPNOTSUPP", target="workspace",
            )(mark)  # fmt: skip


_enter_marks()


@probe("open the given input for writing", "streams of the host", stops="EACCES|EPERM|EROFS")
def _(_scene: Scene) -> str:
    if not stat.S_ISREG(os.fstat(0).st_mode):
        raise NotRun("the input is no file")
    return f"it opened: {os.open('/proc/self/fd/0', os.O_WRONLY)}"


@probe("open the output for reading", "streams of the host", stops="EACCES|EPERM")
def _(_scene: Scene) -> str:
    if not stat.S_ISREG(os.fstat(1).st_mode):
        raise NotRun("the output is no file")
    return f"it opened: {os.open('/proc/self/fd/1', os.O_RDONLY)}"


@probe("climb from a stream's folder", "streams of the host", stops="ENOTDIR|ENOENT|EACCES")
def _(scene: Scene) -> str:
    target = os.readlink("/proc/self/fd/0")
    return f"{len(os.listdir(os.path.dirname(target)))} names were listed"
