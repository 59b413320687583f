"""A small world of its own for the proxy benchmark: one far side with a name, TLS and an authority, and nothing else.

It lies in a network and a mount namespace: the far side's address is none of an interface, names are looked up in
DNS, and both the bare client and Interlock's monitor stand there.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.ground import Ground
from benchmarks.rows import NotRun

HOST = "far.test"
_ADDRESS = "203.0.113.10"
_PATIENCE_S = 180.0
"""For one answer of a client; one that hangs is ended, and its figure is not run."""
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_SETTLE = f"""
set -e
ip link set lo up
ip address add 192.0.2.1/32 dev lo
ip route add local {_ADDRESS}/32 dev lo src 192.0.2.1
mount --bind "$1/hosts" /etc/hosts
mount --bind "$1/resolv.conf" /etc/resolv.conf
shift
exec "$@"
"""


class Client:
    """The client program on one side, running until it is closed.

    Takes: `name`, of the side. Holds: `told`, records that whoever it runs behind printed meanwhile.
    """

    def __init__(self, name: str, words: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        self.name = name
        self.told: list[dict[str, float]] = []
        self._running = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        """Return the process that was started: Interlock's monitor, where the client runs behind it."""
        return self._running.pid

    def cpu_us(self) -> float:
        """Return the processor time that the process which was started has used so far."""
        with open(f"/proc/{self.pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")

    def ask(self, verb: str, *words: object) -> list[float]:
        """Let it measure. Returns: microseconds. Raises: NotRun, with what it said last."""
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        patience = threading.Timer(_PATIENCE_S, self._running.kill)
        patience.start()
        try:
            self._running.stdin.write(json.dumps([verb, *words]).encode() + b"\n")
            self._running.stdin.flush()
            line = self._running.stdout.readline()
            while line.startswith(b"{"):
                self.told.append(json.loads(line))
                line = self._running.stdout.readline()
        except OSError:
            line = b""
        finally:
            patience.cancel()
        if not line:
            raise NotRun(f"the {self.name} client is gone: {self._last_words()}")
        answer = json.loads(line)
        if isinstance(answer, str):
            raise NotRun(f"the {self.name} client could not {verb}: {answer[:300]}")
        assert isinstance(answer, list)
        return answer

    def _last_words(self) -> str:
        self._running.kill()
        said = self._running.communicate()[1].decode("utf-8", "replace").strip().splitlines()
        return said[-1][:300] if said else "no word of why"

    def close(self) -> tuple[int, bytes]:
        """End it, and whatever it ran behind; may be called again. Returns: exit status, last words."""
        said = b""
        if self._running.returncode is None:
            try:
                said = b"".join(self._running.communicate(timeout=60))
            except (subprocess.TimeoutExpired, OSError, ValueError):
                self._running.kill()
        return self._running.wait(), said


class World:
    """The world while it stands. Takes: `pid`, of the far side; `folder`, with its authority's certificate."""

    def __init__(self, at: Ground, folder: str, pid: int) -> None:
        self.at = at
        self.pid = pid
        self.folder = folder
        self.trust = os.path.join(folder, "authority.pem")

    def enter(self, words: Sequence[str], folder: str) -> list[str]:
        """Return the command that runs words within, as the ground's user."""
        become: list[str] = []
        if self.at.uid != os.geteuid():
            become = ["setpriv", f"--reuid={self.at.uid}", f"--regid={self.at.uid}", "--clear-groups"]
        spaces = [f"--net=/proc/{self.pid}/ns/net", f"--mount=/proc/{self.pid}/ns/mnt"]
        return ["nsenter", *spaces, f"--wd={folder}", *become, *words]

    def client(
        self, name: str, *before: str, trust: str = "", proxy: str = "", extra: Mapping[str, str] = {}
    ) -> Client:
        """Start the client program. Takes: `before`, words that it runs behind; `trust`, else the world's."""
        folder = self.at.workspace if before else self.at.bare
        program = os.path.join(folder, "proxy_client.py")
        words = [*before, self.at.interpreter, "-I", "-S", program, *((proxy,) if proxy else ())]
        environment = {**self.at.environment(), "SSL_CERT_FILE": trust or self.trust, **extra}
        return Client(name, self.enter(words, folder), environment, folder)

    def policy(self) -> str:
        """Write the policy that names the far side, and return its path."""
        path = os.path.join(self.at.base, "policy.yaml")
        hosts = [{"host": HOST, "methods": ["*"], "clearance": "internal"}]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "preset": "coding", "network": {"hosts": hosts}}, file)
        os.chmod(path, 0o644)
        return path

    def inside(self) -> Client:
        """Start the client program behind the boundary."""
        options = ("--policy", self.policy(), "--oracle", "strict")
        return self.client("interlock", *self.at.cli, "run", *options, "--")


@contextlib.contextmanager
def world(at: Ground) -> Iterator[World]:
    """Make the world on a ground, and end it.

    Raises: NotRun, where this machine has no namespaces for it.
    """
    if os.geteuid() != 0:
        raise NotRun("needs root, for a network namespace of its own: sudo make bench")
    for name in ("ip", "unshare", "nsenter", "setpriv", "mount"):
        if shutil.which(name) is None:
            raise NotRun(f"no {name} here (Debian: apt-get install iproute2 util-linux mount)")
    folder = os.path.join(at.base, "world")
    os.makedirs(folder, exist_ok=True)
    for name, text in (("hosts", "127.0.0.1 localhost\n"), ("resolv.conf", f"nameserver {_ADDRESS}\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    certify(folder)
    for side in at.sides:
        shutil.copy(os.path.join(_FOLDER, "proxy_client.py"), side)
    at.give(*at.sides)
    server = [sys.executable, "-I", "-S", os.path.join(_FOLDER, "proxy_server.py")]
    words = ["unshare", "--net", "--mount", "--propagation=private", "sh", "-c", _SETTLE, "sh", folder]
    far = subprocess.Popen(
        [*words, *server, _ADDRESS, os.path.join(folder, "leaf.pem")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert far.stdout is not None
        if far.stdout.readline() != b"ready\n":
            assert far.stderr is not None
            said = far.stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise NotRun(f"the far side did not start: {(said or ['no word of why'])[-1][:300]}")
        yield World(at, folder, far.pid)
    finally:
        far.kill()
        far.communicate()


def certify(folder: str) -> None:
    """Write an authority's certificate, and the far side's own with its key, as PEM files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in ("benchmark authority", HOST)
    ]
    pem = serialization.Encoding.PEM
    for place, (name, key) in enumerate(zip(names, keys, strict=True)):
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + 30 * day)
            .add_extension(x509.BasicConstraints(ca=not place, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
            .sign(keys[0], hashes.SHA256())
        )
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        with open(os.path.join(folder, ("authority.pem", "leaf.pem")[place]), "wb") as file:
            file.write(made.public_bytes(pem) + (private if place else b""))
