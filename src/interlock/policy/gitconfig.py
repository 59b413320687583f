"""Git's configuration files: read them, and say whether a change of one can name a program.

Git takes programs, and files that name programs, from more keys than can be listed (aliases, filters,
drivers, extensions of other tools). So the harmless keys are listed; every other key that changes counts.
Source: git-config(1), syntax; ours, the list.
"""

import re

from interlock.policy.globs import matcher

Entries = dict[str, tuple[str, ...]]
"""Full key (section and name in lower case, subsection as written) to its values in order."""

_HEADER = re.compile(r"\[\s*([A-Za-z0-9.-]+)(?:[ \t]+\"((?:\\[^\n\0]|[^\"\\\n\0])*)\")?[ \t]*\]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}
_BOOLEAN = re.compile(r"(?i)true|false|yes|no|on|off|0|1|")
_PLAIN_URL = re.compile(
    r"(?:https?|git|ssh|file)://[^\s\0:@-][^\s\0]*|(?!.*::)[\w.][\w.@-]*:(?!//)[^\s\0-][^\s\0]*|\.{0,2}/[^\s\0]*"
)

HARMLESS: tuple[str, ...] = (
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "core.abbrev",
    "core.compression",
    "core.longpaths",
    "core.untrackedcache",
    "core.preloadindex",
    "core.whitespace",
    "core.trustctime",
    "core.checkstat",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.commitgraph",
    "core.multipackindex",
    "user.name",
    "user.email",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
    "init.defaultbranch",
    "branch.*.merge",
    "branch.*.description",
    "branch.*.rebase",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.sort",
    "remote.*.fetch",
    "remote.*.tagopt",
    "remote.*.prune",
    "remote.*.prunetags",
    "remote.*.promisor",
    "remote.*.partialclonefilter",
    "remote.*.gh-resolved",
    "extensions.objectformat",
    "extensions.partialclone",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "extensions.preciousobjects",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "push.autosetupremote",
    "push.followtags",
    "fetch.prune",
    "fetch.prunetags",
    "fetch.parallel",
    "fetch.writecommitgraph",
    "merge.ff",
    "merge.conflictstyle",
    "merge.renames",
    "merge.stat",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.updaterefs",
    "rebase.stat",
    "diff.algorithm",
    "diff.renames",
    "diff.mnemonicprefix",
    "diff.colormoved",
    "diff.context",
    "diff.noprefix",
    "diff.submodule",
    "status.*",
    "color.*",
    "advice.*",
    "column.*",
    "log.date",
    "log.decorate",
    "commit.verbose",
    "commit.cleanup",
    "rerere.enabled",
    "rerere.autoupdate",
    "gc.auto",
    "gc.autodetach",
    "gc.pruneexpire",
    "maintenance.auto",
    "maintenance.strategy",
    "feature.manyfiles",
    "feature.experimental",
    "index.version",
    "index.threads",
    "submodule.*.active",
    "submodule.*.ignore",
    "submodule.*.branch",
    "submodule.*.shallow",
    "submodule.active",
    "submodule.recurse",
    "submodule.fetchjobs",
    "lfs.repositoryformatversion",
    "lfs.*.access",
)
"""Keys that no value of can name a program, a file that names one, or another place to send to."""

PROGRAM_SECTIONS: frozenset[str] = frozenset(
    {
        "alias",
        "browser",
        "core",
        "credential",
        "diff",
        "difftool",
        "filter",
        "gpg",
        "guitool",
        "http",
        "include",
        "includeif",
        "instaweb",
        "man",
        "merge",
        "mergetool",
        "pager",
        "protocol",
        "remote",
        "sendemail",
        "sequence",
        "ssh",
        "submodule",
        "tar",
        "trailer",
        "uploadpack",
        "url",
    }
)
"""Sections by which a file named `config` outside of `.git` is told to be Git's (a bare repository's)."""


def parse(text: str) -> Entries | None:
    """Read a configuration file; None if it cannot be read.

    Holds: where Git reads the file, this returns what Git reads, or None.
    """
    if "\0" in text:
        return None
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if "\r" in text:
        return None
    entries: dict[str, tuple[str, ...]] = {}
    prefix: str | None = None
    at = 0
    while at < len(text):
        char = text[at]
        if char in " \t\n\v\f":
            at += 1
        elif char in "#;":
            at = _line_end(text, at)
        elif char == "[":
            header = _HEADER.match(text, at)
            if header is None:
                return None
            prefix = header.group(1).lower()
            if header.group(2) is not None:
                prefix += "." + re.sub(r"\\(.)", r"\1", header.group(2))
            at = header.end()
        else:
            name = _NAME.match(text, at)
            if name is None or prefix is None:
                return None
            found = _value(text, name.end())
            if found is None:
                return None
            value, at = found
            key = f"{prefix}.{name.group().lower()}"
            entries[key] = (*entries.get(key, ()), value)
    return entries


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _value(text: str, at: int) -> tuple[str, int] | None:
    while text[at : at + 1] in {" ", "\t"}:
        at += 1
    if text[at : at + 1] in {"", "\n"}:
        return "true", at
    if text[at] in "#;":
        return "true", _line_end(text, at)
    if text[at] != "=":
        return None
    at += 1
    out: list[str] = []
    kept = 0
    quoted = False
    while at < len(text) and text[at] != "\n":
        char = text[at]
        at += 1
        if char == "\\":
            escaped = text[at : at + 1]
            at += 1
            if escaped == "\n":
                continue
            if escaped not in _ESCAPES:
                return None
            out.append(_ESCAPES[escaped])
            kept = len(out)
        elif char == '"':
            quoted = not quoted
            kept = len(out)
        elif char in "#;" and not quoted:
            at = _line_end(text, at)
            break
        elif char in " \t\v\f" and not quoted:
            if out:
                out.append(char)
        else:
            out.append(char)
            kept = len(out)
    if quoted:
        return None
    return "".join(out[:kept]), at


def telling_change(before: str, after: str) -> str:
    """Return the first key whose change can name a program or another remote, `""` for none.

    Takes: both texts, `""` where there is no file. A text that cannot be read is told as `unreadable`.
    """
    old, new = parse(before), parse(after)
    if old is None or new is None:
        return "unreadable"
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key) and not _harmless(key, old, new):
            return key
    return ""


def is_git(text: str) -> bool:
    """Return whether a text reads as a Git configuration with sections that can name programs."""
    entries = parse(text)
    return entries is not None and any(key.split(".", 1)[0] in PROGRAM_SECTIONS for key in entries)


def _harmless(key: str, old: Entries, new: Entries) -> bool:
    section, _, rest = key.partition(".")
    name = rest.rpartition(".")[2]
    subsection = rest.rpartition(".")[0]
    values = new.get(key, ())
    plain_key = f"{section}.*.{name}" if subsection else f"{section}.{name}"
    if matcher(HARMLESS, wide=False).fullmatch(plain_key):
        return True
    if key == "core.fsmonitor":
        return all(_BOOLEAN.fullmatch(value) for value in (*values, *old.get(key, ())))
    if plain_key in {"branch.*.remote", "branch.*.pushremote"}:
        # A branch may follow a remote that was there; following an address or a new remote sends elsewhere.
        known = old if old else new
        return all(value == "." or f"remote.{value}.url" in known for value in values)
    if plain_key in {"remote.*.url", "submodule.*.url"}:
        # The remote of a repository that is new as a whole (a clone) takes nothing from an existing one.
        return not old and len(values) == 1 and _PLAIN_URL.fullmatch(values[0]) is not None
    if plain_key == "submodule.*.update":
        return all(value in {"checkout", "rebase", "merge", "none"} for value in values)
    return False
