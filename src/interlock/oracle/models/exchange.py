"""One HTTP exchange with whom the user named: bounded in time and size, and nothing of it is followed further.

The deadline holds for the whole of it, whatever it waits for: names, connections, handshakes, and every byte that comes
or goes. No redirect, no proxy of the environment, no cookies, no compression.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import field
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from interlock.model.records import dataclass
from interlock.oracle.models.client import ModelError

if TYPE_CHECKING:
    import httpcore

BODY_LIMIT_BYTES = 8 << 20
_WRITE_BYTES = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A POST of a body.

    Takes: `deadline_s`, for the whole exchange; `proxy`, the URL of one that the user named; `ca`, a file of
    certificates to trust instead of the usual ones.
    """

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    deadline_s: float = 60.0
    limit_bytes: int = BODY_LIMIT_BYTES
    proxy: str = ""
    ca: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came back. Takes: `headers`, with names in lower case, the last of each."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def exchange(call: Call) -> Answered:
    """Make the exchange, once.

    Raises: ModelError: `timeout`, `unavailable` (no connection, or broken off), `too-large`, `garbage` (no HTTP, or
    compressed).
    """
    try:
        import httpcore
    except ModuleNotFoundError as error:
        raise ModelError(
            "unavailable", "models over the network need httpcore", hint="pip install 'interlock[models]'"
        ) from error

    until = time.monotonic() + call.deadline_s
    headers = {
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": "interlock",
        **call.headers,
    }
    try:
        with (
            _pool(call, until) as pool,
            pool.stream("POST", call.url, headers=list(headers.items()), content=call.body) as response,
        ):
            told = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
            }
            if told.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
                raise ModelError("garbage", "the answer is compressed, and nobody asked for that")
            length = told.get("content-length", "")
            if length.isdecimal() and int(length) > call.limit_bytes:
                raise _too_large(call)
            body = bytearray()
            for chunk in response.iter_stream():
                body += chunk
                if len(body) > call.limit_bytes:
                    raise _too_large(call)
                if time.monotonic() > until:
                    raise httpcore.ReadTimeout
            return Answered(status=response.status, headers=told, body=bytes(body))
    except httpcore.TimeoutException as error:
        raise ModelError(
            "timeout", f"no whole answer came within {call.deadline_s:g} s", hint="raise `timeout_s`"
        ) from error
    except (httpcore.NetworkError, httpcore.ProxyError, httpcore.ConnectionNotAvailable, OSError) as error:
        raise ModelError(
            "unavailable",
            f"no connection that held: {_why(error)}",
            hint="check `base_url`, the network and the certificate",
        ) from error
    except httpcore.RemoteProtocolError as error:
        closed = "without" in str(error) or "closed" in str(error)
        raise ModelError(
            "unavailable" if closed else "garbage",
            "the answer broke off" if closed else "what came back is no HTTP",
        ) from error
    except (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol) as error:
        raise ModelError("unavailable", "the request cannot be sent", hint="check `base_url`") from error


def _too_large(call: Call) -> ModelError:
    return ModelError(
        "too-large", f"the answer is larger than {call.limit_bytes >> 20} MiB", hint="see what answers there"
    )


def _why(error: BaseException) -> str:
    """Say in closed words why there is no connection: what a system says may hold what a peer said."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its certificate is not trusted"
        if isinstance(cause, ssl.SSLError):
            return "no TLS"
        if isinstance(cause, OSError) and cause.strerror:
            return str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _pool(call: Call, until: float) -> httpcore.ConnectionPool:
    import httpcore

    options: dict[str, Any] = {
        "ssl_context": ssl.create_default_context(cafile=call.ca) if call.ca else None,
        "max_connections": 1,
        "http2": False,
        "retries": 0,
        "network_backend": _backend(until),
    }
    if call.proxy:
        return httpcore.HTTPProxy(call.proxy, **options)
    return httpcore.ConnectionPool(**options)


def _backend(until: float) -> httpcore.NetworkBackend:
    """Return the sockets of one exchange, each operation of which ends when the exchange must."""
    import httpcore

    def left() -> float:
        rest = until - time.monotonic()
        if rest <= 0:
            raise httpcore.ReadTimeout
        return rest

    class Stream(httpcore.NetworkStream):
        def __init__(self, inner: httpcore.NetworkStream) -> None:
            self._inner = inner

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            return self._inner.read(max_bytes, timeout=left())

        def write(self, buffer: bytes, timeout: float | None = None) -> None:
            for at in range(0, len(buffer), _WRITE_BYTES):
                self._inner.write(buffer[at : at + _WRITE_BYTES], timeout=left())

        def close(self) -> None:
            self._inner.close()

        def start_tls(
            self,
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,
        ) -> httpcore.NetworkStream:
            return Stream(self._inner.start_tls(ssl_context, server_hostname, timeout=left()))

        def get_extra_info(self, info: str) -> Any:
            return self._inner.get_extra_info(info)

    class Backend(httpcore.NetworkBackend):
        def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore.NetworkStream:
            # The resolver knows no deadline, so it is waited for and not stopped.
            came: Queue[httpcore.NetworkStream | BaseException] = Queue()
            rest = left()

            def connect() -> None:
                try:
                    stream = httpcore.SyncBackend().connect_tcp(host, port, timeout=rest)
                except BaseException as error:  # noqa: BLE001 - it is raised again by who waits
                    came.put(error)
                    return
                came.put(stream)
                if time.monotonic() > until:
                    stream.close()

            Thread(target=connect, name="interlock-connect", daemon=True).start()
            try:
                found = came.get(timeout=rest)
            except Empty:
                raise httpcore.ConnectTimeout from None
            if isinstance(found, BaseException):
                raise found
            return Stream(found)

    return Backend()
