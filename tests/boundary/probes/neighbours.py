"""Attacks through what programs of one machine share: sockets in files, names, shared memory, queues."""

import os
import socket
import struct
import time

from tests.boundary.probes.entry import UNSEEN, NotRun, Scene, Stopped, attempt, block, call, probe

SOCKET_PLACES = ("workspace", "home", "a plain folder", "the var folder", "the run folder", "the tmp folder",
                 "the etc folder", "the etc folder, by a relative name", "a plain folder, late", "the var folder, late",
                 "the etc folder, late", "the run folder, late")  # fmt: skip


def _talk(scene: Scene, path: str, kind: int = socket.SOCK_STREAM) -> str:
    client = socket.socket(socket.AF_UNIX, kind)
    client.settimeout(2)
    folder, name = os.path.split(path)
    os.chdir(folder)  # the whole path may be longer than a socket's address
    client.connect(name)
    client.send(scene.name.encode())
    return "a host program answered"


def _await_service(scene: Scene) -> None:
    """Have the host start its services now that the sandbox stands."""
    if not os.path.exists(f"{scene.workspace}/.late"):
        with open(f"{scene.workspace}/.late", "w"):
            pass
        # Not by looking for the socket: the kernel would remember that it was not there.
        time.sleep(0.4)


def _enter_sockets() -> None:
    for place in SOCKET_PLACES:

        def connect(scene: Scene, place: str = place) -> str:
            if place not in scene.sockets:
                raise NotRun(f"needs root to lay a socket out in {place}")
            if place.endswith("late"):
                _await_service(scene)
            return _talk(scene, scene.sockets[place])

        probe(
            f"connect to a socket in {place}", "programs of the host",
            stops="ECONNREFUSED|ENOENT|EACCES",
        )(connect)  # fmt: skip


_enter_sockets()


@probe(
    "send to a datagram socket in the workspace", "programs of the host", stops="ECONNREFUSED|ENOENT|EACCES"
)
def _(scene: Scene) -> str:
    return _talk(scene, scene.letterbox, socket.SOCK_DGRAM)


@probe("connect to an abstract socket", "programs of the host", stops="ECONNREFUSED|EPERM")
def _(scene: Scene) -> str:
    client = socket.socket(socket.AF_UNIX)
    client.connect("\0" + scene.abstract)
    client.send(scene.name.encode())
    return "a host program answered"


@probe("list the host's sockets", "what tells of the machine", stops="not listed")
def _(scene: Scene) -> str:
    with open("/proc/net/unix") as file:
        if scene.abstract in file.read():
            return "a host socket was listed"
    raise Stopped("not listed")


@probe("list the host's connections", "what tells of the machine", stops="not listed")
def _(scene: Scene) -> str:
    with open("/proc/net/tcp") as file:
        if f":{scene.port:04X} " in file.read():
            return "a host port was listed"
    raise Stopped("not listed")


@probe("attach the host's shared memory", "System V objects of the host", stops="ENOENT")
def _(scene: Scene) -> str:
    return attempt(29, scene.key, 0, 0)


@probe("open the host's message queue", "System V objects of the host", stops="ENOENT")
def _(scene: Scene) -> str:
    return attempt(68, scene.key, 0)


@probe("open the host's semaphores", "System V objects of the host", stops="ENOENT")
def _(scene: Scene) -> str:
    return attempt(64, scene.key, 0, 0)


@probe("list the host's shared memory", "System V objects of the host", stops="not listed")
def _(scene: Scene) -> str:
    with open("/proc/sysvipc/shm") as file:
        if str(scene.key) in file.read().split():
            return "a host segment was listed"
    raise Stopped("not listed")


@probe("open the host's posix queue", "queues of the host", stops="ENOENT")
def _(scene: Scene) -> str:
    if not scene.queue:
        raise NotRun("this kernel has no queues")
    return attempt(240, scene.queue.encode(), os.O_RDWR, 0, None)


@probe("open the host's shared file", "shared memory of the host", stops="ENOENT")
def _(scene: Scene) -> str:
    return f"it opened: {os.open(scene.shared, os.O_RDWR)}"


@probe("leave a file in shared memory", "shared memory of the host", stops=UNSEEN)
def _(scene: Scene) -> str:
    path = f"{scene.shared}-{scene.slug}"
    with open(path, "w") as file:
        file.write(scene.name)
    raise Stopped(UNSEEN)


@probe("leave a file in the tmp folder", "folders that programs share", stops=UNSEEN)
def _(scene: Scene) -> str:
    with open(f"/tmp/{os.path.basename(scene.shared)}-{scene.slug}", "w") as file:
        file.write(scene.name)
    raise Stopped(UNSEEN)


@probe("leave a file in the other tmp folder", "folders that programs share", stops=UNSEEN)
def _(scene: Scene) -> str:
    with open(f"/var/tmp/{os.path.basename(scene.shared)}-{scene.slug}", "w") as file:
        file.write(scene.name)
    raise Stopped(UNSEEN)


@probe("leave a shared memory segment behind", "System V objects of the host", stops=UNSEEN)
def _(scene: Scene) -> str:
    call(29, scene.key + 1, 4096, 0o1666)
    raise Stopped(UNSEEN)


@probe("leave a posix queue behind", "queues of the host", stops=UNSEEN + "|EACCES")
def _(scene: Scene) -> str:
    attributes = block(64)
    attributes.raw = struct.pack("=8q", 0, 1, 8, 0, 0, 0, 0, 0)
    call(240, f"{scene.queue}-{scene.slug}".encode(), os.O_CREAT | os.O_RDWR, 0o666, attributes)
    raise Stopped(UNSEEN)


@probe("pass a descriptor in from the host", "descriptors of others", stops="none")
def _(_scene: Scene) -> str:
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number > 2 and not _is_own(number):
            return f"descriptor {number} was left open"
    raise Stopped("none")


def _is_own(number: int) -> bool:
    """Say whether it is the runner's: its pipes, or the listing itself."""
    try:
        path = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return True
    return path.startswith(("pipe:", "/proc/"))
