"""Upstreams: the providers that the operator names, and which of them a request is for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from interlock.boundary.lens.reading import wire_of
from interlock.boundary.net.names import canonical_literal, canonical_name
from interlock.boundary.net.sides import RawHeaders
from interlock.model.errors import InputError
from interlock.model.records import dataclass

OPENAI, ANTHROPIC, GEMINI = "openai", "anthropic", "gemini"
KINDS = (OPENAI, ANTHROPIC, GEMINI)
_HINTS = {"anthropic": ANTHROPIC, "claude": ANTHROPIC, "gemini": GEMINI, "google": GEMINI}
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
_WIRES = {"openai-chat": OPENAI, "openai-responses": OPENAI, "anthropic": ANTHROPIC, "gemini": GEMINI}
_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")
_EXAMPLE = "as in --upstream openai=https://api.openai.com"
RESERVED = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A provider. Takes: `kind`, whose wire it speaks; `path`, what stands before every path, without an end slash."""

    name: str
    kind: str
    host: str
    port: int
    tls: bool
    path: str = ""

    @property
    def url(self) -> str:
        """Return where it is."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == (443 if self.tls else 80) else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{host}{port}{self.path}"

    @property
    def address(self) -> str:
        """Return host and port, as a policy names them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_upstream(text: str) -> Upstream:
    """Read `NAME=URL`. Raises: InputError."""
    name, equals, url = text.partition("=")
    if not equals or not _NAME.fullmatch(name) or name == RESERVED:
        raise InputError(f"the upstream `{text}` is no NAME=URL", hint=_EXAMPLE)
    try:
        found = urlsplit(url)
        host, port = found.hostname or "", found.port
    except ValueError:
        host, port, found = "", None, urlsplit("")
    name_or_literal = canonical_literal(host) or canonical_name(host)
    path = found.path.rstrip("/")
    plain = not (found.username or found.password or found.query or found.fragment)
    if found.scheme not in ("http", "https") or not name_or_literal or not plain or not _PATH.fullmatch(path):
        raise InputError(
            f"the upstream `{name}` has no URL of a provider: http:// or https://, a host, and perhaps a path",
            hint=f"{_EXAMPLE}; a key comes from the agent, or by --key-env",
        )
    tls = found.scheme == "https"
    words = (name, *re.split(r"[^a-z0-9]+", name), *name_or_literal.split("."))
    kind = next((_HINTS[word] for word in words if word in _HINTS), OPENAI)
    if name_or_literal.startswith("generativelanguage."):
        kind = GEMINI
    return Upstream(
        name=name,
        kind=kind,
        host=name_or_literal,
        port=port if port is not None else (443 if tls else 80),
        tls=tls,
        path=path,
    )


class Upstreams:
    """The upstreams of a gateway, in the operator's order. Raises: InputError, for none, or a name given twice."""

    def __init__(self, given: tuple[Upstream, ...]) -> None:
        names = [one.name for one in given]
        if not given:
            raise InputError("a gateway needs an upstream", hint=_EXAMPLE)
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two upstreams are called `{name}`", hint="give each a name of its own")
        self.all = given
        self._by_name: Mapping[str, Upstream] = {one.name: one for one in given}

    def find(self, path: str, headers: RawHeaders) -> tuple[Upstream, str] | None:
        """Say which upstream a request is for, and its path there.

        Holds: a first segment that is an upstream's name decides; else the wire does, told by path or header fields.
        Returns: None where no upstream speaks that wire.
        """
        first, slash, rest = path.removeprefix("/").partition("/")
        named = self._by_name.get(first)
        if named is not None:
            return named, slash + rest or "/"
        if len(self.all) == 1:
            return self.all[0], path
        kind = _kind_of(path, headers)
        found = next((one for one in self.all if one.kind == kind), None)
        return None if found is None else (found, path)


def _kind_of(path: str, headers: RawHeaders) -> str:
    names = {name for name, _ in headers}
    if b"anthropic-version" in names or path.startswith("/api/hello"):
        return ANTHROPIC
    if b"x-goog-api-key" in names or b"x-goog-api-client" in names:
        return GEMINI
    wire = wire_of(path)
    if wire:
        return _WIRES[wire]
    if path.startswith("/v1/messages"):
        return ANTHROPIC
    return GEMINI if path.startswith(("/v1beta/", "/v1alpha/")) else OPENAI
