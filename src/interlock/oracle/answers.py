"""Answers given ahead: a file of patterns that says what may be released without asking again."""

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

import yaml

from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.labels import Confidentiality
from interlock.model.places import WORKSPACE
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision
from interlock.oracle.question import Question, carries_too_much, is_conflict, sanity

_SIZE_LIMIT_BYTES = 1 << 20
_KEYS = ("match", "answer", "hunks", "reason")
_MERGE = "merge"
_REDACT = "redact"
_DECISIONS = {
    "release": Decision.RELEASE,
    _MERGE: Decision.RELEASE,
    _REDACT: Decision.RELEASE,
    "refuse": Decision.REFUSE,
}
_HUNKS_LIMIT = 10_000
_HUNK = re.compile(r"[1-9][0-9]{0,6}")
_FACET = "facet:"
_LEVEL = "level:"
_LEVELS = {level.name.lower(): level for level in Confidentiality}
_OPERATION_FIRST = re.compile(r"([a-z*?]+(?:[.][a-z*?_-]+)*) +(\S.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of the file.

    Takes: `line`, where it stands, from 1; `pattern`, as written; `hunks`, of a release in part; `merge`, whether
    it releases conflicts, as the merge of both sides; `redact`, whether it releases requests that carry too much,
    without what they carry; `level`, the lowest level of data that it refuses.
    """

    line: int
    pattern: str
    decision: Decision
    reason: str
    facet: re.Pattern[str] | None
    operation: re.Pattern[str] | None
    object: re.Pattern[str] | None
    hunks: tuple[int, ...] = ()
    merge: bool = False
    redact: bool = False
    level: Confidentiality | None = None

    def matches(self, effect: Effect) -> bool:
        """Return whether the pattern covers the effect.

        Holds: a facet pattern releases only an effect of which it covers every facet and that has no
        hazard, and refuses an effect of which it covers any facet; a plain release never covers a conflict, and a
        merge nothing else; a redaction covers only a request that carries more than its destination may hold.
        """
        if self.decision is Decision.RELEASE and self.merge != is_conflict(effect):
            return False
        if self.redact and not carries_too_much(effect):
            return False
        if self.facet is not None:
            covered = [bool(self.facet.fullmatch(facet.kind)) for facet in effect.facets]
            if self.decision is Decision.RELEASE:
                return bool(covered) and all(covered) and not (effect.change and effect.change.hazards)
            return any(covered)
        if self.operation is not None and not self.operation.fullmatch(effect.operation):
            return False
        if self.level is not None:
            return effect.carried >= self.level
        return any(self.object.fullmatch(text) for text in _spellings(effect)) if self.object else False


class AnswersFile:
    """The oracle that was told its answers beforehand; what no pattern covers is refused."""

    def __init__(self, rules: Iterable[Rule], *, filename: str) -> None:
        self.rules = tuple(rules)
        # The ledger and the terminal take the name, so a file name that is not UTF-8 must fit them.
        self._filename = filename.encode("utf-8", "backslashreplace").decode("utf-8")
        self.name = f"answers:{self._filename}"
        self._used: set[int] = set()

    @classmethod
    def load(cls, path: str) -> "AnswersFile":
        """Read a file of answers: a YAML or JSON list of `{match, answer, reason}`.

        Raises: InputError, with file, line and fix.
        """
        try:
            with open(path, "rb") as file:
                raw = file.read(_SIZE_LIMIT_BYTES + 1)
            if len(raw) > _SIZE_LIMIT_BYTES:
                raise InputError(f"{path}: longer than 1 MiB", hint="match whole folders with `**`")
            text = raw.decode("utf-8-sig")
        except OSError as error:
            raise InputError(
                f"{path}: cannot be read: {error.strerror}", hint="check the name after `answers:`"
            ) from error
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            raise InputError(f"{path}:{line}: not UTF-8", hint="save the file as UTF-8") from error
        return cls.parse(text, filename=path)

    @classmethod
    def parse(cls, text: str, *, filename: str) -> "AnswersFile":
        """Read the text of a file of answers.

        Raises: InputError, with file, line and fix.
        """
        return cls(_rules(text, filename), filename=filename)

    @property
    def unused(self) -> tuple[Rule, ...]:
        """Return the rules that decided nothing so far, in the file's order."""
        return tuple(rule for index, rule in enumerate(self.rules) if index not in self._used)

    def resolve(self, question: Question) -> OracleAnswered:
        """Answer each deferred effect by the first rule that covers it, or refuse."""
        answers = tuple(self._answer(effect) for effect, _ in question.deferred)
        return sanity(OracleAnswered(oracle=self.name, answers=answers), question)

    def _answer(self, effect: Effect) -> Answer:
        for index, rule in enumerate(self.rules):
            if rule.matches(effect):
                self._used.add(index)
                where = f"{self._filename}:{rule.line}"
                reason = f"{where}: {rule.reason}" if rule.reason else f"{where}: matches {rule.pattern}"
                return Answer(
                    effect_id=effect.id,
                    decision=rule.decision,
                    reason=reason,
                    hunks=rule.hunks,
                    merge=rule.merge,
                    redact=rule.redact,
                )
        what = f"{effect.operation} {effect.object}"
        if is_conflict(effect):
            what += ", which the host changed too (`answer: merge` would)"
        return Answer(
            effect_id=effect.id,
            decision=Decision.REFUSE,
            reason=f"{self._filename}: no pattern covers {what}",
        )


def _spellings(effect: Effect) -> list[str]:
    texts = [effect.object]
    # `Makefile` is what a user writes for `workspace:Makefile`.
    if effect.change is not None and effect.change.place.root == WORKSPACE:
        texts.append(effect.change.place.path)
    return texts


def _rules(text: str, filename: str) -> list[Rule]:
    root = _compose(text, filename)
    if not isinstance(root, yaml.SequenceNode):
        line = root.start_mark.line + 1 if root is not None else 1
        _fail(
            filename,
            line,
            "not a list of answers",
            "write a list, as in `- {match: 'workspace:Makefile', answer: release}`, or `[]`",
        )
    return [_rule(entry, filename) for entry in root.value]


def _compose(text: str, filename: str) -> yaml.Node | None:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        # JSON has tabs only between its tokens, and YAML forbids some of those.
        text = text.replace("\t", " ")
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        _fail(filename, line, f"not YAML: {error.problem}", "quote texts that hold `*`, `:`, `[` or `{`")
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        _fail(filename, line, "holds a control character", "write it as an escape in double quotes")
    except (yaml.YAMLError, RecursionError):
        _fail(filename, 1, "not YAML that can be read", "write a flat list of answers")


def _rule(entry: yaml.Node, filename: str) -> Rule:
    line = entry.start_mark.line + 1
    if not isinstance(entry, yaml.MappingNode):
        _fail(filename, line, "an answer must be a mapping", f"give it the keys {', '.join(_KEYS)}")
    fields: dict[str, tuple[str, int]] = {}
    hunks: tuple[int, ...] = ()
    for key_node, value_node in entry.value:
        key_line = key_node.start_mark.line + 1
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            fix = f"did you mean `{near[0]}`?" if near else f"the keys are {', '.join(_KEYS)}"
            _fail(filename, key_line, f"unknown key {key!r}", fix)
        if key in fields or (key == "hunks" and hunks):
            _fail(filename, key_line, f"`{key}` is given twice", "keep one of the two")
        if key == "hunks":
            hunks = _numbers(value_node, filename)
            continue
        fields[key] = (_scalar(key, value_node, filename), value_node.start_mark.line + 1)
    for key in ("match", "answer"):
        if key not in fields:
            _fail(filename, line, f"an answer without `{key}`", f"add `{key}:`")
    pattern, pattern_line = fields["match"]
    word, word_line = fields["answer"]
    decision = _DECISIONS.get(word)
    if decision is None:
        _fail(
            filename,
            word_line,
            f"unknown answer {word!r}",
            "write `release` or `refuse`, or `redact` or `merge`",
        )
    if hunks and word != "release":
        _fail(filename, word_line, f"`hunks` with `answer: {word}`", "hunks go with `answer: release` alone")
    if not pattern:
        _fail(filename, pattern_line, "`match` is empty", "write a pattern, `**` for everything")
    facet = operation = place = level = None
    try:
        covered = pattern
        if (split := _OPERATION_FIRST.fullmatch(pattern)) is not None and not pattern.startswith(_FACET):
            operation, covered = _glob(split[1]), split[2]
        if covered.startswith(_LEVEL):
            level = _level(covered.removeprefix(_LEVEL), word, filename, pattern_line)
        elif covered.startswith(_FACET) and operation is None:
            facet = _glob(covered.removeprefix(_FACET))
        else:
            place = _glob(covered)
    except ValueError as error:
        _fail(filename, pattern_line, f"bad pattern {pattern!r}: {error}", "write `[[]` for a plain `[`")
    return Rule(
        line=line,
        pattern=pattern,
        decision=decision,
        reason=fields.get("reason", ("", 0))[0],
        facet=facet,
        operation=operation,
        object=place,
        hunks=hunks,
        merge=word == _MERGE,
        redact=word == _REDACT,
        level=level,
    )


def _level(name: str, word: str, filename: str, line: int) -> Confidentiality:
    if name not in _LEVELS:
        _fail(filename, line, f"unknown level {name!r}", f"the levels are {', '.join(_LEVELS)}")
    if word != "refuse":
        # A level says nothing of where the data goes.
        _fail(filename, line, f"`{_LEVEL}` with `answer: {word}`", "a level is only refused; release by name")
    return _LEVELS[name]


def _numbers(node: yaml.Node, filename: str) -> tuple[int, ...]:
    line = node.start_mark.line + 1
    fix = "write the hunks' numbers, as in `hunks: [1, 3]`"
    if not isinstance(node, yaml.SequenceNode) or not 0 < len(node.value) <= _HUNKS_LIMIT:
        _fail(filename, line, "`hunks` is not a list of numbers", fix)
    for one in node.value:
        if not isinstance(one, yaml.ScalarNode) or one.tag != "tag:yaml.org,2002:int":
            _fail(filename, one.start_mark.line + 1, "a hunk that is not a number", fix)
        if not _HUNK.fullmatch(one.value):
            _fail(filename, one.start_mark.line + 1, f"no such hunk: {one.value}", "they are counted from 1")
    return tuple(sorted({int(one.value) for one in node.value}))


def _scalar(key: str, node: yaml.Node, filename: str) -> str:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
        _fail(filename, line, f"`{key}` is not a text", "put it in quotes")
    try:
        # JSON may write one character as two surrogate escapes; half of one is no text.
        return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        _fail(filename, line, f"`{key}` holds half a character", "write the whole character")


def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob: `*` and `?` stay within one folder, `**` crosses folders, `[…]` is a class.

    Raises: ValueError, for a class that does not end.
    """
    pieces = [_piece(piece) for piece in re.sub(r"\*{3,}", "**", pattern).split("**")]
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    # A middle piece takes its first match and keeps it: as good as any other, and a hostile name that almost
    # matches cannot make the search go back over all of them.
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1])
    return re.compile(f"{pieces[0]}{middle}.*{pieces[-1]}", re.DOTALL)


def _piece(glob: str) -> str:
    out: list[str] = []
    index = 0
    while index < len(glob):
        char = glob[index]
        index += 1
        if char == "*":
            out.append("[^/]*?")
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            start = index + 1 if glob[index : index + 1] == "!" else index
            end = glob.find("]", start + 1)
            if end < 0:
                raise ValueError("a `[` without its `]`")
            members = re.sub(r"([\\\[\]^&~|])", r"\\\1", glob[start:end])
            out.append(f"(?!/)[{'^' if start > index else ''}{members}]")
            index = end + 1
        else:
            out.append(re.escape(char))
    return "".join(out)


def _fail(filename: str, line: int, message: str, hint: str) -> NoReturn:
    raise InputError(f"{filename}:{line}: {message}", hint=hint)
