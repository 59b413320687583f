"""What stands in a phrase of half prose: paths, hosts, methods, names of variables. By form, not by topic."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from interlock.model.records import dataclass


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list that is written as a sentence."""
    return frozenset(words.split())


_TLDS = word_set(
    "test example invalid localhost internal com org net io dev app ai cloud eu uk de fr edu gov info"
)
_SUFFIXES = re.compile(r"[\w@+-][\w.@+-]*\.[A-Za-z0-9_~-]{1,12}")
_HOST = re.compile(r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)+[a-z][a-z0-9-]*", re.IGNORECASE)
_V4 = re.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_V6 = re.compile(r"\[?[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*\]?")
_VARIABLE = re.compile(r"(?:env:|environment:)\$?\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_PATH = re.compile(r"[\w.@+*?~$/{}-]+")
_EDGES = "\"'`“”‘’«»()<>,;:!"
_WORD = re.compile(r"\S+")
SHORT_PATH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWord:
    """A host as written: `port` 0 and `path` "" where none is given; `scheme` "" where none is."""

    host: str
    port: int = 0
    path: str = ""
    scheme: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of a phrase, its edges cut off.

    Takes: `ends`, the punctuation that was cut off behind it; `path` and `host`, what it is by its form.
    """

    text: str
    ends: str = ""
    path: str = ""
    host: HostWord | None = None
    variable: str = ""


def words_of(phrase: str, *, names: Iterable[str] = (), hosts: Iterable[str] = ()) -> list[Word]:
    """Read a phrase.

    Takes: `names`, of files and folders that exist, which count as paths though they look like plain words; `hosts`,
    that are known.
    """
    known, known_hosts = frozenset(names), frozenset(hosts)
    return [_word(match[0], known, known_hosts) for match in _WORD.finditer(phrase)]


def _word(raw: str, names: frozenset[str], hosts: frozenset[str]) -> Word:
    text = raw.lstrip(_EDGES).rstrip(_EDGES)
    # A full stop ends a sentence where it ends the word; `.`, `..` and `dir/.` are left to the path below.
    while text.endswith(".") and text.strip("./"):
        text = text[:-1].rstrip(_EDGES)
    ends = raw[raw.find(text) + len(text) :] if text else raw
    if found := _VARIABLE.fullmatch(text):
        return Word(text=text, ends=ends, variable=found[1])
    host = host_word(text, hosts)
    if host is not None:
        return Word(text=text, ends=ends, host=host)
    return Word(text=text, ends=ends, path=path_word(text, names))


def host_word(text: str, hosts: Iterable[str] = ()) -> HostWord | None:
    """Return the host that a word is, None where it is none: a URL, an address, or a name that ends like one."""
    scheme = ""
    rest = text
    if "://" in text:
        try:
            url = urlsplit(text)
            port = url.port or 0
        except ValueError:
            return None
        if not url.hostname or url.username or url.scheme not in ("http", "https", "ws", "wss"):
            return None
        return HostWord(host=url.hostname, port=port, path=url.path, scheme=url.scheme)
    if _V6.fullmatch(text) and text.count(":") > 1:
        return HostWord(host=text.strip("[]"))
    rest, slash, path = text.partition("/")
    name, _, number = rest.partition(":")
    name = name.lower()
    if number and not number.isdigit():
        return None
    known = {host.lower() for host in hosts}
    if not (_V4.fullmatch(name) or name == "localhost"):
        if not _HOST.fullmatch(name):
            return None
        if name not in known and name.rpartition(".")[2] not in _TLDS:
            return None
    return HostWord(host=name, port=int(number or 0), path=slash + path, scheme=scheme)


def path_word(text: str, names: Iterable[str] = ()) -> str:
    """Return the path that a word is, "" where it is none."""
    if not text or not _PATH.fullmatch(text):
        return ""
    bare = text.rstrip("/")
    if bare in names or text in names:
        return text
    if text.startswith(("~/", "$HOME/", "$OUT", "$WS", "/", "./", "../")):
        return text if len(text) >= SHORT_PATH else ""
    if "*" in text and text.strip("*"):
        return text
    if text.startswith(".") and len(text) > SHORT_PATH and text[1].isalnum():
        return text
    if "/" in text and text.strip("/"):
        # `and/or`, `24/7`: two plain words with a slash are a path only where one of their parts looks like one.
        parts = text.split("/")
        if text.endswith("/") or "." in text or len(parts) > SHORT_PATH or parts[0] in names:
            return text
        return text if all(re.fullmatch(r"[\w.@+-]+", part) for part in parts) and "or" not in parts else ""
    if "_" in text.strip("_") and text != text.upper() and re.fullmatch(r"\w+", text):
        return text
    if _SUFFIXES.fullmatch(text) and not re.fullmatch(r"[0-9.]+|[a-z]\.[a-z]\.?", text):
        return text
    return ""
