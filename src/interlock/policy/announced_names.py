"""What a call names, as places and hosts that an effect can be looked up by."""

import json
import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache

from interlock.model.actions import AnnouncedCall
from interlock.model.places import HOME, WORKSPACE, Place, Root, path_bytes, path_text
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest
from interlock.policy.announced_tools import Says, says
from interlock.policy.declaration import STATE_PREFIX

MAX_NAME = 4_096
MAX_ARGUMENTS = 2_000
"""Characters of a call's arguments that are kept to be shown."""
_OF = "\0"
"""Between a root's name and the path; neither holds one."""
ABOVE = "/"
"""Ends the key of a folder above a named file: a command may make it, and does not name what else lies there."""
_SHORT = 60
_FOLDERS_OF_ONE = 4
"""So many folders of one command are followed."""
_PORTS = {"https": 443, "wss": 443, "http": 80, "ws": 80, "ftp": 21, "ssh": 22}
_URL = re.compile(
    r"(?:([a-z][a-z0-9+.-]*)://)?(?:[^/@\s]*@)?(\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?(?:[/?#].*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A call, and what it names.

    Takes: `call_id`, `tool`, of the call; `arguments`, cut to what is shown; `short`, the call in a few words; `keys`,
    places that it names (`key_of`); `above`, folders above those; `loose`, relative paths that may begin anywhere;
    `hosts`, `name` and `name:port`, in lower case; the rest as in `Says`; `polls`, whether it waits for what an earlier
    call began.
    """

    call_id: str
    tool: str
    arguments: str
    short: str
    keys: frozenset[str] = frozenset()
    above: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()
    open: bool = False
    wide: bool = False
    lingers: bool = False
    yields: bool = False
    idle: bool = False
    polls: bool = False

    def names_request(self, request: NetRequest) -> bool:
        """Say whether it names a request's host."""
        host = f"[{request.host}]" if ":" in request.host else request.host.lower()
        if request.published:
            return any(f"{name}:{request.port}" in self.hosts for name in (host, *_LOOPBACK))
        return host in self.hosts


def key_of(place: Place) -> str:
    """Return the key of a place."""
    return f"{place.root}{_OF}{place.path}"


def folders_above(key: str) -> Iterable[str]:
    """Yield the keys of the folders above a place, without its root."""
    start = key.index(_OF)
    end = key.rfind("/")
    while end > start:
        yield key[:end]
        end = key.rfind("/", 0, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Where names lead. Takes: `roots`, name and host path of each, longest path first; `home`, the user's, or `""`."""

    roots: tuple[tuple[str, str], ...] = ()
    home: str = ""
    folder: str = ""
    """Where relative names begin."""

    @staticmethod
    @lru_cache(maxsize=8)
    def of(roots: tuple[Root, ...]) -> "Naming":
        """Return it for a run's roots."""
        known = [(root.name, _plain(root.path)) for root in roots]
        home = next((path for name, path in known if name == HOME), "")
        for name, path in known:
            folder = "/" + name.removeprefix(STATE_PREFIX)
            if not home and name.startswith(STATE_PREFIX) and path.endswith(folder):
                home = path.removesuffix(folder)
        ordered = tuple(sorted(known, key=lambda one: -len(one[1])))
        return Naming(roots=ordered, home=home, folder=dict(known).get(WORKSPACE, ""))

    def absolute(self, name: str, folder: str) -> str:
        """Return a name as an absolute path, `""` where that cannot be told."""
        if name == "~" or name.startswith("~/"):
            name = self.home + name[1:] if self.home else ""
        elif name.startswith("~"):
            return ""
        elif not name.startswith("/"):
            name = f"{folder}/{name}" if folder else ""
        return _normal(name) if name else ""

    def key(self, path: str) -> str:
        """Return the key of an absolute path, `""` for a root, what lies above one, or elsewhere."""
        for root, folder in self.roots:
            if path.startswith(folder + "/") and len(path) > len(folder) + 1:
                return f"{root}{_OF}{_text(path[len(folder) + 1 :])}"
            if path == folder:
                return ""
        return ""

    def holds_root(self, path: str) -> bool:
        """Say whether a path is a root, or lies above one."""
        return any(folder == path or folder.startswith(path.rstrip("/") + "/") for _, folder in self.roots)


def name_call(
    naming: Naming, call: AnnouncedCall, before: tuple[str, ...] = (), *, full: bool = False
) -> Named:
    """Return what a call names.

    Takes: `before`, absolute folders where earlier shells went; `full`, whether there is no room for more names.
    """
    said = says(call)
    folders = _folders(naming, said, before)
    keys: set[str] = set()
    loose: set[str] = set()
    vague = False
    for name in () if full else said.names:
        if not name or len(name) > MAX_NAME or "\0" in name:
            continue
        # Where `d/../x` leads, the file system says alone: `d` may be a link, or be made on the way.
        vague |= "/../" in name and said.wide
        for folder in (naming.folder, *folders):
            path = naming.absolute(name, folder)
            if path and (key := naming.key(path)):
                keys.add(key)
            elif path and not said.open and naming.holds_root(path):
                vague = True
            if name[0] in "/~":
                break
        if said.loose and name[0] not in "/~":
            plain = _normal(name).lstrip("./")
            if plain and not name.startswith("-"):
                loose.add(_text(plain))
    above = {folder + ABOVE for key in keys for folder in folders_above(key)}
    return Named(
        call_id=call.call_id,
        tool=call.tool,
        arguments=call.arguments[:MAX_ARGUMENTS],
        short=short(call),
        keys=frozenset(keys),
        above=frozenset(above),
        loose=frozenset(loose),
        hosts=frozenset(() if full else _hosts(said.hosts)),
        folders=_persisting(naming, said, before),
        open=said.open or vague or full,
        wide=said.wide,
        lingers=said.lingers,
        yields=said.yields,
        idle=said.idle,
        polls=call.tool == "write_stdin",
    )


def _folders(naming: Naming, said: Says, before: tuple[str, ...]) -> tuple[str, ...]:
    """Return where relative names may begin beside the workspace: where shells went, this one too."""
    if not said.wide:
        return before[:0]
    return tuple(dict.fromkeys((*before, *_persisting(naming, said, before))))


def _persisting(naming: Naming, said: Says, before: tuple[str, ...]) -> tuple[str, ...]:
    """Return where a shell went: from the workspace, or from where the last one went."""
    found: dict[str, None] = {}
    last = before[-1] if before else ""
    for name in said.folders[:_FOLDERS_OF_ONE]:
        if path := naming.absolute(name, naming.folder):
            found[path] = None
        if last and name[:1] not in ("/", "~") and name not in last.split("/"):
            found[naming.absolute(name, last)] = None
        last = path or last
    return tuple(found)


def _hosts(said: Iterable[str]) -> Iterable[str]:
    for text in said:
        match = _URL.match(text) if len(text) <= MAX_NAME else None
        if match is None:
            continue
        scheme, host, port = (match[1] or "").lower(), match[2].lower(), match[3]
        yield host
        yield f"{host}:{int(port) if port else _PORTS.get(scheme, 80)}"


def short(call: AnnouncedCall) -> str:
    """Write a call in a few words: the tool, and its first telling argument."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return f"{call.tool}(…)"
    if isinstance(value, dict):
        told = sorted(value.items(), key=lambda item: _telling(item[0]))[:1]
        inner = ", ".join(_argument(key, item) for key, item in told)
        more = ", …" if len(value) > 1 else ""
        return f"{call.tool}({inner}{more})"
    return f"{call.tool}({_cut(_as_text(value))})"


_TELLING = ("command", "cmd", "url", "file_path", "filepath", "path", "absolute_path", "file", "query")


def _telling(key: str) -> tuple[int, str]:
    lowered = key.replace("filePath", "filepath").lower()
    return (_TELLING.index(lowered) if lowered in _TELLING else len(_TELLING), key)


def _argument(key: str, value: object) -> str:
    said = _cut(_as_text(value))
    return said if key.lower() in ("command", "cmd") else f"{key}={said}"


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _cut(said: str) -> str:
    said = " ".join(said[: 8 * MAX_ARGUMENTS].split())
    return said if len(said) <= _SHORT else said[: _SHORT - 1] + "…"


def _normal(name: str) -> str:
    path = posixpath.normpath(name)
    return path[1:] if path.startswith("//") else path


def _text(path: str) -> str:
    """Write a path as places are written."""
    return path_text(path.encode("utf-8", "surrogatepass"))


def _plain(path: str) -> str:
    """Read how a root's path is written."""
    return path_bytes(path).decode("utf-8", "surrogateescape") if "\\" in path else path
