"""What this kernel lets this user do: tried in a child that leaves nothing behind."""

import os
import tempfile

from interlock.boundary import cgroup, kernel, landlock
from interlock.boundary.launch import NAMESPACES_FIX, launch, map_all
from interlock.boundary.net import wiring
from interlock.boundary.plan import Feature, Limits
from interlock.model.errors import BoundaryError

_QUIET = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
_V6 = "ipv6"
_CGROUP_FIX = "make /sys/fs/cgroup writable, or delegate a cgroup to this user (systemd: Delegate=yes)"


def probe() -> tuple[Feature, ...]:
    """Try each thing that the boundary needs, quickly and without a trace."""
    machine = os.uname().machine
    root = os.geteuid() == 0
    features = [
        Feature(
            name="architecture", available=machine == "x86_64", detail=machine, fix="use an x86_64 machine"
        )
    ]
    if machine != "x86_64":
        return tuple(features)
    features.extend(_in_namespaces(root=root))
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


def _in_namespaces(*, root: bool) -> list[Feature]:
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
    results = [*text.decode(errors="replace").split("\0"), *["no answer"] * 5][:5]
    names = (
        ("namespaces", NAMESPACES_FIX),
        ("overlay", "load the `overlay` module; as an ordinary user use Linux 5.11 or newer"),
        ("private-proc", "in a container, unmask /proc (docker: --security-opt systempaths=unconfined)"),
        ("nf_tables", "load nf_tables with NAT: modprobe nf_tables nft_nat nft_chain_nat"),
        (_V6, "boot without `ipv6.disable=1`; without IPv6 traffic is taken by IPv4 alone"),
    )
    return [
        Feature(name=name, available=not result, detail=result or "works", fix=fix, needed=name != _V6)
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
        if what == "overlay":
            # The folder is in our own mount namespace: nobody else sees what lies on it.
            kernel.attach(desk, b"/dev")
            for name in ("lower", "upper", "work"):
                os.mkdir(name, dir_fd=desk)
            folders = [os.open(name, os.O_PATH, dir_fd=desk) for name in ("lower", "upper", "work")]
            keys = ("lowerdir", "upperdir", "workdir")
            options = tuple((key, f"/proc/self/fd/{one}") for key, one in zip(keys, folders, strict=True))
            kernel.new_mount("overlay", (*options, "userxattr"), _QUIET)
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
