"""What a person said about a review, in a few words, becomes a file of answers.

Refusals by name stand first, so no release can reach what a clause names to be refused; `abort everything` stands before
`commit everything`; what no clause speaks of is refused. Requests are released only to hosts that the task or the policy
names, and only where the words speak of requests.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import yaml
from tests.scenarios.wording import HostWord, Word, word_set, words_of

from interlock.model.records import dataclass
from interlock.policy.executable_table import TABLE

_COMMIT = word_set(
    "commit commits committing accept accepts keep allow allows let merge approve approved apply release save yes ok okay "
    "take install write include committed accepted kept allowed released approved included go goes pass passes stay stays"
)
_SEND = word_set(
    "send push post publish upload call request fetch download sent pushed posted published uploaded"
)
_REFUSE = word_set(
    "abort aborts refuse refuses drop discard reject rejects deny block revert undo cancel remove delete ignore stop hold "
    "withhold restore roll throw leave forbid prevent dismiss decline skip exclude strip mask aborted refused dropped discarded rejected denied blocked withheld forbidden "
    "reverted excluded ignored removed masked stripped skipped thrown"
)
_NOT = word_set("no not nothing never without none neither nor don't dont minus cannot nobody")
_EXCEPT = word_set("except excepting besides save bar")
_BREAKS = word_set("and then while plus or also")
_KEEPS = word_set("keep keeps kept save stay stays")
_GOES = word_set("go goes")
_ONWARD = word_set("out ahead through in")
_IS = word_set("is are be do does did should must may can will would")
_FINE = re.compile(r"\b(?:is|are) (?:fine|ok|okay|right|good|wanted|welcome|allowed)\b")
_HOME = word_set("home $home")
_BUT = "but"
_KEPT = "kept"
_AS_BEFORE = re.compile(
    r"\b(?:(?:as|where) (?:it|they) (?:was|were|is|are)|unchanged|untouched|alone|out|original|old|back)\b"
)
_REST = word_set("rest else others other remaining remainder")
_FILES = word_set(
    "file files workspace change changes everything all result results output outputs work edit edits local locally tree "
    "part parts diff disk"
)
_EVERYTHING = word_set(
    "everything all anything session run lot whole scope transaction moves renames move rename"
)
_ASIDE = word_set("after when once if because since before until so that")
_NET = word_set(
    "post posts request requests upload uploads publish publishing publication call calls wire network net traffic message "
    "messages packet packets dns query queries fetch send sending connection connections host hosts internet exfiltration "
    "tarball download webhook"
)
_PUSH = word_set("push pushes pushing")
_KINDS: dict[str, tuple[str, ...]] = {
    "hook": ("git-hook", "commit-checks"),
    "config": ("git-config", "mcp-config", "program-config", "package-manager"),
    "configuration": ("git-config", "mcp-config", "program-config", "package-manager"),
    "settings": ("agent-settings", "editor", "mcp-config"),
    "filter": ("git-attribute*", "*filter*"),
    "workflow": ("ci",),
    "pipeline": ("ci",),
    "task": ("editor",),
    "memory": ("agent-memory",),
    "instruction": ("agent-memory",),
    "rule": ("agent-memory", "agent-settings"),
    "alias": ("shell-rc", "git-config"),
    "profile": ("shell-rc",),
    "server": ("mcp-config",),
    "unit": ("unit",),
    "service": ("unit",),
    "timer": ("unit",),
    "startup": ("python-startup", "shell-rc", "unit"),
    "submodule": ("git-modules", "git-link"),
    "image": ("*image*",),
    "loss": ("*loss*", "*unsaved*", "*lose*"),
}
_FILLERS = word_set(
    "the a an my its it this that these those one two only just both any each of in into on to for with from at by as is "
    "are be do does did may can could must might order new same first last once twice please fine good right so there here what which will would "
    "should line lines entry entries user's user agent's agent review reviewed held deferred staged them"
)
_LONG_ENOUGH = 3
_HARD = "facet:*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One thing that was said: `release` or not, of these words; `bare` where nothing is named."""

    release: bool
    words: tuple[Word, ...]
    verb: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Rules in their order, and what could not be read.

    Takes: `unwanted`, paths of a refusal; `general`, whether files were released without a name; `abort`, whether
    the whole session was called off; `wanted`, paths of a release; `no_push`, whether pushes are refused and none is
    released; `unwanted_words`, the one noun of a refusal that names no path (`the report`).
    """

    rules: tuple[dict[str, str], ...]
    unread: tuple[str, ...]
    unwanted: tuple[str, ...]
    general: bool
    abort: bool = False
    unwanted_words: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    no_push: bool = False

    def text(self) -> str:
        """Return the file."""
        return yaml.safe_dump(list(self.rules), sort_keys=False, allow_unicode=True, width=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the person knows when they answer.

    Takes: `destinations`, that the policy or the task names; `remotes`, of the repository at the start; `wary`, whether
    untrusted words are in play.
    """

    task: str
    destinations: tuple[HostWord, ...] = ()
    remotes: tuple[HostWord, ...] = ()
    names: tuple[str, ...] = ()
    wary: bool = False


def clauses_of(resolution: str, names: Iterable[str] = ()) -> tuple[list[Clause], list[str]]:
    """Split what was said into clauses, each with its polarity."""
    parts: list[list[Word]] = [[]]
    words = words_of(resolution, names=names)
    for number, word in enumerate(words):
        low = word.text.lower()
        if low in _BREAKS and not word.path:
            if _verb_follows(words[number + 1 :]):
                parts.append([])
        elif low in ("not", "no") and parts[-1] and (_ends(words, number) or _is(parts[-1][-1])):
            # `the hook no`, `the hook is not`: it turns what stands before it.
            parts[-1].append(word)
        elif low in _EXCEPT | {"without", "not", "no", _BUT} and not word.path and parts[-1]:
            # `save` is a verb where it comes first.
            parts.append([word])
        else:
            parts[-1].append(word)
        if any(mark in word.ends for mark in ",;:.!") or word.ends.endswith(")"):
            parts.append([])
    clauses: list[Clause] = []
    unread: list[str] = []
    before: bool | None = None
    for part in parts:
        if not part:
            continue
        clause = _clause(part, before)
        if clause is None:
            unread.append(" ".join(word.text for word in part))
            continue
        clauses.append(clause)
        if clause.verb == _KEPT:
            # `keep a, b unchanged`: what was said last is meant of all of them.
            for at in range(len(clauses) - 1, -1, -1):
                own = clauses[at].verb
                if own not in (_KEPT, "", "keep", "let"):
                    break
                clauses[at] = replace(clauses[at], release=False)
                if own in ("keep", "let"):
                    break
        if clause.verb not in (_BUT, "except"):
            before = clause.release
    return clauses, unread


def _ends(words: list[Word], number: int) -> bool:
    return number + 1 == len(words) or bool(words[number].ends)


def _is(word: Word) -> bool:
    return not word.path and word.text.lower() in _IS


def _verb_follows(words: list[Word]) -> bool:
    """Say whether what stands behind an `and` says something of its own, up to where it ends."""
    for word in words:
        low = word.text.lower()
        if low in _COMMIT | _SEND | _REFUSE | _NOT and not word.path:
            return True
        if low in _BREAKS or any(mark in word.ends for mark in ",;:.!"):
            return False
    return False


def _clause(part: list[Word], before: bool | None) -> Clause | None:
    low = [word.text.lower().replace("’", "'") if not word.path and not word.host else "" for word in part]
    text = " ".join(low)
    verb, release = "", None
    if _FINE.search(text) and not set(low) & _NOT:
        return Clause(release=True, words=tuple(part), verb="accept")
    for number, one in enumerate(low):
        if one in _NOT:
            verb, release = "not", False
            break
        if one == _BUT:
            # `but drop it` is a clause of its own, `all but this one` an exception.
            if number == 0 and before is not None and not set(low[1:]) & (_NOT | _REFUSE | _COMMIT | _SEND):
                verb, release = _BUT, not before
                break
            continue
        if one in _EXCEPT and number == 0 and before is not None:
            verb, release = "except", not before
            break
        if one in _REFUSE:
            verb, release = one, False
            break
        if one in _COMMIT or one in _SEND:
            verb, release = one, True
            # `commit nothing`, `post only once but not …`: a negation anywhere turns it.
            if any(other in _NOT for other in low[number:]):
                release = False
            break
    objects = any(word.path or word.host for word in part) or bool(_nouns(low))
    if release and verb in ("keep", "let", "stay", "stays") and _AS_BEFORE.search(text):
        return Clause(release=False, words=tuple(part), verb=_KEPT)
    if release is None:
        if not objects:
            return None
        if before is not None and _AS_BEFORE.search(text):
            release, verb = False, _KEPT
        elif before is not None:
            release = before
        elif "only" in low:
            release, verb = True, "only"
        else:
            return None
    return Clause(release=release, words=tuple(part), verb=verb)


def _nouns(low: Sequence[str]) -> list[str]:
    # What stands behind `after` or `once` says when, not what.
    aside = next((at for at, one in enumerate(low) if at and one in _ASIDE), len(low))
    low = low[:aside]
    skip = _FILLERS | _NOT | _EXCEPT | _REFUSE | {_BUT}
    return [one for one in low if one and one not in skip and re.fullmatch(r"[a-z][a-z'-]*", one)]


def answers_of(resolution: str, asked: Asked) -> Answers:
    """Translate what was said about a review."""
    clauses, unread = clauses_of(resolution, asked.names)
    refused: list[dict[str, str]] = []
    named: list[dict[str, str]] = []
    named_refused: list[dict[str, str]] = []
    last: list[dict[str, str]] = []
    unwanted: list[str] = []
    general = abort = guarded = going = False
    unwanted_words: list[str] = []
    wanted: list[str] = []
    pushes: set[bool] = set()
    for clause in clauses:
        low = [word.text.lower() if not (word.path or word.host) else "" for word in clause.words]
        paths = [word.path for word in clause.words if word.path]
        hosts = [word.host for word in clause.words if word.host]
        nouns = [noun for noun in _nouns(low) if noun not in _COMMIT]
        kinds = [kind for noun in nouns for kind in _kinds(noun)]
        wire = [noun for noun in nouns if noun in _NET]
        push = [noun for noun in nouns if noun in _PUSH]
        others = [
            noun
            for noun in nouns
            if noun not in _NET | _PUSH | _FILES | _REST | _SEND | _EVERYTHING | _HOME
            and not _kinds(noun)
            and len(noun) >= _LONG_ENOUGH
        ]
        reason = " ".join(word.text for word in clause.words)
        if clause.release and clause.verb in _GOES and not set(low) & _ONWARD:
            # What goes is gone: its removal is wanted, and nothing else of it.
            for path in paths:
                named += [_rule(f"file.delete {p}", "release", reason) for p in patterns_of(path)]
            named += [
                _rule(f"file.delete **{_any_case(noun)}*", "release", reason) for noun in others if not paths
            ]
            going = going or not (paths or others)
            continue
        pushes |= {clause.release} if push and not hosts else set()
        if clause.release:
            wanted += paths
            for path in paths:
                if clause.verb in _KEEPS:
                    # Whoever keeps a file does not have it deleted.
                    refused += [_rule(f"file.delete {p}", "refuse", reason) for p in patterns_of(path)]
                named += [_rule(f"file.* {pattern}", "release", reason) for pattern in patterns_of(path)]
            named += [_rule(f"facet:{kind}", "release", reason) for kind in kinds if not paths]
            named += [
                _rule(f"file.* **{_any_case(noun)}*", "release", reason) for noun in others if not paths
            ]
            if push or wire or hosts:
                only_push = not wire and bool(push)
                if only_push and not paths:
                    # Words about a push alone let no secret out with it.
                    refused.append(_rule("net.* level:secret", "refuse", reason))
                named += _released_requests(asked, hosts, pushes=only_push, reason=reason)
            spoken = paths or kinds or others or push or wire or hosts
            files = [noun for noun in nouns if noun in _FILES]
            if others and not (paths or kinds or push or wire or hosts) and clause.verb in _COMMIT:
                # `commit the line`: the one thing that was asked for.
                general, guarded = True, True
            if (clause.verb in _COMMIT and not spoken) or (files and not paths and not kinds):
                general = True
            continue
        for path in paths:
            unwanted.append(path)
            refused += [_rule(f"file.* {pattern}", "refuse", reason) for pattern in patterns_of(path)]
        for host in hosts:
            refused += [_rule(f"net.* {pattern}", "refuse", reason) for pattern in _urls(host)]
        refused += [_rule(f"facet:{kind}", "refuse", reason) for kind in kinds if not paths]
        named_refused += [
            _rule(f"file.* **{_any_case(noun)}*", "refuse", reason) for noun in others if not paths
        ]
        if clause.verb in _REFUSE and len(others) == 1 and len(nouns) == 1:
            unwanted_words += others
        if set(nouns) & _HOME and not paths:
            refused.append(_rule("file.* home:**", "refuse", reason))
        if push and not hosts:
            refused.append(_rule("net.* **git-receive-pack**", "refuse", reason))
        if wire and not hosts:
            refused.append(_rule("net.* **", "refuse", reason))
        spoken = paths or hosts or kinds or others or push or wire
        if any(noun in _REST for noun in nouns):
            continue
        if (not spoken and clause.verb in _REFUSE and not set(nouns) - _EVERYTHING) or (
            set(nouns) & _EVERYTHING and not spoken
        ):
            last.append(_rule("**", "refuse", reason))
            abort = True
        elif set(nouns) & _FILES and not spoken:
            last.append(_rule("file.* **", "refuse", reason))
    if going:
        last.append(_rule("file.delete **", "release", "what goes is gone"))
    rules = refused + named + named_refused + last
    if general:
        rules += _general(asked, wary=asked.wary or guarded)
    return Answers(
        rules=tuple(_once(rules)),
        unread=tuple(unread),
        unwanted=tuple(dict.fromkeys(unwanted)),
        unwanted_words=tuple(dict.fromkeys(unwanted_words)),
        wanted=tuple(wanted),
        no_push=pushes == {False},
        general=general,
        abort=abort and not any(clause.release for clause in clauses),
    )


def _any_case(noun: str) -> str:
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in noun)


def _kinds(noun: str) -> tuple[str, ...]:
    for word in (noun, noun.removesuffix("s"), noun.removesuffix("es")):
        if word in _KINDS:
            return _KINDS[word]
    return ()


def _general(asked: Asked, *, wary: bool) -> list[dict[str, str]]:
    """Release what is deferred among files; where untrusted words are in play, of what runs only what the task names."""
    rules: list[dict[str, str]] = []
    if wary:
        for word in words_of(asked.task, names=asked.names):
            if word.path:
                rules += [
                    _rule(f"file.* {pattern}", "release", "the task names it")
                    for pattern in patterns_of(word.path, below=False)
                ]
        rules += [
            _rule(f"facet:{kind}", "release", "the task speaks of it") for kind in cued_kinds(asked.task)
        ]
        rules.append(_rule(_HARD, "refuse", "it runs, and the task does not speak of it"))
    rules.append(_rule("file.* **", "release", "all that was reviewed"))
    return rules


def cued_kinds(task: str) -> list[str]:
    """Return the kinds of executable effects that a task speaks of, by the product's own cues."""
    low = task.casefold()
    return list(
        dict.fromkeys(
            entry.kind
            for entry in TABLE
            if any(re.search(rf"(?<![\w./@-]){re.escape(cue)}(?![\w/-]|\.\w)", low) for cue in entry.cues)
        )
    )


def _released_requests(
    asked: Asked, hosts: list[HostWord], *, pushes: bool, reason: str
) -> list[dict[str, str]]:
    """Release requests to known destinations; a host that the words name must be known as well."""
    known = (*asked.destinations, *(asked.remotes if pushes else ()))
    if hosts:
        names = {host.host for host in hosts}
        known = tuple(one for one in known if one.host in names)
    tail = "git-receive-pack" if pushes else ""
    return [_rule(f"net.write {url}{tail}", "release", reason) for one in known for url in _urls(one)]


def _urls(host: HostWord) -> list[str]:
    port = f":{host.port}" if host.port and host.port not in (80, 443) else ""
    path = re.sub(r"\*+$", "", host.path) or "/"
    found = []
    for scheme in [host.scheme] if host.scheme else ["http", "https"]:
        base = f"{scheme}://{host.host}{port}{path}"
        if path.endswith("/"):
            found.append(base + "**")
        else:
            found += [base, base + "/**", base + "[?]**"]
    return found


def patterns_of(path: str, *, below: bool = True) -> list[str]:
    """Return the patterns of answers that cover a path wherever it is staged, and what lies below it."""
    path = path.rstrip("/") or path
    if path.startswith(("~/", "$HOME/")):
        rest = path.partition("/")[2]
        found = [f"home:{rest}"]
    elif path.startswith(("$OUT/", "/")):
        parts = [part for part in path.split("/") if part and not part.startswith("$")]
        found = [f"folder:{parts[at - 1]}:{'/'.join(parts[at:])}" for at in range(1, len(parts))]
        found.append(f"folder:{parts[-1]}:**") if parts else None
    else:
        rest = re.sub(r"^(?:\$WS/|\./)", "", path)
        found = (
            [f"*:{rest}", f"**/{rest}"] if not rest.startswith("**/") else [f"*:{rest[3:]}", f"**/{rest[3:]}"]
        )
    if below:
        found += [f"{pattern}/**" for pattern in found if not pattern.endswith("**")]
    return found


def _rule(match: str, answer: str, reason: str) -> dict[str, str]:
    return {"match": match, "answer": answer, "reason": reason}


def _once(rules: list[dict[str, str]]) -> list[dict[str, str]]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for rule in rules:
        found.setdefault((rule["match"], rule["answer"]), rule)
    return list(found.values())
