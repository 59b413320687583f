"""What makes the sandbox's tools trust the run's authority without being told.

Most tools read one of the system's bundles, so the host's bundle with our certificate at its end stands in the place of
each one that the host has. The rest are told by a variable, each of which names a whole bundle where it replaces the
tool's own, and our certificate alone where it adds to it. All of this runs at each start: nothing heavy is imported.
Source: the Java Cryptography Architecture's JKS format; RFC 5280 §4.1 (names); OpenSSL's X509_NAME_hash.
"""

import binascii
import hashlib
import os
import struct
from collections.abc import Mapping

from interlock.boundary.net.doors import DOOR_V4
from interlock.model.errors import BoundaryError
from interlock.model.records import dataclass

FOLDER = "/run/interlock/trust"
"""Where our files lie inside, on the sandbox's fresh /run."""

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
    "/etc/ssl/certs/ca-bundle.trust.crt",
    "/usr/lib/ssl/cert.pem",
    "/usr/local/ssl/cert.pem",
    "/usr/local/etc/ssl/cert.pem",
    "/usr/share/ssl/certs/ca-bundle.crt",
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/certs/ca-certificates.crt",
)
"""Where distributions keep the certificates of authorities in one PEM file."""

JAVA_STORES = (
    "/etc/ssl/certs/java/cacerts",
    "/etc/pki/java/cacerts",
    "/etc/pki/ca-trust/extracted/java/cacerts",
    "/var/lib/ca-certificates/java-cacerts",
    "/etc/default/cacerts",
)
_JAVA_HOMES = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/opt")
_IN_JAVA_HOME = ("lib/security/cacerts", "jre/lib/security/cacerts")

WHOLE = (
    "SSL_CERT_FILE",  # OpenSSL, Go, Rust's native roots, Python's ssl and httpx, Ruby, .NET, uv
    "REQUESTS_CA_BUNDLE",  # Python's requests, the Azure command line, conda
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "npm_config_cafile",  # takes the place of a company's own file in .npmrc
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NIX_SSL_CERT_FILE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "HTTPLIB2_CA_CERTS",
    "HEX_CACERTS_PATH",
    "JULIA_SSL_CA_ROOTS_PATH",
    "WEBSOCKET_CLIENT_CA_BUNDLE",
)
"""Variables that name the whole list of authorities; each tool that knows one reads that one alone."""

ADDED = (
    "NODE_EXTRA_CA_CERTS",  # also Bun
    "DENO_CERT",
)
"""Variables that name authorities beside the tool's own."""

# Left unset on purpose. JAVA_TOOL_OPTIONS: each Java program would say on stderr that it picked it up.
# YARN_*: Yarn stops at a setting that its version does not know, and reads NODE_EXTRA_CA_CERTS anyway.
# DENO_TLS_CA_STORE: with DENO_CERT there is nothing left for it to say, and `system` slows each start.

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_JKS_SALT = b"Mighty Aphrodite"
_JKS_PASSWORD = "changeit"  # noqa: S105 - public by custom: the store holds nothing secret
_JKS_MAGIC = 0xFEEDFEED

_MAX_BUNDLE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What goes where inside.

    Takes: `placed`, target and source of each file or folder, to be shown read-only; `environment`, names and values
    of the variables.
    """

    placed: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]


def write_bundles(folder: str, certificate_pem: bytes, environ: Mapping[str, str] | None = None) -> Trust:
    """Write the run's trust files into `folder`, which is made if absent.

    Takes: `environ`, the host's variables: authorities that it adds by them are kept.
    Raises: BoundaryError, if a file cannot be written.
    """
    host = os.environ if environ is None else environ
    bundles = _existing(SYSTEM_BUNDLES)
    paths = _trusted_paths(bundles, host)
    whole = _joined(b"".join(_joined(b"", _content(path)) for path in paths), certificate_pem)
    extra = host.get("NODE_EXTRA_CA_CERTS", "")
    added = "bundle.pem" if extra and os.path.realpath(extra) in paths else "added.pem"
    try:
        os.makedirs(f"{folder}/certs", mode=0o755, exist_ok=True)
        _write(f"{folder}/bundle.pem", whole)
        if added == "added.pem":
            _write(f"{folder}/added.pem", _joined(_content(extra), certificate_pem))
        # for what looks into a folder alone, by the hash of the subject's name
        _write(f"{folder}/certs/{subject_hash(certificate_pem)}.0", certificate_pem)
        placed = [(FOLDER, folder)]
        placed += [(bundle, f"{folder}/bundle.pem") for bundle in bundles]
        stores = _existing(_java_stores(host))
        if stores:
            _write(f"{folder}/cacerts.jks", java_store(whole))
            placed += [(store, f"{folder}/cacerts.jks") for store in stores]
    except OSError as error:
        raise BoundaryError(
            f"the run's trust files cannot be written: {error.strerror}",
            hint="check that the disk is not full",
        ) from None
    environment = [(name, f"{FOLDER}/bundle.pem") for name in WHOLE]
    environment += [(name, f"{FOLDER}/{added}") for name in ADDED]
    environment.append(("SSL_CERT_DIR", f"{FOLDER}/certs"))
    return Trust(placed=tuple(placed), environment=tuple(environment))


def resolv_conf(folder: str) -> tuple[str, str]:
    """Write the resolver's configuration for inside into `folder`.

    Returns: its target and source.
    Raises: BoundaryError, if it cannot be written.
    """
    path = f"{folder}/resolv.conf"
    # two quick attempts: the answer comes from the same machine or not at all; no search list, so that each name is
    # looked up as it was typed
    try:
        _write(path, f"nameserver {DOOR_V4}\noptions edns0 timeout:2 attempts:2\n".encode("ascii"))
    except OSError as error:
        raise _unwritten(error) from None
    return os.path.realpath("/etc/resolv.conf"), path


def java_store(bundle: bytes) -> bytes:
    """Write the certificates of a PEM bundle as a Java key store, which every Java reads.

    Holds: its password is the customary one; without one Java reads it too.
    """
    certificates = list(dict.fromkeys(_der(bundle)))
    parts = [struct.pack("!III", _JKS_MAGIC, 2, len(certificates))]
    for index, certificate in enumerate(certificates):
        alias = b"authority-%d" % index
        parts.append(struct.pack("!IH", 2, len(alias)) + alias + bytes(8))
        parts.append(struct.pack("!H", 5) + b"X.509" + struct.pack("!I", len(certificate)))
        parts.append(certificate)
    body = b"".join(parts)
    # the format's own digest: it finds damage, and is no protection
    return (
        body
        + hashlib.sha1(_JKS_PASSWORD.encode("utf-16-be") + _JKS_SALT + body, usedforsecurity=False).digest()
    )


def subject_hash(certificate_pem: bytes) -> str:
    """Return the name under which OpenSSL looks for a certificate in a folder.

    Takes: a certificate whose subject's values are UTF-8 or printable strings, as ours are.
    """
    certificate = _der(certificate_pem)[0]
    signed = _items(_items(_items(certificate)[0][1])[0][1])
    if signed[0][0] == 0xA0:  # the version, which may be left out
        signed = signed[1:]
    canonical = b""
    for _, relative in _items(signed[4][1]):
        pairs = b""
        for _, pair in _items(relative):
            (_, kind), (_, value) = _items(pair)
            pairs += _item(0x30, _item(0x06, kind) + _item(0x0C, b" ".join(value.lower().split())))
        canonical += _item(0x31, pairs)
    digest = hashlib.sha1(canonical, usedforsecurity=False).digest()
    return digest[3::-1].hex()


def _items(content: bytes) -> list[tuple[int, bytes]]:
    """Split DER content into tags and contents; for a certificate that we made ourselves."""
    found = []
    at = 0
    while at < len(content):
        tag, size = content[at], content[at + 1]
        at += 2
        if size & 0x80:
            width = size & 0x7F
            size = int.from_bytes(content[at : at + width], "big")
            at += width
        found.append((tag, content[at : at + size]))
        at += size
    return found


def _item(tag: int, content: bytes) -> bytes:
    if len(content) >= 0x80:
        raise ValueError("a name's part is too long")
    return bytes((tag, len(content))) + content


def _der(bundle: bytes) -> list[bytes]:
    """Return the certificates of a PEM bundle; what is none is passed over."""
    found = []
    for part in bundle.split(_BEGIN)[1:]:
        text, end, _ = part.partition(_END)
        if end:
            try:
                certificate = binascii.a2b_base64(text)
            except binascii.Error:
                continue
            # a store with anything else in it would not be read at all
            if (
                certificate[:2] == b"\x30\x82"
                and int.from_bytes(certificate[2:4], "big") == len(certificate) - 4
            ):
                found.append(certificate)
    return found


def _existing(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files behind those paths that there are, each once."""
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.isfile(path)))


def _java_stores(host: Mapping[str, str]) -> tuple[str, ...]:
    homes = [host.get("JAVA_HOME", "")]
    for folder in _JAVA_HOMES:
        try:
            homes += [f"{folder}/{name}" for name in os.listdir(folder)]
        except OSError:
            continue
    if host.get("HOME"):
        for folder in (f"{host['HOME']}/.sdkman/candidates/java", f"{host['HOME']}/.jdks"):
            try:
                homes += [f"{folder}/{name}" for name in os.listdir(folder)]
            except OSError:
                continue
    return JAVA_STORES + tuple(f"{home}/{inner}" for home in homes if home for inner in _IN_JAVA_HOME)


def _trusted_paths(bundles: tuple[str, ...], host: Mapping[str, str]) -> list[str]:
    """Return where what the host trusts lies: a system bundle, and what its variables name beside it."""
    named = [os.path.realpath(host[name]) for name in WHOLE if host.get(name)]
    return list(dict.fromkeys([*bundles[:1], *named]))


def _content(path: str) -> bytes:
    if not path:
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_BUNDLE)
    except OSError:
        return b""  # the tool that it was meant for would not have found it either


def _joined(first: bytes, second: bytes) -> bytes:
    if first and not first.endswith(b"\n"):
        first += b"\n"
    return first + (second if second.endswith(b"\n") or not second else second + b"\n")


def _unwritten(error: OSError) -> BoundaryError:
    return BoundaryError(
        f"the run's network files cannot be written: {error.strerror}", hint="check that the disk is not full"
    )


def _write(path: str, content: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o644)
