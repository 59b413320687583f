"""The key `network.compensations` of a policy file becomes `Compensation`s, or a mistake with its place and its fix."""

import re

from interlock.policy.compensations import LEAF, SECRET, Compensation
from interlock.policy.document import Document, Path, Tree
from interlock.policy.network import SAFE_METHODS
from interlock.policy.network_loading import host_at, path_at, port_at
from interlock.policy.reading import entries, known_keys, near, needs, text_at, value_at, wrong

COMPENSATION_KEYS = ("host", "port", "method", "path", "undo")
UNDO_KEYS = ("method", "path", "headers", "body")

_EXAMPLE = '{host: api.example.com, path: "/v1/items", undo: {method: DELETE, path: "/v1/items/{id}"}}'
_UNDO = 'undo: {method: DELETE, path: "/v1/items/{id}"}'
_METHODS = ("POST", "PUT", "PATCH", "DELETE")
_PLAIN = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@/-]*")
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_OF_THE_LINE = frozenset(
    (
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "proxy-connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "idempotency-key",
    )
)
"""Headers that the connection itself writes."""


def read_compensations(document: Document, secrets: set[str]) -> tuple[Compensation, ...]:
    """Read how requests are undone.

    Takes: `secrets`, the names that the policy binds.
    Raises: PolicyError.
    """
    found: list[Compensation] = []
    for path, entry in entries(document, ("network", "compensations"), COMPENSATION_KEYS, _EXAMPLE):
        for key in ("host", "path", "undo"):
            needs(document, path, entry, key, _EXAMPLE)
        pattern = path_at(document, (*path, "path"), 'path: "/v1/items"')
        undo_at = (*path, "undo")
        undo = entry["undo"]
        if not isinstance(undo, dict):
            wrong(document, undo_at, "a mapping", f"write it as in `{_UNDO}`")
        known_keys(document, undo_at, UNDO_KEYS)
        for key in ("method", "path"):
            needs(document, undo_at, undo, key, _UNDO)
        found.append(
            Compensation(
                host=host_at(document, (*path, "host"), "host: api.example.com", wild=True),
                port=port_at(document, (*path, "port")) if "port" in entry else 0,
                method=_method(document, (*path, "method")) if "method" in entry else "POST",
                path=pattern,
                undo_method=_method(document, (*undo_at, "method")),
                undo_path=_undo_path(document, (*undo_at, "path"), pattern),
                undo_headers=_headers(document, (*undo_at, "headers"), undo, secrets),
                undo_body=_body(document, (*undo_at, "body"), undo, pattern),
            )
        )
    return tuple(found)


def _method(document: Document, path: Path) -> str:
    name = text_at(document, path, "method: DELETE")
    if name in SAFE_METHODS:
        raise document.mistake(path, f"`{name}` changes nothing", hint=f"use one of: {', '.join(_METHODS)}")
    if name not in _METHODS:
        raise document.mistake(path, f"`{name}` is no method for this", hint=near(name, _METHODS))
    return name


def _undo_path(document: Document, path: Path, pattern: str) -> str:
    text = text_at(document, path, 'path: "/v1/items/{id}"')
    plain = LEAF.sub("x", text)
    if not _PLAIN.fullmatch(plain) or len(text) > 512:
        raise document.mistake(
            path,
            f"`{text[:80]}` is not an absolute path with leaves in braces",
            hint='write it as in `path: "/v1/items/{id}"`, without `?`, `#` and `%`',
        )
    if any(part in (".", "..") for part in plain.split("/")):
        raise document.mistake(path, f"`{text}` is not in normal form", hint="leave `.` and `..` out")
    _check_leaves(document, path, text, pattern)
    return text


def _check_leaves(document: Document, path: Path, text: str, pattern: str) -> None:
    """Check that each number in braces names a wild segment of the request's path."""
    parts = pattern.split("/")
    wild = sum(any(char in part for char in "*?[") for part in parts)
    for name in LEAF.findall(text):
        if not name.isdigit():
            continue
        if "**" in parts:
            raise document.mistake(
                path, f"`{{{name}}}` cannot be counted beside `**`", hint="write one `*` for each segment"
            )
        if int(name) > wild:
            raise document.mistake(
                path,
                f"`{{{name}}}` names no segment: `{pattern}` has {wild} with a wild card",
                hint='write it as in `path: "/v1/*/items"` and `/v1/{1}/items/{id}`',
            )


def _headers(
    document: Document, path: Path, undo: dict[str, Tree], secrets: set[str]
) -> tuple[tuple[str, str], ...]:
    example = 'headers: {authorization: "Bearer {secret.github}"}'
    given = undo.get("headers")
    if given is None:
        return ()
    if not isinstance(given, dict):
        wrong(document, path, "a mapping", f"write it as in `{example}`")
    found: dict[str, str] = {}
    for name in given:
        lower = name.lower()
        if not _FIELD.fullmatch(name) or lower in _OF_THE_LINE or lower in found:
            raise document.mistake(
                (*path, name),
                f"`{name[:64]}` is no header that can be given here",
                hint=f"write it as in `{example}`",
                key=True,
            )
        value = text_at(document, (*path, name), example)
        plain = SECRET.sub("x", value)
        if not plain.isascii() or not plain.isprintable() or any(char in plain for char in "{}"):
            # The text is not repeated: someone may have written the secret itself here.
            raise document.mistake(
                (*path, name),
                "a header's value is plain ASCII, and its braces name a secret",
                hint=f"write it as in `{example}`",
            )
        for secret in SECRET.findall(value):
            if secret not in secrets:
                raise document.mistake(
                    (*path, name),
                    f"no secret `{secret}` is bound",
                    hint=near(secret, sorted(secrets)) if secrets else "name it under `network.secrets`",
                )
        found[lower] = value
    return tuple(found.items())


def _body(
    document: Document, path: Path, undo: dict[str, Tree], pattern: str
) -> tuple[tuple[str, str | int | bool], ...] | None:
    example = 'body: {id: "{id}", notify: false}'
    given = undo.get("body")
    if given is None:
        return None
    if not isinstance(given, dict):
        wrong(document, path, "a mapping", f"write it as in `{example}`")
    found: list[tuple[str, str | int | bool]] = []
    for name in given:
        value = value_at(document, (*path, name))
        if not isinstance(value, str | int | bool):
            wrong(document, (*path, name), "a text, a number, true or false", f"write it as in `{example}`")
        if isinstance(value, str):
            if any(char in LEAF.sub("", value) for char in "{}") or (
                LEAF.search(value) and not LEAF.fullmatch(value)
            ):
                raise document.mistake(
                    (*path, name),
                    "a leaf in braces is a value of its own",
                    hint=f"write it as in `{example}`",
                )
            _check_leaves(document, (*path, name), value, pattern)
        found.append((name, value))
    return tuple(found)
