"""What an attempt is: a small program that tries to get a word out past the boundary, by ordinary means of its platform.

Only the standard library: the same files run inside of Interlock and, as the control that gives an attempt its power, without.
"""

import contextlib
import json
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, fields

WAIT_S = 2.0
_FIRST_S = 0.5
_MORE_S = 0.1


@dataclass(frozen=True)
class Scene:
    """Takes: addresses of the host that is allowed, of the one that is not, and of what else lies outside."""

    allowed4: str
    allowed6: str
    evil4: str
    evil6: str
    resolver4: str
    host4: str
    unix: str
    token: str = ""

    @staticmethod
    def read(text: str, token: str) -> "Scene":
        """Return the scene that was written as JSON, with the word that is to get out."""
        values = json.loads(text)
        names = {one.name for one in fields(Scene)}
        return Scene(**{**{name: value for name, value in values.items() if name in names}, "token": token})


@dataclass(frozen=True)
class Attempt:
    """One way out. Takes: `control`, whether it can be shown to get through where there is no boundary."""

    name: str
    act: Callable[[Scene], object]
    control: bool = True


ATTEMPTS: dict[str, Attempt] = {}
Act = Callable[[Scene], object]


def attempt(name: str, *, control: bool = True) -> Callable[[Act], Act]:
    """Put a way out on the list."""

    def add(act: Act) -> Act:
        assert name not in ATTEMPTS, name
        ATTEMPTS[name] = Attempt(name, act, control)
        return act

    return add


def reach(host: str, port: int, family: int = 0) -> socket.socket:
    """Connect by TCP, to a name or an address."""
    if family:
        link = socket.socket(family)
        link.settimeout(WAIT_S)
        link.connect((host, port))
        return link
    return socket.create_connection((host, port), timeout=WAIT_S)


def say(link: socket.socket, data: bytes, turns: int = 1) -> str:
    """Send bytes and return what comes back."""
    heard = b""
    with link:
        link.sendall(data)
        with contextlib.suppress(TimeoutError):
            for turn in range(turns):
                link.settimeout(_MORE_S if turn else _FIRST_S)
                heard += link.recv(4000)
    return heard[:160].decode("latin-1")


def tls(link: socket.socket, sni: str | None, alpn: tuple[str, ...] = ()) -> ssl.SSLSocket:
    """Begin TLS with any name in the handshake, and trust whoever answers."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context.wrap_socket(link, server_hostname=sni)


def get(host: str, path: str, *fields: str, version: str = "1.1", method: str = "GET") -> bytes:
    """Return a request's bytes."""
    lines = [f"{method} {path} HTTP/{version}", *([f"Host: {host}"] if host else []), *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def run(*words: str, **environment: str) -> str:
    """Run a program and return the end of what it said."""
    import os

    done = subprocess.run(
        words, capture_output=True, timeout=6, check=False, env={**os.environ, **environment}
    )
    return f"exit {done.returncode} {(done.stdout + done.stderr)[-160:].decode('latin-1')}"


def question(name: bytes, kind: int = 1) -> bytes:
    """Return a DNS question; `name` with dots between its labels."""
    labels = b"".join(bytes([len(one)]) + one for one in name.split(b"."))
    return struct.pack("!HHHHHH", 4711, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def packet(address: str, port: int, data: bytes, kind: int = socket.SOCK_DGRAM, protocol: int = 0) -> str:
    """Send one packet and return what comes back."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind, protocol) as link:
        link.settimeout(0.1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        link.sendto(data, (address, port))
        try:
            return link.recv(300)[:80].decode("latin-1")
        except TimeoutError:
            return "sent, no answer"
