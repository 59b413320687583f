"""Entries changed in a text, each where it stands: comments, order and spaces of all the rest stay."""

from __future__ import annotations

from typing import Any

from interlock.mcp.importing.changing import INLINE, JSON, ODD_FORM, TABLE, changes, toml_key
from interlock.mcp.importing.entries import Entry, Layout, Left, Wrapping, is_wrapped, wrapped
from interlock.mcp.importing.json_text import read_json
from interlock.mcp.importing.toml_text import TomlText, read_toml
from interlock.mcp.importing.written import Edit, UnreadableError, Written, edited
from interlock.model.errors import InputError
from interlock.model.records import dataclass

_MEND = "mend the file, then try again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An entry that was changed. Takes: `path`, the keys that lead to it; the last is the server's name."""

    path: tuple[str, ...]
    before: Entry
    after: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    """A text whose servers are wrapped.

    Takes: `known`, servers that were wrapped before; `left`, servers that stay as they are, and why.
    """

    text: str
    layout: Layout
    changes: tuple[Change, ...]
    known: tuple[str, ...]
    left: tuple[tuple[str, str], ...]


def wrap_all(text: str, place: str, wrapping: Wrapping) -> Wrapped:
    """Wrap each server that a file of settings names.

    Takes: `place`, as it is told to the user; TOML where it ends so.
    Raises: InputError, where the file cannot be read or names no servers.
    """
    document = _document(text, place)
    made: list[Change] = []
    known: list[str] = []
    left: list[tuple[str, str]] = []
    for path, entry in document.entries():
        if is_wrapped(document.layout, entry):
            known.append(path[-1])
            continue
        try:
            wanted = wrapped(document.layout, path[-1], entry, wrapping)
            document.put(path, entry, wanted)
        except Left as reason:
            left.append((path[-1], reason.why))
        else:
            made.append(Change(path=path, before=entry, after=wanted))
    return Wrapped(
        text=document.text,
        layout=document.layout,
        changes=tuple(made),
        known=tuple(known),
        left=tuple(left),
    )


def unwrap(text: str, place: str, made: tuple[Change, ...]) -> tuple[str, tuple[Change, ...]]:
    """Take back changes in a text that was edited since.

    Returns: the text, and the changes that stay, since their entries are not as they were left.
    Raises: InputError, where the file cannot be read or names no servers.
    """
    document = _document(text, place)
    now = dict(document.entries())
    stay: list[Change] = []
    for change in made:
        if change.path not in now:
            continue  # the user took the server out
        try:
            if now[change.path] != change.after:
                raise Left("it was edited since")
            document.put(change.path, change.after, change.before)
        except Left:
            stay.append(change)
    return document.text, tuple(stay)


def _document(text: str, place: str) -> _Json | _Toml:
    return _Toml(text, place) if place.endswith(".toml") else _Json(text, place)


class _Json:
    def __init__(self, text: str, place: str) -> None:
        self.text = text
        self._place = place
        self.layout, self._ways = self._find(self._read(text))

    def entries(self) -> list[tuple[tuple[str, ...], Any]]:
        document = self._read(self.text)
        found = []
        for way in self._ways:
            servers = self._at(document, way)
            if twice := _twice(servers):
                raise InputError(f"`{self._place}` names the server `{twice}` twice", hint=_MEND)
            found += [((*way, one.key), one.value.data) for one in servers.members]
        return found

    def put(self, path: tuple[str, ...], entry: Entry, wanted: Entry) -> None:
        document = self._read(self.text)
        at = self._at(document, path)
        if twice := _twice(at):
            raise Left(f"it has the key `{twice}` twice")
        text = edited(self.text, changes(self.text, at.members, entry, wanted, JSON))
        try:
            after = read_json(text)
        except UnreadableError as error:
            raise Left(ODD_FORM) from error
        if after.data != _replaced(document.data, path, wanted):
            raise Left(ODD_FORM)
        self.text = text

    def _find(self, document: Written) -> tuple[Layout, list[tuple[str, ...]]]:
        """Return the layout and the keys that lead to the servers."""
        for layout, ways in _WAYS:
            found = [path for way in ways for path in _matching(document.data, way)]
            if found:
                return layout, found
        raise InputError(
            f"`{self._place}` names no MCP servers",
            hint="name a file with `mcpServers`, `servers`, `mcp` or, in TOML, `mcp_servers`",
        )

    def _at(self, document: Written, path: tuple[str, ...]) -> Written:
        found = document
        for key in path:
            inner = found.find(key)
            if inner is None or sum(one.key == key for one in found.members) > 1:
                raise InputError(f"`{self._place}` has the key `{key}` twice", hint=_MEND)
            found = inner
        return found

    def _read(self, text: str) -> Written:
        try:
            return read_json(text)
        except UnreadableError as error:
            line = text.count("\n", 0, error.at) + 1
            raise InputError(
                f"`{self._place}` cannot be read at line {line}: {error.what}", hint=_MEND
            ) from error


_WAYS: tuple[tuple[Layout, tuple[tuple[str, ...], ...]], ...] = (
    # Claude Code keeps servers of its own for each folder it was started in, in one file of the home.
    (Layout.SERVERS, (("mcpServers",), ("projects", "*", "mcpServers"))),
    (Layout.VSCODE, (("servers",), ("mcp", "servers"))),
    (Layout.OPENCODE, (("mcp",),)),
)


def _matching(data: object, way: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the paths to objects that a way leads to; `*` is any key."""
    if not isinstance(data, dict):
        return []
    if not way:
        return [()]
    keys = list(data) if way[0] == "*" else [way[0]] if way[0] in data else []
    return [(key, *rest) for key in keys for rest in _matching(data[key], way[1:])]


def _replaced(data: Any, path: tuple[str, ...], value: object) -> Any:
    return {**data, path[0]: _replaced(data[path[0]], path[1:], value)} if path else value


class _Toml:
    layout = Layout.CODEX

    def __init__(self, text: str, place: str) -> None:
        self.text = text
        try:
            data = read_toml(text).data
        except UnreadableError as error:
            raise InputError(f"`{place}` cannot be read: {error.what}", hint=_MEND) from error
        if not isinstance(data.get(self.layout.value), dict):
            raise InputError(
                f"`{place}` names no MCP servers", hint="name a file with a table `mcp_servers.NAME`"
            )

    def entries(self) -> list[tuple[tuple[str, ...], Any]]:
        servers = read_toml(self.text).data[self.layout.value]
        return [((self.layout.value, name), entry) for name, entry in servers.items()]

    def put(self, path: tuple[str, ...], entry: Entry, wanted: Entry) -> None:
        document = read_toml(self.text)
        inline = next((one.member.value for one in document.lines if one.path == path), None)
        if inline is not None:
            edits = changes(self.text, inline.members, entry, wanted, INLINE)
        else:
            edits, renamed = _renamed(document, path, entry, wanted)
            members = tuple(one.member for one in document.lines if one.path[:-1] == path)
            # what is in tables of its own is not among the members
            own = {one.key for one in members}
            told = {key: value for key, value in entry.items() if key in own}
            asked = {
                key: value for key, value in wanted.items() if key in own or key not in (*entry, renamed)
            }
            edits += changes(self.text, members, told, asked, TABLE)
        text = edited(self.text, edits)
        try:
            after = read_toml(text).data
        except UnreadableError as error:
            raise Left(ODD_FORM) from error
        if after != _replaced(document.data, path, wanted):
            raise Left(ODD_FORM)
        self.text = text


def _renamed(
    document: TomlText, path: tuple[str, ...], entry: Entry, wanted: Entry
) -> tuple[list[Edit], str]:
    """Return the edits that make a table of headers one of variables, or the other way, and its name."""
    for old, new in (("http_headers", "env"), ("env", "http_headers")):
        header = next((one for one in document.headers if one.path == (*path, old)), None)
        if header is None or new in entry or new not in wanted or old in wanted:
            continue
        names = dict(zip(entry[old], wanted[new], strict=False))
        edits = [Edit(start=header.start, end=header.end, text=".".join(map(toml_key, (*path, new))))]
        for line in document.lines:
            if line.path[:-1] == header.path and (key := names.get(line.path[-1])):
                edits.append(Edit(start=line.member.start, end=line.member.key_end, text=toml_key(key)))
        return edits, new
    return [], ""


def _twice(written: Written) -> str:
    keys = [one.key for one in written.members]
    return next((key for number, key in enumerate(keys) if key in keys[:number]), "")
