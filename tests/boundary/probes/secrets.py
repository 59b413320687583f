"""Attacks on what must not be read: keys, other homes, the system's secrets, Interlock's own state."""

import ctypes
import os

from tests.boundary.probes.entry import NotRun, Scene, Stopped, call, probe

HOME_SECRETS = (
    ".ssh/id_ed25519", ".aws/credentials", ".config/gcloud/credentials.db", ".azure/msal_token_cache.json",
    ".kube/config", ".docker/config.json", ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".config/gh/hosts.yml",
    ".gnupg/private-keys-v1.d/key", ".claude/.credentials.json", ".codex/auth.json", ".bash_history",
    ".mozilla/firefox/cookies.sqlite", ".local/share/keyrings/login.keyring", ".password-store/mail.gpg",
    ".local/state/interlock/runs/r1/ledger/nodes/00000000.jsonl", ".config/interlock/keys/seed",
)  # fmt: skip
"""Laid out in the probe's home, readable by mode: only hiding them protects them."""

OTHER_SECRETS = ("another home", "the run's upper layer", "the run's ledger", "a hidden file of the workspace",
                 "a log of the host", "a private file of root")  # fmt: skip


def _read(scene: Scene, path: str) -> str:
    with open(path, "rb") as file:
        if scene.token.encode() in file.read():
            return "the secret was read"
    raise Stopped("empty")


def _enter() -> None:
    for label in (*(f"~/{path}" for path in HOME_SECRETS), *OTHER_SECRETS):

        def read(scene: Scene, label: str = label) -> str:
            if label not in scene.secrets:
                raise NotRun(f"needs root to lay out {label}")
            return _read(scene, scene.secrets[label])

        probe(f"read {label}", "secrets of the user", stops="ENOENT|EACCES|empty|EPERM")(read)


_enter()


def _ssh(scene: Scene) -> str:
    return scene.secrets["~/.ssh/id_ed25519"]


@probe("read a key through the process's own root link", "masks", stops="ENOENT|EACCES")
def _(scene: Scene) -> str:
    return _read(scene, f"/proc/self/root{_ssh(scene)}")


@probe("read a key by climbing from the workspace", "masks", stops="ENOENT|EACCES")
def _(scene: Scene) -> str:
    os.chdir(scene.workspace)
    return _read(scene, "../" * 40 + _ssh(scene).lstrip("/"))


@probe("read a key through a link in the workspace", "masks", stops="ENOENT|EACCES")
def _(scene: Scene) -> str:
    os.symlink(_ssh(scene), scene.aim("workspace", "link"))
    return _read(scene, scene.aim("workspace", "link"))


@probe("read a key through a hard link", "masks", stops="ENOENT|EXDEV|EACCES|EPERM")
def _(scene: Scene) -> str:
    os.link(_ssh(scene), scene.aim("workspace", "link"))
    return _read(scene, scene.aim("workspace", "link"))


@probe("move a key's folder from under its mask", "masks", stops="EBUSY|ENOENT|EACCES|EPERM|EXDEV|EROFS")
def _(scene: Scene) -> str:
    os.rename(f"{scene.home}/.aws", f"{scene.home}/aws-moved")
    try:
        return _read(scene, f"{scene.home}/aws-moved/credentials")
    finally:
        os.rename(f"{scene.home}/aws-moved", f"{scene.home}/.aws")


@probe("delete a mask", "masks", stops="EBUSY|EROFS|ENOENT|EACCES|EPERM")
def _(scene: Scene) -> str:
    os.unlink(f"{scene.home}/.netrc")
    return "the mask is gone"


@probe("exchange a mask with another file", "masks", stops="EBUSY|EXDEV|ENOENT|EROFS|EACCES|EPERM|EINVAL")
def _(scene: Scene) -> str:
    own = scene.aim("home", "own")
    with open(own, "w") as file:
        file.write("own")
    call(316, -100, os.fsencode(own), -100, os.fsencode(f"{scene.home}/.pypirc"), 2)
    try:
        return _read(scene, own)
    finally:
        call(316, -100, os.fsencode(own), -100, os.fsencode(f"{scene.home}/.pypirc"), 2)


@probe("find the run's folders beside the workspace", "the run's own folders", stops="ENOENT|EACCES|empty")
def _(scene: Scene) -> str:
    parent = os.open("..", os.O_RDONLY, dir_fd=os.open(scene.workspace, os.O_RDONLY))
    if os.listdir(os.open("run", os.O_RDONLY, dir_fd=parent)):
        return "the run's folder was listed"
    raise Stopped("empty")


@probe("find the host's paths in the mount table", "the run's own folders", stops="not named")
def _(scene: Scene) -> str:
    with open("/proc/self/mountinfo") as file:
        text = file.read()
    if not scene.world.startswith("sandbox"):
        text += scene.base + "/run"  # no table of ours is there to look into
    if f"{scene.base}/run" in text.replace("\\040", " "):
        return "the run's folders are named"
    raise Stopped("not named")


def _enter_system() -> None:
    for path in (
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/ssh/ssh_host_ed25519_key",
        "/etc/ssl/private",
    ):

        def read(_: Scene, path: str = path) -> str:
            if os.path.isdir(path):
                if os.listdir(path):
                    return "it was listed"
                raise Stopped("empty")
            with open(path, "rb") as file:
                if file.read(16):
                    return "it was read"
            raise Stopped("empty")

        probe(f"read {path}", "the system's secrets", stops="ENOENT|EACCES|empty|EPERM")(read)


_enter_system()


@probe("list the home of root", "other homes", stops="empty|EACCES|ENOENT")
def _(scene: Scene) -> str:
    if scene.home == "/root":
        raise NotRun("it is the home")
    if os.listdir("/root"):
        return "it was listed"
    raise Stopped("empty")


@probe("list the host's logs", "logs and mail", stops="empty|EACCES|ENOENT")
def _(_scene: Scene) -> str:
    if os.listdir("/var/log"):
        return "they were listed"
    raise Stopped("empty")


@probe("find the secret in its own environment", "secrets of the environment", stops="not there")
def _(_scene: Scene) -> str:
    if "INTERLOCK_PROBE_TOKEN" in os.environ:
        return "the monitor's environment was inherited"
    raise Stopped("not there")


@probe("find the secret in its own memory", "what the monitor left in memory", stops="not there")
def _(scene: Scene) -> str:
    # The stack still holds what exec was given; nothing of the monitor's may be there.
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    place = libc.getauxval(31)  # AT_EXECFN: the end of the strings of exec
    needle = b"INTERLOCK_PROBE_" + b"TOKEN="
    with open("/proc/self/maps") as file:
        start, end = next(
            (int(part, 16) for part in line.split()[0].split("-")) for line in file if "[stack]" in line
        )
    if start <= place < end and needle in ctypes.string_at(place - 8192, end - place + 8192):
        return "it was found"
    raise Stopped("not there")
