"""Which hosts and URLs a text names: whole words, read as a browser and a suspicious reader both would.

A word that the two would read differently (`https://good.com@evil.com/`, `https://good.com\\@evil.com/`) names nothing.
A bare word that is as likely a file (`setup.py`, `README.md`) names no host; with `https://` before it, it does.
Source: ours, after KAIROS's matching of whole tokens; RFC 3986 and the WHATWG URL standard for the parts of a URL.
"""

import re
from collections.abc import Iterator

from interlock.model.records import dataclass
from interlock.policy.matching import is_unseen, lowered
from interlock.policy.net_paths import climbs
from interlock.policy.network import WEB_PORTS

_WORD = re.compile(r"[^\s\"'`<>|{}“”‘’«»„]+")
_BORDER = re.compile(r"[\s\"'`<>|{}“”‘’«»„]")
_URL = re.compile(r"(?<![A-Za-z0-9+.-])(https?|wss?|ssh|git|git\+https?|git\+ssh)://", re.IGNORECASE)
_BARE = re.compile(r"[^,;()\[\]=]+")
_CLOSING = ".,:;!?)]*"
_OPENING = "([*"
_ADDRESS = re.compile(r"(?:(\w[\w.+-]*)@)?([^\s@/:?#\\]+)(?::([0-9]{1,5}))?(?:[/?#].*)?", re.DOTALL)
_SCP = re.compile(r"[A-Za-z0-9_-]+@([^\s@/:?#\\]+):(?![0-9]+(?:/|$))[^\s@]+")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_LINKED = re.compile(r"(?:(?!\]\().)+")
_AUTHORITY = re.compile(r"[^/?#]*")
_LITERAL = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::([0-9]{1,5}))?")
_PLAIN = re.compile(r"([^:\[\]]+)(?::([0-9]{1,5}))?")
_QUERY = re.compile(r"[?#]")
_HOST_AND_PORT = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]+))(?::([0-9]{1,5}))?")
_PORTS = {"ssh": 22, "git+ssh": 22, "git": 9418}
_FILE_ENDINGS = frozenset(
    (
        "bz",
        "cc",
        "java",
        "la",
        "md",
        "mk",
        "mov",
        "name",
        "pl",
        "pm",
        "ps",
        "py",
        "rs",
        "sc",
        "sh",
        "so",
        "st",
        "tf",
        "vi",
        "zip",
    )
)
"""Top-level domains that are endings of files, or of what programs write with a dot, as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A host, or a URL, that a text names.

    Takes: `host`, as A-labels or an IP literal; `port`, 0 where the text gives none and any web port is
    meant; `scheme`, `""` for a bare word; `path`, `""` where no URL is named, or none whose path is plain;
    `start`, `end`, its span in the text.
    """

    host: str
    port: int
    scheme: str
    path: str
    start: int
    end: int


def canonical_host(text: str) -> str:
    """Return a host name as the boundary writes it, `""` where it is none.

    Holds: a name has at least two labels; Unicode labels come back as A-labels, by no other mapping than lower case, so
    that a letter that only looks alike makes another name.
    """
    name = text.lower().removesuffix(".")
    if not 3 <= len(name) <= 253 or "." not in name:
        return ""
    labels = name.split(".")
    if labels[-1].isdigit():
        return _ipv4(labels)
    if not name.isascii():
        labels = [_a_label(label) for label in labels]
    if not all(map(_LABEL.fullmatch, labels)):
        return ""
    return ".".join(labels)


def _ipv4(labels: list[str]) -> str:
    plain = len(labels) == 4 and all(
        label.isascii() and label.isdigit() and str(int(label)) == label and int(label) < 256
        for label in labels
    )
    return ".".join(labels) if plain else ""


def _a_label(label: str) -> str:
    import unicodedata

    if label.isascii():
        return label
    label = unicodedata.normalize("NFC", label)
    plain = all(char.isalnum() or char == "-" or unicodedata.category(char).startswith("M") for char in label)
    return "xn--" + label.encode("punycode").decode("ascii") if plain else ""


def _ip6(text: str) -> str:
    import ipaddress

    try:
        return ipaddress.IPv6Address(text).compressed if "%" not in text else ""
    except ValueError:
        return ""


def plain_labels(role: str, value: str) -> list[str]:
    """Return what stands letter by letter, but for its case, wherever a text names this `host` or `url`."""
    address = value if role == "host" else value.partition("://")[2].partition("/")[0]
    host = split_host(address)[0]
    # A label beyond ASCII may be written either way, and an IPv6 address in many.
    return [] if ":" in host else [label for label in host.split(".") if not label.startswith("xn--")]


def _words_holding(text: str, part: str) -> Iterator[tuple[str, int]]:
    """Yield the words of a text that hold a part, whatever the case, in order, each with its place."""
    hay = lowered(text)
    if not part or len(hay) != len(text):
        yield from ((word.group(), word.start()) for word in _WORD.finditer(text))
        return
    at = hay.find(part)
    while at >= 0:
        begin, reach = at, 64
        while begin:
            low = max(begin - reach, 0)
            borders = [border.end() for border in _BORDER.finditer(text, low, at)]
            if borders or not low:
                begin = borders[-1] if borders else 0
                break
            reach *= 4
        border = _BORDER.search(text, at)
        end = border.start() if border else len(text)
        yield text[begin:end], begin
        at = hay.find(part, max(end, at + 1))


def _in_word(word: str, at: int) -> list[Mention]:
    found: list[Mention] = []
    # `[words](https://a/b)` is two words
    for piece in _LINKED.finditer(word):
        text, start = piece.group(), at + piece.start()
        url = _URL.search(text)
        bare = text[: url.start()] if url else text
        # What is not seen belongs to the word beside it.
        if url and not (url.start() and is_unseen(text[url.start() - 1])):
            mention = _url(text[url.start() :], start + url.start())
            found += [mention] if mention else []
        for part in _BARE.finditer(bare):
            following = text[part.end() : part.end() + 1]
            mention = _bare(part.group(), start + part.start()) if following != "(" else None
            found += [mention] if mention else []
    return found


def _trimmed(text: str) -> tuple[str, int]:
    inner = text.rstrip(_CLOSING)
    shorter = inner.lstrip(_OPENING)
    return shorter, len(inner) - len(shorter)


def _bare(text: str, at: int) -> Mention | None:
    text, skipped = _trimmed(text)
    start, end = at + skipped, at + skipped + len(text)
    scp = _SCP.fullmatch(text)
    if scp:
        host = canonical_host(scp[1])
        return Mention(host=host, port=22, scheme="", path="", start=start, end=end) if host else None
    parts = _ADDRESS.fullmatch(text)
    if parts is None or parts[1]:
        return None
    host = canonical_host(parts[2])
    port = int(parts[3] or 0)
    if not host or port > 65535 or host.rpartition(".")[2] in _FILE_ENDINGS:
        return None
    return Mention(host=host, port=port, scheme="", path="", start=start, end=end)


def _url(text: str, at: int) -> Mention | None:
    text = text.rstrip(_CLOSING)
    scheme, _, rest = text.partition("://")
    scheme = scheme.lower()
    authority = _AUTHORITY.match(rest)
    assert authority is not None
    named = authority.group()
    if "\\" in named or "%" in named or named.count("@") > 1:
        return None
    user, _, address = named.rpartition("@")
    if "." in user:
        # It may be a host to the reader's eye.
        return None
    literal = _LITERAL.fullmatch(address)
    plain = _PLAIN.fullmatch(address)
    parts = literal or plain
    if parts is None:
        return None
    host = _ip6(parts[1]) if literal else canonical_host(parts[1])
    port = int(parts[2] or _PORTS.get(scheme, 0))
    if not host or port > 65535 or (parts[2] and not port):
        return None
    path = _QUERY.split(rest[authority.end() :], maxsplit=1)[0] or "/"
    if climbs(path):
        path = ""
    return Mention(host=host, port=port, scheme=scheme, path=path, start=at, end=at + len(text))


def names_host(mention: Mention, value: str) -> bool:
    """Say whether a mention names a host as an effect writes it: `host`, or `host:port` off the scheme's port."""
    host, port = split_host(value)
    if mention.host != host:
        return False
    if not port:
        return mention.port in (0, *WEB_PORTS)
    return mention.port == port or (mention.port == 0 and port in WEB_PORTS)


def names_url(mention: Mention, value: str) -> bool:
    """Say whether a mention names a URL (without query): it is equal, or a part of its path up to a `/`."""
    found = re.fullmatch(r"([a-z]+)://([^/]*)(/.*)", value, re.DOTALL)
    if found is None or mention.scheme != found[1] or not mention.path or climbs(found[3]):
        return False
    host, port = split_host(found[2])
    default = {"http": 80, "ws": 80, "https": 443, "wss": 443}.get(mention.scheme, 0)
    if mention.host != host or (mention.port or default) != (port or default):
        return False
    path = mention.path
    return found[3] == path or found[3].startswith(path if path.endswith("/") else path + "/")


def split_host(value: str) -> tuple[str, int]:
    """Return host and port of `host`, `host:port`, `[v6]` or `[v6]:port`; port 0 for none, host `""` for neither."""
    parts = _HOST_AND_PORT.fullmatch(value)
    return ((parts[1] or parts[2]), int(parts[3] or 0)) if parts else ("", 0)


def names_whole_url(mention: Mention, value: str) -> bool:
    """Say whether a mention is the URL, not one above it."""
    path = "/" + value.partition("://")[2].partition("/")[2]
    return mention.path == path and names_url(mention, value)


def find_named(text: str, role: str, value: str, *, whole: bool = False) -> tuple[int, int] | None:
    """Return the span of the first place where a text names a value of role `host` or `url`.

    Takes: `whole`, whether a URL above the value does not name it.
    """
    test = names_host if role == "host" else names_whole_url if whole else names_url
    for word, place in _words_holding(text, max(plain_labels(role, value), key=len, default="")):
        if "." in word or "://" in word:
            for mention in _in_word(word, place):
                if test(mention, value):
                    return mention.start, mention.end
    return None


def span_names(text: str, start: int, end: int, role: str, value: str) -> bool:
    """Check a derivation again: does this span of the text, as a whole word, name the value?

    Holds: looks at the span and its borders alone, not at what `find_named` found.
    """
    if not 0 <= start < end <= len(text):
        return False
    within = text[start:end]
    if any(not _WORD.fullmatch(char) for char in within) or "](" in within:
        return False
    is_url = _URL.match(within) is not None
    mention = _url(within, 0) if is_url else _bare(within, 0)
    if mention is None or (mention.start, mention.end) != (0, len(within)):
        return False
    after = end
    while after < len(text) and text[after] in _CLOSING:
        after += 1
    before = start
    while before and not is_url and text[before - 1] in _OPENING:
        before -= 1
    inner = "" if is_url else ",;()[]="
    closed = after == len(text) or not _WORD.fullmatch(text[after]) or text[after] in inner
    closed = closed or text[end : after + 1].endswith("](") or any(c in inner for c in text[end:after])
    opened = before == 0 or not _WORD.fullmatch(text[before - 1]) or text[before - 1] in inner
    opened = opened or (is_url and re.match(r"[A-Za-z0-9+.-]", text[start - 1]) is None)
    opened = opened or any(c in inner for c in text[before:start])
    if not is_url and text[end : end + 1] == "(":
        return False
    return closed and opened and (names_host if role == "host" else names_url)(mention, value)
