"""A lens's own examples: requests, each with what it is, read from its file and tried."""

import json
from typing import Any

from interlock.model.records import dataclass
from interlock.model.requests import NetRequest, PushKind, RefUpdate
from interlock.policy.document import Document, Path, Tree, read_document
from interlock.policy.lenses.lens import RequestLens
from interlock.policy.lenses.loading import read_lens
from interlock.policy.lenses.recognising import recognise
from interlock.policy.reading import known_keys, text_at, value_at, wrong
from interlock.policy.tools.roles import ToolRole

NONE = "none"
_TEST_KEYS = ("is", "request", "headers", "body", "pushes", "arguments", "name")
_EXAMPLE = "{request: POST https://api.example.com/items, is: items_create}"
_FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One example. Takes: `wanted` and `came`, the action with its arguments as JSON text, `none` for no action."""

    name: str
    wanted: str
    came: str

    @property
    def holds(self) -> bool:
        """Say whether it came as it should."""
        return self.wanted == self.came


@dataclass(frozen=True, slots=True, kw_only=True)
class LensFile:
    """A lens as its file has it. Takes: `kept`, what a policy keeps of it, as plain values; `tried`, its examples."""

    lens: RequestLens
    roles: tuple[ToolRole, ...]
    kept: dict[str, Tree]
    about: str
    tried: tuple[Tried, ...]


def read_file(text: str, *, filename: str, hosts: tuple[str, ...] = ()) -> LensFile:
    """Read a lens's file, and try its examples.

    Takes: `hosts`, for a lens that is for no host by itself.
    Raises: PolicyError, with line, column and the fix.
    """
    from interlock.policy.lenses.loading import KEPT_KEYS

    document = read_document(text, filename=filename)
    values = dict(document.values)
    if hosts:
        values["hosts"] = list(hosts)
    inner = Document(
        filename=filename,
        values={_FILE: values},
        positions={(_FILE, *where): spot for where, spot in document.positions.items()},
    )
    lens, roles = read_lens(inner, (_FILE,))
    tried = _tried(inner, lens, values.get("tests"))
    about = values.get("about", "")
    return LensFile(
        lens=lens,
        roles=roles,
        kept={key: document.values[key] for key in KEPT_KEYS if key in document.values},
        about=about if isinstance(about, str) else "",
        tried=tried,
    )


def _tried(document: Document, lens: RequestLens, given: Tree) -> tuple[Tried, ...]:
    if given is None:
        return ()
    path: Path = (_FILE, "tests")
    if not isinstance(given, list):
        wrong(document, path, "a list of examples", f"write `- {_EXAMPLE}` below it")
    return tuple(_try(document, (*path, index), lens) for index in range(len(given)))


def _try(document: Document, path: Path, lens: RequestLens) -> Tried:
    said = value_at(document, path)
    if not isinstance(said, dict):
        wrong(document, path, "a mapping", f"write `- {_EXAMPLE}`")
    known_keys(document, path, _TEST_KEYS)
    wanted = text_at(document, (*path, "is"), "is: items_create")
    line = text_at(document, (*path, "request"), "request: GET https://api.example.com/items")
    request = request_of(line, said.get("headers") or {}, said.get("body"), said.get("pushes") or [])
    if request is None:
        raise document.mistake((*path, "request"), "not a request", hint=f"write `{_EXAMPLE}`")
    arguments = said.get("arguments")
    recognised = recognise((lens,), request)
    came = NONE
    if recognised is not None:
        came = recognised[0].tool.removeprefix(f"{lens.name}.")
        if arguments is not None:
            came += f" {recognised[0].arguments}"
    if arguments is not None:
        wanted += " " + json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    name = said.get("name", line)
    return Tried(name=name if isinstance(name, str) else line, wanted=wanted, came=came)


def request_of(line: str, headers: dict[str, Any], body: Any, pushes: list[Any]) -> NetRequest | None:
    """Return the request of `METHOD URL`, None where it is none.

    Takes: `body`, text, or a value to be written as JSON; `pushes`, each `{ref, kind}`.
    """
    from urllib.parse import urlsplit

    method, _, url = line.partition(" ")
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or not method.isupper():
        return None
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    fields = {str(name).lower(): str(value) for name, value in headers.items()}
    if body is not None and not isinstance(body, str):
        fields.setdefault("content-type", "application/json")
    try:
        updates = tuple(RefUpdate(ref=one["ref"], kind=PushKind(one["kind"])) for one in pushes)
    except (KeyError, TypeError, ValueError):
        return None
    return NetRequest(
        method=method,
        scheme=parts.scheme,
        host=parts.hostname.lower(),
        port=parts.port or (443 if parts.scheme == "https" else 80),
        path=parts.path or "/",
        query=parts.query,
        headers=tuple(fields.items()),
        body_size_bytes=len(text.encode()) if text else 0,
        body_text=text,
        pushes=updates,
    )
