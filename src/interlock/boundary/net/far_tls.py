"""TLS to the far side, verified against the host's own trust."""

import os
import socket
import ssl
import weakref
from collections import OrderedDict

from interlock.boundary.net.dialling import DialError, ready

_MAX_CONTEXTS = 16
_MAX_REMEMBERED = 1024

_contexts: OrderedDict[tuple[str, ...], ssl.SSLContext] = OrderedDict()
# the last connection to each place, whose session a new one beside it may resume: the chain is then not verified again
_latest: OrderedDict[tuple[int, str, int], "weakref.ref[ssl.SSLSocket]"] = OrderedDict()

_EXPIRED, _NOT_YET, _SELF_SIGNED, _HOST_MISMATCH, _ADDRESS_MISMATCH = 10, 9, 18, 62, 64
_UNKNOWN_AUTHORITY = (2, 19, 20, 21, 27)
_TRUST_HINT = (
    "for a private authority, name a PEM file of the usual certificates and its own as SSL_CERT_FILE"
)


def context(trust_file: str, alpn: tuple[str, ...]) -> ssl.SSLContext:
    """Return the client context for a list of protocols, kept: reading the host's bundle takes some milliseconds.

    Raises: DialError, if the trust file cannot be read.
    """
    key = (trust_file, os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""), *alpn)
    known = _contexts.get(key)
    if known is not None:
        _contexts.move_to_end(key)
        return known
    try:
        made = ssl.create_default_context()
        if trust_file:
            made.load_verify_locations(cafile=trust_file)
    except OSError as error:  # ssl.SSLError is one
        raise DialError(
            f"the trust file `{trust_file}` cannot be read: {error.strerror or 'it holds no certificate'}",
            "certificate",
            hint="it must be a PEM file with the certificates of authorities",
        ) from None
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    if alpn:
        made.set_alpn_protocols(list(alpn))
    _contexts[key] = made
    if len(_contexts) > _MAX_CONTEXTS:
        _contexts.popitem(last=False)
    return made


async def secure(
    trust_file: str, sock: socket.socket, host: str, port: int, alpn: tuple[str, ...]
) -> ssl.SSLSocket:
    """Make a connected socket a TLS one, its handshake done; the socket is closed on any failure.

    Raises: DialError.
    """
    secured: ssl.SSLSocket | None = None
    try:
        made = context(trust_file, alpn)
        place = (id(made), host, port)
        secured = made.wrap_socket(
            sock, server_hostname=host, do_handshake_on_connect=False, session=_session(place, made)
        )
        await _shake_hands(secured)
    except BaseException as error:
        (secured or sock).close()
        if isinstance(error, OSError | ValueError) and not isinstance(error, TimeoutError):
            raise explained(host, port, error) from None
        raise
    _latest[place] = weakref.ref(secured)
    _latest.move_to_end(place)
    if len(_latest) > _MAX_REMEMBERED:
        _latest.popitem(last=False)
    return secured


async def _shake_hands(secured: ssl.SSLSocket) -> None:
    while True:
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            await ready(secured, to_write=False)
        except ssl.SSLWantWriteError:
            await ready(secured, to_write=True)
        else:
            return


def _session(place: tuple[int, str, int], made: ssl.SSLContext) -> ssl.SSLSession | None:
    known = _latest.get(place)
    latest = known() if known is not None else None
    if latest is None or latest.context is not made:
        return None
    session = latest.session
    return session if session is not None and session.has_ticket else None


def explained(host: str, port: int, error: OSError | ValueError) -> DialError:
    """Return a handshake's failure as the user should read it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _untrusted(host, error)
    return _broken(host, port, error)


def _untrusted(host: str, error: ssl.SSLCertVerificationError) -> DialError:
    code = error.verify_code
    hint = ""
    if code in (_EXPIRED, _NOT_YET):
        what = "has expired" if code == _EXPIRED else "is not valid yet"
        hint = "check the clock of this machine too"
    elif code in (_HOST_MISMATCH, _ADDRESS_MISMATCH):
        what = "is for another name"
    elif code == _SELF_SIGNED:
        what, hint = "is self-signed", _TRUST_HINT
    elif code in _UNKNOWN_AUTHORITY:
        what, hint = "comes from an authority that this machine does not trust", _TRUST_HINT
    else:
        what = f"was not accepted: {error.verify_message}"
    return DialError(f"the certificate of `{host}` {what}", "certificate", hint=hint)


def _broken(host: str, port: int, error: OSError | ValueError) -> DialError:
    reason = getattr(error, "reason", "") or ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"):
        return DialError(
            f"`{host}` does not speak TLS on port {port}", "tls", hint="use http:// if that is meant"
        )
    if isinstance(error, ssl.SSLEOFError | ConnectionError):
        return DialError(f"`{host}` port {port} closed the connection in the TLS handshake", "tls")
    detail = reason.replace("_", " ").lower() if isinstance(error, ssl.SSLError) else type(error).__name__
    hint = "a host that asks for a client's certificate is reached as an opaque route of the policy alone"
    return DialError(f"no TLS handshake with `{host}` port {port}: {detail}", "tls", hint=hint)
