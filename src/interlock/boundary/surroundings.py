"""What stands around us that may refuse namespaces and mounts, and the step that lets us have them.

Read from /proc alone, so that it costs little and can be asked after a failure.
Source: ours; user_namespaces(7), proc_pid_status(5); Docker's and Podman's default profiles, by experiment.
"""

import errno
import os

from interlock.model.records import dataclass

_NEEDED = (("SYS_ADMIN", 21), ("DAC_READ_SEARCH", 2))
"""What root's own mounts and file events need of the capabilities that a container drops."""
_ALL_IDS = ["0", "0", "4294967295"]
_MAX_TEXT = 1 << 20
_AS_USER = "run Interlock as an ordinary user, who needs no capability (docker run --user 1000)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What could be read of the place that we run in.

    Takes: `root`, whether we stand as root: user 0 of the machine, not of a user namespace (a rootless container's);
    `container`, its kind, `""` where none shows; `lacking`, capabilities that root has not got here; `filtered`,
    whether a system-call filter is on us; `profile`, of AppArmor, `""` for none; `masked`, paths of /proc that
    something is mounted over; `user_namespaces`, how many there may be, -1 where unknown; `forbidden`, names of
    settings that keep them from ordinary users; `windows`, whether the kernel is that of WSL.
    """

    root: bool
    container: str = ""
    lacking: tuple[str, ...] = ()
    filtered: bool = False
    profile: str = ""
    masked: tuple[str, ...] = ()
    user_namespaces: int = -1
    forbidden: tuple[str, ...] = ()
    windows: bool = False

    def told(self) -> str:
        """Return one line for the user."""
        parts = [self.container or "no container seen", "root" if self.root else "an ordinary user"]
        if self.root and self.lacking:
            parts.append("without " + " and ".join(self.lacking))
        if self.filtered:
            parts.append("under a system-call filter")
        if self.profile:
            parts.append(f"under the AppArmor profile {self.profile}")
        if self.masked:
            parts.append("parts of /proc covered")
        if self.windows:
            parts.append("WSL")
        return ", ".join(parts)


def look(base: str = "") -> Surroundings:
    """Read what there is. Takes: `base`, a folder that stands for `/`, for tests."""
    status = _fields(_read(f"{base}/proc/self/status"))
    settings = {
        "kernel.unprivileged_userns_clone": "0",
        "kernel.apparmor_restrict_unprivileged_userns": "1",
    }
    count = _read(f"{base}/proc/sys/user/max_user_namespaces").strip()
    profile = _read(f"{base}/proc/self/attr/current").strip("\0\n ")
    return Surroundings(
        root=stands_as_root(base),
        container=_container(base),
        lacking=_lacking(status),
        filtered=status.get("Seccomp", "0") == "2",
        profile="" if profile in ("", "unconfined") else profile.split(" ", 1)[0],
        masked=_masked(_read(f"{base}/proc/self/mountinfo")),
        user_namespaces=int(count) if count.isdigit() else -1,
        forbidden=tuple(
            name
            for name, bad in settings.items()
            if _read(f"{base}/proc/sys/{name.replace('.', '/')}").strip() == bad
        ),
        windows="microsoft" in _read(f"{base}/proc/version").lower(),
    )


def stands_as_root(base: str = "") -> bool:
    """Say whether we are the machine's root; user 0 of a user namespace is an ordinary user to the kernel's mounts."""
    return os.geteuid() == 0 and _read(f"{base}/proc/self/uid_map").split() in ([], _ALL_IDS)


def limits_bind() -> bool:
    """Say whether the kernel's limit on a user's processes binds us: it does not bind user 0 of the machine."""
    return os.geteuid() != 0 or _read("/proc/self/uid_map").split()[:2] != ["0", "0"]


def lacking() -> tuple[str, ...]:
    """Return the capabilities that root needs and this process has not got."""
    return _lacking(_fields(_read("/proc/self/status")))


def container_run(here: Surroundings) -> str:
    """Return how a container is started so that all which stands in the way here is gone."""
    tool = "podman" if "Podman" in here.container else "docker"
    flags = ["--security-opt seccomp=unconfined"] if here.filtered else []
    flags += ["--security-opt apparmor=unconfined"] if here.profile else []
    if here.masked:
        flags.append(f"--security-opt {'unmask=ALL' if tool == 'podman' else 'systempaths=unconfined'}")
    flags += [f"--cap-add {name}" for name in here.lacking if here.root]
    return " ".join([tool, "run", *flags])


def capabilities_fix(here: Surroundings) -> str:
    """Return how root gets the capabilities it lacks, or does without."""
    return f"{container_run(here)}; or {_AS_USER}"


def namespaces_fix(here: Surroundings) -> str:
    """Return how new namespaces can be had here."""
    if here.user_namespaces == 0:
        where = " on the container's host" if here.container else ""
        return f"sysctl -w user.max_user_namespaces=10000{where}: it is 0 here"
    if here.filtered:
        return f"a system-call filter is on this process and refuses them: {container_run(here)}"
    if here.forbidden and not here.root:
        name = here.forbidden[0]
        value = "1" if name.endswith("clone") else "0"
        return f"sysctl -w {name}={value}; or run as root"
    if here.profile:
        return f"the AppArmor profile `{here.profile}` may refuse them: {container_run(here)}"
    return (
        "allow user namespaces: sysctl user.max_user_namespaces > 0, kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0; in a chroot, run outside of it"
    )


def mounts_fix(here: Surroundings, otherwise: str) -> str:
    """Return how mounts can be had here, where new namespaces can. Takes: `otherwise`, what to say if nothing shows."""
    if here.filtered:
        return f"a system-call filter is on this process and refuses mounts: {container_run(here)}"
    if not here.root and here.forbidden:
        return namespaces_fix(here)
    if here.profile:
        return f"the AppArmor profile `{here.profile}` refuses mounts: {container_run(here)}"
    return otherwise


def proc_fix(here: Surroundings, otherwise: str) -> str:
    """Return how a /proc of the sandbox's own can be had here."""
    if here.masked:
        shown = ", ".join(here.masked[:3])
        return f"the kernel gives no new /proc while parts of this one are covered ({shown}): {container_run(here)}"
    return mounts_fix(here, otherwise)


def start_fix(error: OSError) -> str:
    """Return the next step after a start that failed."""
    if error.errno not in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        return "run `interlock doctor`"
    here = look()
    if "proc" in (error.strerror or ""):
        return proc_fix(here, "run `interlock doctor`")
    return mounts_fix(here, "run `interlock doctor`")


def _lacking(status: dict[str, str]) -> tuple[str, ...]:
    if "CapEff" not in status:
        return ()
    held = int(status["CapEff"], 16)
    return tuple(name for name, number in _NEEDED if not held >> number & 1)


def _container(base: str) -> str:
    if os.path.exists(f"{base}/.dockerenv"):
        return "a Docker container"
    if os.path.exists(f"{base}/run/.containerenv"):
        return "a Podman container"
    kind = os.environ.get("container", "")  # noqa: SIM112 - systemd's word
    if kind.isalnum():
        return f"a container ({kind})"
    return "a Kubernetes pod" if "KUBERNETES_SERVICE_HOST" in os.environ else ""


def _masked(mounts: str) -> tuple[str, ...]:
    """Return what is mounted below /proc: read-only parts of it count too, the kernel wants all of it in sight."""
    points = [line.split(" ", 5)[4] for line in mounts.splitlines() if line.count(" ") > 5]
    # systemd's own automount, at an empty folder, covers nothing.
    return tuple(
        sorted({one for one in points if one.startswith("/proc/") and one != "/proc/sys/fs/binfmt_misc"})
    )


def _fields(text: str) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_TEXT)
    except OSError:
        return ""
