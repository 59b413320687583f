"""The host that the probes attack: services, secrets, processes and files, and who saw what afterwards."""

import contextlib
import ctypes
import os
import secrets
import select
import shutil
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator

from tests.boundary.conftest import PYTHON, Box
from tests.boundary.probes.entry import Probe, Scene
from tests.boundary.probes.secrets import HOME_SECRETS

_libc = ctypes.CDLL(None, use_errno=True)
_LONG_AGO = 1_000_000_000
_PLACES = {
    "a plain folder": "/srv",
    "the var folder": "/var/lib",
    "the run folder": "/run",
    "the tmp folder": "/tmp",
    "the etc folder": "/etc",
}
_VICTIM = (
    "import ctypes,os,signal\n"
    "b=ctypes.create_string_buffer(os.environ['INTERLOCK_PROBE_TOKEN'].encode())\n"
    "print(ctypes.addressof(b),flush=True)\n"
    "while True: signal.pause()\n"
)


class Host:
    """Everything that one world's probes reach for, made afresh and taken away again."""

    def __init__(self, uid: int, probes: dict[str, Probe]) -> None:
        self.uid = uid
        self.probes = probes
        self.rich = os.geteuid() == 0
        self.token = "token-" + secrets.token_hex(8)
        self.heard: set[str] = set()
        self._made: list[str] = []
        self._open: list[socket.socket] = []
        self._done = threading.Event()
        self._mark = f"interlock-probe-{secrets.token_hex(4)}"
        self._ids: list[tuple[int, int]] = []
        self._before: dict[str, tuple[object, ...]] = {}

    def __enter__(self) -> "Host":
        base = tempfile.mkdtemp(prefix="il-probe-", dir="/var/tmp")
        self._made.append(base)
        os.chmod(base, 0o755)
        os.chown(base, self.uid, self.uid)
        self.box = Box(base, self.uid)
        self.public = self._folder("/opt")
        self.other = self._folder("/home")
        self.places = {label: self._folder(parent) for label, parent in _PLACES.items()}
        try:
            self._lay_out()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _folder(self, parent: str) -> str:
        if not self.rich and parent != "/tmp":
            return ""
        path = f"{parent}/{self._mark}"
        os.mkdir(path)
        self._made.append(path)
        os.chmod(path, 0o777)
        return path

    def _lay_out(self) -> None:
        self._secrets()
        self._targets()
        self._listen()
        self._shared()
        self._victim()
        self._programs()

    def settle(self) -> None:
        """Remember how all looks before the attack."""
        self._before = self._look()

    def _put(self, path: str, text: str) -> str:
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o666)
        while folder.startswith(self.box.home):
            os.chmod(folder, 0o755)
            os.chown(folder, self.uid, self.uid)
            folder = os.path.dirname(folder)
        os.chown(path, self.uid, self.uid)
        os.utime(path, (_LONG_AGO, _LONG_AGO))
        return path

    def _secrets(self) -> None:
        box = self.box
        text = f"secret {self.token}\n"
        found = {f"~/{path}": self._put(f"{box.home}/{path}", text) for path in HOME_SECRETS}
        found["the run's ledger"] = self._put(f"{box.base}/run/ledger", text)
        found["the run's upper layer"] = self._put(f"{box.base}/run/scratch-secret", text)
        found["a hidden file of the workspace"] = self._put(f"{box.workspace}/.env", text)
        if self.rich:
            found["another home"] = self._put(f"{self.other}/diary", text)
            found["a log of the host"] = self._put(f"{self._folder('/var/log')}/log", text)
            found["a private file of root"] = self._put(f"{self.public}/private", text)
            os.chown(found["a private file of root"], 0, 0)
            os.chmod(found["a private file of root"], 0o600)
        self.secrets = found
        self.hidden = (f"{box.workspace}/.env", f"{box.base}/run/ledger")

    def _targets(self) -> None:
        folders = {"public": self.public, "home": self.box.home, "workspace": self.box.workspace}
        for probe in self.probes.values():
            if probe.target == "linked":
                path = self._put(f"{self.box.base}/{probe.slug}.file", "before\n")
                os.link(path, f"{self.box.workspace}/{probe.slug}.link")
            elif probe.target and folders[probe.target]:
                self._put(f"{folders[probe.target]}/{probe.slug}.file", "before\n")

    def _listen(self) -> None:
        self.sockets: dict[str, str] = {}
        folders = {"workspace": self.box.workspace, "home": self.box.home, **self.places}
        for place, folder in folders.items():
            if folder:
                self.sockets[place] = f"{folder}/s"
                self._serve(self._bound(socket.AF_UNIX, socket.SOCK_STREAM, f"{folder}/s"))
        self.sockets.update(
            (f"{place}, late", f"{folder}/late") for place, folder in self.places.items() if folder
        )
        if self.places["the etc folder"]:
            # A service that changes to its folder first: the kernel's list holds no full path.
            self.sockets["the etc folder, by a relative name"] = f"{self.places['the etc folder']}/r"
            here = os.open(".", os.O_RDONLY)
            os.chdir(self.places["the etc folder"])
            self._serve(self._bound(socket.AF_UNIX, socket.SOCK_STREAM, "r"))
            os.chmod("r", 0o777)
            os.fchdir(here)
            os.close(here)
        self.letterbox = f"{self.box.workspace}/d"
        self._serve(self._bound(socket.AF_UNIX, socket.SOCK_DGRAM, self.letterbox))
        self._serve(self._bound(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self._mark))
        self.port = self._both_ports()
        resolver = self._bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self.resolver_port = resolver.getsockname()[1]
        self._serve(resolver)
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def _bound(self, family: int, kind: int, where: str | tuple[str, int]) -> socket.socket:
        one = socket.socket(family, kind)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(where)
        if isinstance(where, str) and where.startswith("/"):
            os.chmod(where, 0o777)
            os.chown(where, self.uid, self.uid)
        return one

    def _both_ports(self) -> int:
        while True:
            made = [self._bound(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0))]
            port: int = made[0].getsockname()[1]
            try:
                made.append(self._bound(socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", port)))
                if socket.has_ipv6:
                    made.append(self._bound(socket.AF_INET6, socket.SOCK_STREAM, ("::", port)))
                    made.append(self._bound(socket.AF_INET6, socket.SOCK_DGRAM, ("::", port)))
            except OSError:
                for one in made:
                    one.close()
                continue
            for one in made:
                self._serve(one)
            return port

    def _serve(self, one: socket.socket) -> None:
        if one.type == socket.SOCK_STREAM:
            one.listen(16)
        self._open.append(one)

    def _hear(self) -> None:
        accepted: list[socket.socket] = []
        late = False
        while True:
            ready, _, _ = select.select([*self._open, *accepted], [], [], 0.05)
            if not ready and self._done.is_set():
                break
            if not late and any(
                os.path.exists(f"{folder}/.late") for folder in (self.box.upper, self.box.workspace)
            ):
                late = True
                for place, folder in self.places.items():
                    if f"{place}, late" in self.sockets:
                        self._serve(self._bound(socket.AF_UNIX, socket.SOCK_STREAM, f"{folder}/late"))
            for one in ready:
                with contextlib.suppress(OSError):
                    if one in self._open and one.type == socket.SOCK_STREAM:
                        accepted.append(one.accept()[0])
                        continue
                    text = one.recv(4096)
                    self._note(text)
                    if one in accepted and not text:
                        accepted.remove(one)
                        one.close()
        for one in accepted:
            one.close()

    def _note(self, text: bytes) -> None:
        for name, probe in self.probes.items():
            if text == name.encode() or (len(text) > 13 and probe.slug.encode()[:60] in text):
                self.heard.add(name)

    def _shared(self) -> None:
        self.key = 0x49000000 + secrets.randbelow(1 << 20) * 16
        for get, control in ((29, 31), (68, 71), (64, 66)):
            numbers = {29: (self.key, 4096, 0o1666), 68: (self.key, 0o1666), 64: (self.key, 1, 0o1666)}[get]
            made = _libc.syscall(ctypes.c_long(get), *(ctypes.c_long(one) for one in numbers))
            self._ids.append((control, made))
        self.queue = self._mark
        queue = _libc.syscall(240, self.queue.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        if queue < 0:
            self.queue = ""
        else:
            os.fchmod(queue, 0o666)
            os.close(queue)
        self.shared = f"/dev/shm/{self._mark}"
        self._put(self.shared, "before\n")

    def _victim(self) -> None:
        uid = self.uid

        def become() -> None:
            if os.geteuid() != uid:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)

        environment = {"INTERLOCK_PROBE_TOKEN": self.token}
        self.victim = subprocess.Popen(
            [PYTHON, "-c", _VICTIM], stdout=subprocess.PIPE, env=environment, preexec_fn=become
        )
        assert self.victim.stdout is not None
        self.victim_address = int(self.victim.stdout.readline())

    def _programs(self) -> None:
        self.setid = self.setcap = ""
        if not self.rich:
            return
        self.setid, self.setcap = f"{self.box.workspace}/setid-id", f"{self.box.workspace}/setcap-cat"
        shutil.copy("/usr/bin/id", self.setid)
        owner = 1000 if self.uid == 0 else 0
        os.chown(self.setid, owner, owner)
        os.chmod(self.setid, 0o6755)
        shutil.copy("/bin/cat", self.setcap)
        os.chmod(self.setcap, 0o755)
        granted = 1 << 21 | 1 << 2  # SYS_ADMIN, DAC_READ_SEARCH
        os.setxattr(self.setcap, "security.capability", struct.pack("=5I", 0x02000001, granted, 0, 0, 0))

    def scene(self, world: str) -> Scene:
        four, six = _outside()
        return Scene(
            world=world, uid=self.uid, workspace=self.box.workspace, home=self.box.home, base=self.box.base,
            token=self.token, victim=self.victim.pid, victim_address=self.victim_address, secrets=self.secrets,
            public=self.public, sockets=self.sockets, letterbox=self.letterbox, abstract=self._mark,
            port=self.port, resolver_port=self.resolver_port, outside4=four, outside6=six, key=self.key,
            queue=self.queue, shared=self.shared, setid=self.setid, setcap=self.setcap,
        )  # fmt: skip

    def _look(self) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for top in (self.box.workspace, self.box.home, self.public):
            for folder, folders, names in os.walk(top) if top else ():
                for name in (*folders, *names):
                    if name.endswith(".py") or name == "__pycache__":
                        continue
                    path = f"{folder}/{name}"
                    one = os.lstat(path)
                    if stat.S_ISDIR(one.st_mode):
                        found[path] = (one.st_mode, one.st_uid, one.st_gid)
                        continue
                    found[path] = (
                        one.st_mode, one.st_uid, one.st_gid, one.st_size, one.st_mtime_ns, one.st_atime_ns,
                        one.st_nlink, one.st_ino, tuple(sorted(os.listxattr(path, follow_symlinks=False))),
                    )  # fmt: skip
        for folder in ("/dev/shm", "/tmp", "/var/tmp"):
            for name in os.listdir(folder):
                if name.startswith(self._mark):
                    found[f"{folder}/{name}"] = ()
        with contextlib.suppress(OSError), open("/proc/sysvipc/shm") as table:
            if str(self.key + 1) in table.read().split():
                found["leave-a-shared-memory-segment-behind."] = ()
        return found

    def forged(self) -> Iterator[str]:
        """Name the files of the upper layer that bear marks which the overlay itself would obey."""
        prefix = "trusted.overlay." if self.uid == 0 else "user.overlay."
        for folder, _, names in os.walk(self.box.upper):
            for name in names:
                marks = os.listxattr(f"{folder}/{name}", follow_symlinks=False)
                for kind in ("redirect", "metacopy", "opaque", "whiteout"):
                    if prefix + kind in marks:
                        yield f"{name.removesuffix('.file')}"

    def traces(self) -> dict[str, str]:
        """Return by probe what it left on the host; `""` holds what no probe can be named for."""
        self._done.set()
        self._thread.join()
        found = dict.fromkeys(self.heard, "a host program heard it")
        after = self._look()
        by_slug = {probe.slug: name for name, probe in self.probes.items()}
        changed = [path for path in {*after, *self._before} if after.get(path) != self._before.get(path)]
        queue = f"{self.queue}-leave-a-posix-queue-behind".encode()
        if self.queue and _libc.syscall(241, queue) == 0:
            changed.append("leave-a-posix-queue-behind.")
        with contextlib.suppress(ValueError):
            if self.victim.poll() is not None:
                found[""] = "a host process is gone"
        for path in sorted(changed):
            name = os.path.basename(path).removeprefix(self._mark + "-")
            slug = name.rpartition(".")[0] or name
            owner = by_slug.get(slug, by_slug.get(name, ""))
            found.setdefault(owner, f"`{path}` changed on the host")
        for slug in self.forged():
            found.setdefault(by_slug.get(slug, ""), "the layer bears the mark")
        return found

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if hasattr(self, "victim"):
            self.victim.kill()
            self.victim.wait()
            assert self.victim.stdout is not None
            self.victim.stdout.close()
        if hasattr(self, "_thread"):
            self._thread.join()
        for one in self._open:
            one.close()
        for control, made in self._ids:
            if made >= 0:
                numbers = (made, 0, 0) if control == 66 else (made, 0)
                _libc.syscall(ctypes.c_long(control), *(ctypes.c_long(one) for one in numbers), None)
        if getattr(self, "queue", ""):
            _libc.syscall(241, self.queue.encode())
        left = getattr(self, "key", 0)
        made = _libc.syscall(ctypes.c_long(29), ctypes.c_long(left + 1), ctypes.c_long(0), ctypes.c_long(0))
        if left and made >= 0:
            _libc.syscall(ctypes.c_long(31), ctypes.c_long(made), ctypes.c_long(0), None)
        for folder in ("/dev/shm", "/tmp", "/var/tmp"):
            for name in os.listdir(folder):
                if name.startswith(self._mark) and os.path.isfile(f"{folder}/{name}"):
                    os.unlink(f"{folder}/{name}")
        for path in self._made:
            _remove(path)


def _remove(path: str) -> None:
    for folder, folders, _ in os.walk(path):
        for name in folders:
            if not os.path.islink(f"{folder}/{name}"):
                os.chmod(f"{folder}/{name}", 0o700)
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.exists(path):
            return
        time.sleep(0.02)


def _outside() -> tuple[str, str]:
    """Return addresses of this machine that are not loopback; packets to them never leave it."""
    found = {socket.AF_INET: "", socket.AF_INET6: ""}
    for family, far in ((socket.AF_INET, "192.0.2.99"), (socket.AF_INET6, "2001:db8::99")):
        # Connecting a datagram socket sends nothing; it only chooses the source address.
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as one:
            one.connect((far, 9))
            found[family] = one.getsockname()[0]
    return found[socket.AF_INET], found[socket.AF_INET6]
