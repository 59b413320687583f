"""What this kernel lets this user do: tried in a child that leaves nothing behind."""

import contextlib
import os
import tempfile
from collections.abc import Iterator

from interlock.boundary import cgroup, kernel, landlock, surroundings
from interlock.boundary.launch import launch, map_all
from interlock.boundary.net import wiring
from interlock.boundary.plan import Feature, Limits
from interlock.model.errors import BoundaryError

_QUIET = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
_V6, _STAGING = "ipv6", "staging"
_OPTIONAL = (_V6, _STAGING)
_CGROUP_FIX = (
    "make /sys/fs/cgroup writable (docker run --security-opt writable-cgroups=true, Docker 28), "
    "or delegate a cgroup to this user (systemd: Delegate=yes)"
)


def probe(state: str = "") -> tuple[Feature, ...]:
    """Try each thing that the boundary needs, quickly and without a trace.

    Takes: `state`, the folder in which runs stage, `""` to leave out whether it can hold an overlay's layers.
    """
    machine = os.uname().machine
    here = surroundings.look()
    root = here.root
    features = [
        Feature(name="surroundings", available=True, detail=here.told(), fix="", needed=False),
        Feature(
            name="architecture", available=machine == "x86_64", detail=machine, fix="use an x86_64 machine"
        ),
    ]
    if machine != "x86_64":
        return tuple(features)
    if root:
        features.append(
            Feature(
                name="root-capabilities",
                available=not here.lacking,
                detail=f"lacks {', '.join(here.lacking)}" if here.lacking else "all that root needs",
                fix=surroundings.capabilities_fix(here),
            )
        )
    with _desk(state) as desk:
        features.extend(_in_namespaces(here, desk))
    version = landlock.abi()
    features.append(
        Feature(
            name="landlock", available=version >= 6, detail=f"ABI {version}",
            fix="use Linux 6.12 or newer, booted with `landlock` in `lsm=`",
        )
    )  # fmt: skip
    features.append(
        Feature(
            name="seccomp", available=os.path.exists("/proc/sys/kernel/seccomp/actions_avail"),
            detail="system-call filter", fix="use a kernel with CONFIG_SECCOMP_FILTER",
        )
    )  # fmt: skip
    features.append(_file_events(root=root))
    group, missing = cgroup.make(Limits(memory_bytes=1 << 40))
    group.remove()
    by_limit = (
        "the process limit falls back to RLIMIT_NPROC" if not root else "root needs it for the process limit"
    )
    for controller, detail in (("pids", by_limit), ("memory", "needed for a memory limit only")):
        features.append(
            Feature(
                name=f"cgroup-{controller}",
                available=controller not in missing,
                detail=detail,
                fix=_CGROUP_FIX,
                needed=root and controller == "pids",
            )
        )
    return tuple(features)


def _in_namespaces(here: surroundings.Surroundings, desk: str) -> list[Feature]:
    root = here.root
    ready, go = os.pipe()
    answers, answer = os.pipe()
    uid, gid = os.geteuid(), os.getegid()

    def body() -> None:
        os.close(go)
        if root:
            os.read(ready, 1)
        else:
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{uid} {uid} 1"),
                ("gid_map", f"{gid} {gid} 1"),
            ):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                    file.write(text)
        results = [*(_attempt(one) for one in ("tmpfs", "overlay", "proc")), *_wire()]
        results.append(_layers(desk) if desk else "no state folder was given")
        results.insert(1, _attempt("root"))  # the last to be tried: nothing of the host is in sight after it
        os.write(answer, "\0".join(results).encode())
        os._exit(0)

    try:
        pid = launch(body)
    except BoundaryError as error:
        return [Feature(name="namespaces", available=False, detail=error.message, fix=error.hint)]
    finally:
        os.close(answer)
        os.close(ready)
    try:
        if root:
            map_all(pid)
        os.write(go, b"g")
    except OSError:
        pass
    os.close(go)
    text = b""
    while part := os.read(answers, 4096):
        text += part
    os.close(answers)
    os.waitpid(pid, 0)
    results = [*text.decode(errors="replace").split("\0"), *["no answer"] * 7][:7]
    names = (
        ("namespaces", surroundings.mounts_fix(here, surroundings.namespaces_fix(here))),
        ("new-root", surroundings.mounts_fix(here, "allow the system call pivot_root")),
        (
            "overlay",
            surroundings.mounts_fix(
                here, "load the `overlay` module; as an ordinary user use Linux 5.11 or newer"
            ),
        ),
        ("private-proc", surroundings.proc_fix(here, "mount /proc whole, with nothing over its parts")),
        ("nf_tables", "load nf_tables with NAT: modprobe nf_tables nft_nat nft_chain_nat"),
        (_V6, "boot without `ipv6.disable=1`; without IPv6 traffic is taken by IPv4 alone"),
        (
            _STAGING,
            "keep it on ext4, xfs, btrfs or tmpfs (in a container: a volume): INTERLOCK_STATE=DIR; "
            "elsewhere each run works on a full copy",
        ),
    )
    return [
        Feature(
            name=name, available=not result, detail=result or "works", fix=fix, needed=name not in _OPTIONAL
        )
        for (name, fix), result in zip(names, results, strict=True)
    ]


def _attempt(what: str) -> str:
    """Return why it does not work, or nothing."""
    try:
        kernel.make_mounts_private()
        if what == "proc":
            os.close(kernel.new_mount("proc", (), _QUIET))
            return ""
        desk = kernel.new_mount("tmpfs", (), _QUIET)
        if what == "root":
            kernel.attach(desk, b"/dev")
            kernel.enter_root(b"/dev")
        if what == "overlay":
            # The folder is in our own mount namespace: nobody else sees what lies on it.
            kernel.attach(desk, b"/dev")
            for name in ("lower", "upper", "work"):
                os.mkdir(name, dir_fd=desk)
            folders = [os.open(name, os.O_PATH, dir_fd=desk) for name in ("lower", "upper", "work")]
            _lay(folders)
    except OSError as error:
        return error.strerror or str(error)
    return ""


@contextlib.contextmanager
def _desk(state: str) -> Iterator[str]:
    """Make folders on the file system of the state folder; `""` where there is none, or nothing can be made there."""
    while state and not os.path.isdir(state):
        state = os.path.dirname(state)
    try:
        made = tempfile.TemporaryDirectory(prefix=".interlock-probe-", dir=state) if state else None
    except OSError:
        made = None
    if made is None:
        yield ""
        return
    with made as desk:
        for name in ("lower", "upper", "work"):
            os.mkdir(f"{desk}/{name}")
        yield desk


def _lay(folders: list[int]) -> None:
    """Lay an overlay as a run does. Takes: open lower, upper and work folder."""
    keys = ("lowerdir", "upperdir", "workdir")
    options = tuple((key, f"/proc/self/fd/{one}") for key, one in zip(keys, folders, strict=True))
    kernel.new_mount("overlay", (*options, "userxattr"), _QUIET)


def _layers(desk: str) -> str:
    """Return why no overlay can have its layers there, or nothing."""
    try:
        folders = [os.open(f"{desk}/{name}", os.O_PATH) for name in ("lower", "upper", "work")]
        _lay(folders)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _wire() -> tuple[str, str]:
    """Return why traffic, or that of IPv6, cannot be led to the monitor, or nothing."""
    try:
        wiring.raise_loopback()
        _, versions = wiring.wire(())
    except (OSError, BoundaryError) as error:
        reason = error.message if isinstance(error, BoundaryError) else str(error.strerror)
        return reason, reason
    return "", "" if "v6" in versions else versions


def _file_events(*, root: bool) -> Feature:
    fix = "run as root for file events; an ordinary user is confined as well, but reads are not recorded"
    if not root:
        return Feature(
            name="file-events", available=False, detail="fanotify needs root here", fix=fix, needed=False
        )
    if surroundings.lacking():
        fix = surroundings.capabilities_fix(surroundings.look())
    try:
        from interlock.boundary.activity import Watch
        from interlock.boundary.mounts import stage_overlay
        from interlock.boundary.plan import Overlay, SandboxPlan

        with tempfile.TemporaryDirectory(prefix="interlock-probe-") as base:
            paths = {name: f"{base}/{name}" for name in ("lower", "upper", "work")}
            for path in paths.values():
                os.mkdir(path)
            overlay = Overlay(
                name="probe",
                target=paths["lower"],
                lower=paths["lower"],
                upper=paths["upper"],
                work=paths["work"],
                observed=True,
            )
            plan = SandboxPlan(
                argv=(), environment={}, working_directory="/", home="/", overlays=(overlay,), scratch=base
            )
            mount, _ = stage_overlay(plan, 0, root=True)
            try:
                Watch(((overlay, mount),)).close()
            finally:
                os.close(mount)
    except (OSError, BoundaryError) as error:
        return Feature(name="file-events", available=False, detail=str(error), fix=fix)
    return Feature(name="file-events", available=True, detail="fanotify on the overlay", fix="", needed=False)
