"""Runs probes one by one, each in a process of its own, and writes one JSON line for each.

The same program runs inside the sandbox and, given a world, outside of it.
"""

import contextlib
import ctypes
import dataclasses
import errno
import importlib
import json
import os
import select
import signal
import sys
import time

from tests.boundary.probes.entry import REGISTRY, NotRun, Probe, Scene, Stopped, World, call

MODULES = (
    "mounts",
    "processes",
    "machine",
    "devices",
    "neighbours",
    "network",
    "secrets",
    "writes",
    "privileges",
)
_DEADLINE_S = 8


def load() -> dict[str, Probe]:
    """Return all probes by name."""
    for name in MODULES:
        importlib.import_module(f"tests.boundary.probes.{name}")
    return REGISTRY


def serves(world: World, probe: Probe) -> bool:
    """Say whether a probe has its control in this world; an ordinary user has most rights in a world apart."""
    return probe.control is world or (world is World.APART and os.geteuid() != 0)


def outcome(probe: Probe, scene: Scene) -> tuple[str, str]:
    """Try one attack here: what came of it (`escaped`, `stopped`, `not run`, `broken`), and how."""
    try:
        return "escaped", probe.run(scene)
    except Stopped as stopped:
        return "stopped", str(stopped)
    except NotRun as reason:
        return "not run", str(reason)
    except OSError as error:
        return "stopped", errno.errorcode.get(error.errno or 0, str(error))
    except BaseException as error:
        return "broken", f"{type(error).__name__}: {error}"


def _stand_apart(world: World) -> None:
    """Make this process safe to attack from: what it changes must not stay."""
    root = os.geteuid() == 0
    if world is World.LOGIN or (world is World.HOST and not root):
        return
    flags = 0x20000 | 0x04000000
    if world is World.APART:
        flags |= 0x08000000 | 0x20000000 | 0x40000000
    if not root:
        flags |= 0x10000000
    uid, gid = os.getuid(), os.getgid()
    call(272, flags)
    if not root:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    call(165, b"none", b"/", None, 1 << 18 | 16384, None)


def _in_child(probe: Probe, scene: Scene, world: World | None, answer: int) -> None:
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)
    if world is not None:
        _stand_apart(world)
        if world is World.APART:
            _as_first(probe, scene, answer)
        guardian = os.fork()
        if guardian == 0:
            ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)
            signal.pause()
        scene = dataclasses.replace(scene, guardian=guardian)
    result = outcome(probe, scene)
    if world is not None and scene.guardian > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(scene.guardian, signal.SIGKILL)
    os.write(answer, json.dumps(result).encode())
    os._exit(0)


def _as_first(probe: Probe, scene: Scene, answer: int) -> None:
    first = os.fork()
    if first == 0:
        try:
            call(165, b"proc", b"/proc", b"proc", 0, None)
            pid = os.fork()
            if pid == 0:
                os.write(answer, json.dumps(outcome(probe, scene)).encode())
                os._exit(0)
            os.waitpid(pid, 0)
        finally:
            os._exit(0)
    _, status = os.waitpid(first, 0)
    if os.WIFSIGNALED(status):
        os.write(answer, json.dumps(("stopped", signal.Signals(os.WTERMSIG(status)).name)).encode())
    os._exit(0)


def _one(probe: Probe, scene: Scene, world: World | None) -> tuple[str, str]:
    scene = dataclasses.replace(scene, slug=probe.slug, name=probe.name)
    heard, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(heard)
            _in_child(probe, scene, world, answer)
        except BaseException as error:
            os.write(answer, json.dumps(("broken", f"set-up: {error!r}")).encode())
        finally:
            os._exit(1)
    os.close(answer)
    text = b""
    end = time.monotonic() + _DEADLINE_S
    while select.select([heard], [], [], max(0, end - time.monotonic()))[0]:
        part = os.read(heard, 65536)
        if not part:
            break
        text += part
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(heard)
    _, status = os.waitpid(pid, 0)
    if text:
        what, how = json.loads(text)
        return what, how
    if os.WIFSIGNALED(status):
        return "stopped", signal.Signals(os.WTERMSIG(status)).name
    return "broken", "it left no answer in time"


def main() -> None:
    """Take the scene's file and the world; write the outcomes to the standard output."""
    scene_path, world_name = sys.argv[1:3]
    with open(scene_path) as file:
        scene = Scene.from_plain(json.load(file))
    world = World(world_name) if world_name != "sandbox" else None
    for probe in load().values():
        if world is None or serves(world, probe):
            what, how = _one(probe, scene, world)
            print(json.dumps([probe.name, what, how]), flush=True)


if __name__ == "__main__":
    main()
