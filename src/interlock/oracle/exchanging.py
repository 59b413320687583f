"""One bounded HTTP exchange with a service that the user named: an engine, or a desk.

Only what the user wrote is dialled: no redirect is followed, no proxy of the environment is used, and TLS is checked
against the system's authorities. Whole deadline, bounded body, one connection an exchange. The standard library alone,
so that these oracles need no extra.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import ip_address
from threading import Timer
from urllib.parse import urlsplit

from interlock.model.errors import InputError
from interlock.model.records import dataclass

BODY_BYTES = 1 << 20
_HOST = 253


class ServiceError(InputError):
    """A service that an oracle asks gave no usable answer. Holds: the message holds nothing that it sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a service is. Takes: `target`, its path, absolute; `tls`, whether it is spoken to over TLS."""

    host: str
    port: int
    target: str
    tls: bool

    @property
    def authority(self) -> str:
        """Return host and port as a `Host` field has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    def below(self, name: str) -> Address:
        """Return the address of a resource below this one."""
        return Address(
            host=self.host, port=self.port, target=f"{self.target.rstrip('/')}/{name}", tls=self.tls
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What came back. Takes: `body`, at most so many bytes as were asked for."""

    status: int
    content_type: str
    body: bytes


def address_of(url: str, *, what: str) -> Address:
    """Read the URL of a service.

    Takes: `what`, what it is of, for messages.
    Raises: InputError, for one that is no plain URL, holds a key, or would be spoken to in the clear over a network.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InputError(f"the URL of {what} holds characters that no URL has", hint="write it in ASCII")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
    except ValueError:
        raise InputError(f"the URL of {what} cannot be read", hint="as in https://host:8181/path") from None
    if parts.scheme not in {"http", "https"} or not host or len(host) > _HOST:
        raise InputError(
            f"the URL of {what} is none of `https` or `http`", hint="as in https://host:8181/path"
        )
    if parts.username is not None or parts.password is not None:
        raise InputError(
            f"the URL of {what} holds a user or a password", hint="leave it out: it would be recorded"
        )
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise InputError(f"the URL of {what} holds a `?` or a `#`", hint="name the path alone")
    tls = parts.scheme == "https"
    if not tls and not _is_here(host):
        raise InputError(f"the URL of {what} is `http` and not on this machine", hint="use https")
    target = parts.path or "/"
    return Address(host=host, port=port if port is not None else (443 if tls else 80), target=target, tls=tls)


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return False


def exchange(
    address: Address,
    *,
    method: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    deadline_s: float,
    limit_bytes: int = BODY_BYTES,
) -> Came:
    """Send one request, and return the answer.

    Takes: `deadline_s`, for all of it, from the look-up of the name to the last byte.
    Raises: ServiceError, for anything but a whole answer within the deadline and the limit. A redirect is an answer
    like any other.
    """
    if deadline_s <= 0:
        raise ServiceError("the service was not asked: no time was left")
    until = time.monotonic() + deadline_s
    wire = _Wire(address, until, f"it did not answer within {deadline_s:g} s")
    connection = HTTPConnection(address.host, address.port)
    try:
        connection.sock = wire.open()
        fields = {
            "Host": address.authority,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "interlock",
            "Connection": "close",
            **({"Content-Type": "application/json"} if body else {}),
            **(headers or {}),
        }
        connection.request(method, address.target, body=body or None, headers=fields)
        with connection.getresponse() as response:
            return _read(response, limit_bytes, wire)
    except ssl.SSLCertVerificationError as error:
        raise ServiceError(f"the service's certificate is not good: {error.verify_message}") from None
    except (OSError, HTTPException, ValueError) as error:
        why = wire.lateness or _why(error)
        raise ServiceError(f"the service gave no answer: {why}") from None
    finally:
        wire.close()
        connection.close()


class _Wire:
    """The connection of one exchange, which ends at its deadline whatever the far side does.

    A far side that drips a byte at a time never lets a single read time out, so a timer ends them all.
    """

    def __init__(self, address: Address, until: float, lateness: str) -> None:
        self.lateness = ""
        self._told = lateness
        self._address = address
        self._until = until
        self._socket: socket.socket | None = None
        self._timer: Timer | None = None

    def _left_s(self) -> float:
        return max(self._until - time.monotonic(), 0.001)

    def open(self) -> socket.socket:
        """Return the connection. Raises: OSError."""
        self._socket = raw = self._dialled()
        self._timer = Timer(self._left_s(), self._cut)
        self._timer.daemon = True
        self._timer.start()
        if not self._address.tls:
            return raw
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._socket = secured = context.wrap_socket(
            raw, server_hostname=self._address.host, do_handshake_on_connect=False
        )
        secured.do_handshake()
        return secured

    def _dialled(self) -> socket.socket:
        found = socket.getaddrinfo(self._address.host, self._address.port, type=socket.SOCK_STREAM)
        failed: OSError | None = None
        for family, kind, protocol, _name, where in found:
            raw = socket.socket(family, kind, protocol)
            raw.settimeout(self._left_s())
            try:
                raw.connect(where)
            except OSError as error:
                raw.close()
                failed = error
                continue
            return raw
        raise failed if failed is not None else OSError("no address")

    def _cut(self) -> None:
        self.lateness = self._told
        if self._socket is not None:
            with suppress(OSError):
                # The plain one: that of TLS would change the object under the thread that reads it.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._socket.close()


def _read(response: HTTPResponse, limit_bytes: int, wire: _Wire) -> Came:
    if response.getheader("Content-Encoding", "identity").lower() not in {"identity", ""}:
        raise ServiceError("the service's answer is compressed, though that was not asked for")
    length = response.length
    body = response.read(limit_bytes + 1)
    if len(body) > limit_bytes:
        raise ServiceError(f"the service's answer is longer than {limit_bytes} bytes")
    if wire.lateness:
        # Without a length, a body that was cut looks like a whole one.
        raise ServiceError(f"the service gave no answer: {wire.lateness}")
    if length is not None and len(body) < length:
        raise ServiceError("the service's answer was cut off")
    content_type = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    return Came(status=response.status, content_type=content_type, body=body)


def _why(error: Exception) -> str:
    """Say what failed, without what the far side sent: an exception of `http.client` may hold it."""
    if isinstance(error, TimeoutError):
        return "its time was up"
    if isinstance(error, socket.gaierror):
        return "its name has no address"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
