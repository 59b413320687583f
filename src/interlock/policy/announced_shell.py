"""Shell commands read as far as that is safe: what a command names, and whether it may do more than it names.

Quotes, redirections, pipes, lists, here-documents, `cd` and `bash -c` are read. A word that the shell makes only when
it runs (a variable, a substitution, a glob), a keyword, and a program that is not in the table leave a command *open*:
it may do anything, and what it names is only what stands in it as text.
Source: POSIX, shell command language, §2; the table of programs, ours.
"""

import re
from collections.abc import Iterator, Sequence

from interlock.model.records import dataclass
from interlock.policy.announced_words import MAX_WORDS, Token, Unreadable, Word, tokens_of

MAX_COMMAND = 100_000
"""Characters; of a longer one nothing is read."""
_DEPTH = 4


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_KEYWORDS = words(
    "if then elif else fi for while until do done case esac in function select time coproc ! { } [[ ]]"
)
_ENDS = frozenset({";", "&", "&&", "||", "|", "|&", "\n", "(", ")", ";;"})
_OUTWARD = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
_INWARD = frozenset({"<", "<<<", "<&"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")

READERS = words(
    "cat head tail ls echo printf pwd wc grep egrep fgrep cut tr true false test [ : stat cmp diff basename dirname "
    "date which whoami id uname sleep md5sum sha1sum sha256sum sha512sum du df nl seq realpath readlink jq column "
    "fold rev tac paste comm cksum nproc free uptime type"
)
"""Programs that write nothing and send nothing, whatever their words are."""
WRITERS = words("touch mkdir rmdir rm cp mv ln tee chmod chown chgrp truncate unlink")
"""Programs that write nothing but what their words name."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_LINGERING = frozenset({"nohup", "setsid", "disown", "daemon", "daemonize", "screen", "tmux", "at", "batch"})
_URL = re.compile(r"\b(?:https?|wss?|ftp|ssh|git|rsync|s3)://[^\s'\"<>|;)]+", re.IGNORECASE)
_IN_TEXT = re.compile(r"[\w./~@%+:,#\[\]-]+")
_CURL_BODIES = words(
    "-d --data --data-raw --data-binary --data-ascii --data-urlencode --json -H --header -F --form --form-string -A "
    "--user-agent -u --user -b --cookie -e --referer -X --request -T --upload-file -w --write-out -m --max-time "
    "--connect-timeout --retry --cacert -x --proxy --resolve --connect-to"
)
"""Options of curl whose value is no URL."""
_CURL_AROUND = words("-L --location -K --config --location-trusted -x --proxy --resolve --connect-to")
"""Options with which it reaches other hosts than its words name."""
_CURL_FILES = words("-o --output -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a command says.

    Takes: `writes`, names of files that it may change; `hosts`, URLs or hosts that it may reach; `folders`, where it
    went by `cd`; `open`, whether it may do anything beside; `wanders`, whether it went to a folder that cannot be told;
    `lingers`, whether something of it may go on when it has returned.
    """

    writes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    open: bool = False
    wanders: bool = False
    lingers: bool = False


def read_command(text: str, depth: int = 0) -> Command:
    """Read a shell command. Holds: total; what cannot be read is open."""
    if len(text) > MAX_COMMAND or depth > _DEPTH:
        return Command(writes=tuple(words_in(text[:MAX_COMMAND])), open=True, wanders=True, lingers=True)
    try:
        tokens = list(tokens_of(text))
    except Unreadable:
        return Command(
            writes=tuple(words_in(text)), hosts=tuple(urls_in(text)), open=True, wanders=True, lingers=True
        )
    found = _Found()
    at: list[Token] = []
    for token in tokens:
        if token.word is None and token.operator in _ENDS:
            found.lingers |= token.operator == "&"
            _simple(found, at, depth)
            at = []
        else:
            at.append(token)
    _simple(found, at, depth)
    return found.command()


def read_argv(argv: Sequence[str]) -> Command:
    """Read a command that no shell splits: a program and its words."""
    found = _Found()
    _program(found, [Word(text=word, quoted=True) for word in argv[:MAX_WORDS]], 0)
    return found.command()


def words_in(text: str) -> Iterator[str]:
    """Yield what may be a file's name in a text that is no plain command (a program, an unknown tool's argument)."""
    for number, match in enumerate(_IN_TEXT.finditer(text)):
        if number >= MAX_WORDS:
            return
        word = match[0].strip(",:")
        if word:
            yield word
            if word[-1:] in ".]" and word.strip(".]["):
                yield word.strip(".][")


def urls_in(text: str) -> Iterator[str]:
    """Yield the URLs in a text."""
    for number, match in enumerate(_URL.finditer(text)):
        if number >= MAX_WORDS:
            return
        yield match[0]


class _Found:
    """What was read so far."""

    def __init__(self) -> None:
        self.writes: dict[str, None] = {}
        self.hosts: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self.open = self.wanders = self.lingers = False

    def mentions(self, text: str) -> None:
        """Take a text of a program that may do anything: all that it says may be what it does."""
        self.writes.update(dict.fromkeys(words_in(text)))
        if text not in self.writes and len(text) < 4096 and "\n" not in text:
            self.writes[text] = None
        self.hosts.update(dict.fromkeys(urls_in(text)))
        self.hosts.update(dict.fromkeys(word for word in words_in(text) if _may_be_host(word)))

    def takes(self, inner: Command) -> None:
        """Take what a command inside says."""
        self.writes.update(dict.fromkeys(inner.writes))
        self.hosts.update(dict.fromkeys(inner.hosts))
        self.folders.update(dict.fromkeys(inner.folders))
        self.open |= inner.open
        self.wanders |= inner.wanders
        self.lingers |= inner.lingers

    def command(self) -> Command:
        return Command(
            writes=tuple(self.writes)[:MAX_WORDS],
            hosts=tuple(self.hosts)[:MAX_WORDS],
            folders=tuple(self.folders)[:MAX_WORDS],
            open=self.open,
            wanders=self.wanders,
            lingers=self.lingers,
        )


def _simple(found: _Found, tokens: list[Token], depth: int) -> None:
    """Take one simple command with its redirections."""
    words: list[Word] = []
    target = ""
    for token in tokens:
        if token.word is None:
            target = token.operator
            continue
        if token.runs:
            # What is substituted is a command of its own, and its output may be anything.
            found.open = True
            found.mentions(token.word.text)
        if target in _OUTWARD:
            _write(found, token.word)
        elif not target:
            words.append(token.word)
        target = ""
    if words:
        _program(found, words, depth)


def _write(found: _Found, word: Word) -> None:
    if word.text.isdecimal() or word.text in ("-", "/dev/null", "/dev/stdout", "/dev/stderr"):
        return
    if word.text.startswith("/dev/tcp/") or word.text.startswith("/dev/udp/"):
        parts = word.text.split("/")
        found.hosts[":".join(parts[3:5])] = None
        return
    if word.made:
        found.open = True
    found.writes[word.text] = None


def _program(found: _Found, words: list[Word], depth: int) -> None:
    name, rest = words[0], words[1:]
    plain = name.text.rpartition("/")[2] if re.fullmatch(r"(/usr)?/bin/[\w.\[-]+", name.text) else name.text
    if plain in _LINGERING:
        found.lingers = True
    if name.made or (not name.quoted and (plain in _KEYWORDS or _ASSIGNMENT.match(plain))):
        _anything(found, words)
    elif plain in ("cd", "pushd"):
        _goes(found, rest)
    elif plain in READERS:
        pass
    elif plain in WRITERS:
        for word in rest:
            if not word.text.startswith("-") or word.made:
                _write(found, word)
            elif "=" in word.text:
                _write(found, Word(text=word.text.partition("=")[2], made=word.made))
    elif plain == "sort":
        _sort(found, rest)
    elif plain == "sed":
        _sed(found, words)
    elif plain == "find":
        _find(found, words)
    elif plain == "curl":
        _curl(found, words)
    elif plain in SHELLS:
        _shell(found, words, depth)
    elif plain in ("export", "set", "exit", "umask", "popd", "wait", "return"):
        found.open |= any(word.made for word in rest) or plain in ("export", "set")
    else:
        _anything(found, words)


def _anything(found: _Found, words: list[Word]) -> None:
    found.open = True
    for word in words:
        found.mentions(word.text)
        if _ASSIGNMENT.match(word.text):
            found.mentions(word.text.partition("=")[2])


def _goes(found: _Found, rest: list[Word]) -> None:
    words = [word for word in rest if word.text not in ("--", "-P", "-L")]
    if len(words) == 1 and not words[0].made and words[0].text != "-":
        found.folders[words[0].text] = None
    else:
        found.wanders = True


def _sort(found: _Found, rest: list[Word]) -> None:
    for number, word in enumerate(rest):
        if word.text in ("-o", "--output") and number + 1 < len(rest):
            _write(found, rest[number + 1])
        elif word.text.startswith("--output="):
            _write(found, Word(text=word.text.partition("=")[2], made=word.made))
        elif word.made or re.match(r"-\w*o|--compress", word.text):
            _anything(found, rest)


def _sed(found: _Found, words: list[Word]) -> None:
    """Printing lines is known; any other script of sed may write, and may run a command."""
    rest = [word.text for word in words[1:]]
    if rest[:1] in (["-n"], ["-ne"]) and len(rest) > 1 and re.fullmatch(r"[\d,$]+p", rest[1]):
        return
    _anything(found, words)


def _find(found: _Found, words: list[Word]) -> None:
    acts = ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls")
    if any(word.text in acts for word in words):
        _anything(found, words)


def _curl(found: _Found, words: list[Word]) -> None:
    """Take a curl command: the URLs in its words, and the files that it writes."""
    before = ""
    for word in words[1:]:
        option = word.text.partition("=")[0] if word.text.startswith("--") else word.text
        if option in _CURL_AROUND or re.fullmatch(r"-[a-zA-Z]*L[a-zA-Z]*", option):
            found.open = True
        if re.fullmatch(r"-[a-zA-Z]*O[a-zA-Z]*|--remote-name(-all)?|-[a-zA-Z]*J[a-zA-Z]*", option):
            found.open = True  # the URL, or the far side, names the file
        if before in _CURL_FILES or re.fullmatch(r"-[a-zA-Z]+o", before):
            _write(found, word)
        elif word.text.startswith("-"):
            if option in _CURL_FILES and "=" in word.text:
                _write(found, Word(text=word.text.partition("=")[2], made=word.made))
            before = option
            continue
        elif before not in _CURL_BODIES:
            found.open |= word.made or any(char in word.text for char in "{[")
            found.hosts[word.text] = None
        before = ""


def _shell(found: _Found, words: list[Word], depth: int) -> None:
    """Take `bash -c TEXT`: its text is a command like this one."""
    for number, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word.text) and not word.made:
            rest = words[number + 1 :]
            if len(rest) == 1 and not rest[0].made:
                found.takes(read_command(rest[0].text, depth + 1))
                return
            break
        if word.text not in ("-l", "--login", "-e", "-u", "-x", "--norc", "--noprofile", "-o", "pipefail"):
            break
    _anything(found, words)


def _may_be_host(word: str) -> bool:
    return ("." in word and len(word) < 260) or re.fullmatch(
        r"localhost(:\d+)?.*|[\w.-]+:\d+.*", word
    ) is not None
