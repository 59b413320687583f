"""Cedar text as an operator writes it: statements with their lines, ids, and mistakes with their place.

The engine reports mistakes without a line, so statements are cut apart here and asked about one by one.
"""

import re
from collections.abc import Callable, Sequence

from interlock.model.records import dataclass
from interlock.policy.vocabulary import ACTIONS, CONTEXT, SCHEMA

_TOKEN = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"|;", re.DOTALL)
_ID = re.compile(r"@id\s*\(\s*\"((?:\\.|[^\"\\])*)\"\s*\)")
_HEAD = re.compile(r"(?:\s+|//[^\n]*(?:\n|$))*")
_QUOTED = re.compile(r"`([^`]+)`|: (\w+)$")
_GOOD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One policy of a Cedar text; `line` and `column` are 0-based, within that text."""

    text: str
    line: int
    column: int


class CedarMistake(ValueError):
    """A mistake in Cedar text, 0-based `line` and `column` within it, with a fix."""

    def __init__(self, message: str, *, line: int, column: int, hint: str) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.hint = hint


def split(text: str) -> list[Statement]:
    """Cut Cedar text at the `;` outside of text and comments; the rest after the last one comes last."""
    statements: list[Statement] = []
    begin = 0
    for token in _TOKEN.finditer(text):
        if token.group() == ";":
            statements.append(_statement(text, begin, token.end()))
            begin = token.end()
    tail = _statement(text, begin, len(text))
    if tail.text.strip():
        statements.append(tail)
    return statements


def _statement(text: str, begin: int, end: int) -> Statement:
    head = _HEAD.match(text, begin, end)
    start = head.end() if head else begin
    line_start = text.rfind("\n", 0, start) + 1
    return Statement(text=text[start:end], line=text.count("\n", 0, start), column=start - line_start)


def with_ids(text: str, *, taken: frozenset[str], first_line: int) -> str:
    """Check Cedar text and give every policy an `@id`, without moving a line.

    Takes: `taken`, ids of the preset; `first_line`, the 1-based line of the file where the text begins.
    Raises: CedarMistake.
    """
    import cedarpy

    ids: set[str] = set()
    out: list[str] = []
    statements = split(text)
    for statement in statements:
        _check_syntax(statement, cedarpy.PolicySet.from_str)
        if cedarpy.PolicySet.from_str(statement.text).templates():
            raise _at(
                statement,
                "templates are not used here",
                "write the value in place of `?principal` or `?resource`",
            )
        found = _ID.search(_annotations(statement.text))
        name = found.group(1) if found else f"line-{first_line + statement.line}"
        if not _GOOD_ID.fullmatch(name):
            raise _at(
                statement, f"the id `{name}` is not plain", "use letters, digits, `.`, `-`, `_` and `/`"
            )
        if name in taken or name in ids:
            who = "the preset" if name in taken else "a rule above"
            raise _at(statement, f"the id `{name}` is taken by {who}", "give the rule another `@id`")
        ids.add(name)
        out.append(statement.text if found else f'@id("{name}") {statement.text}')
    _check_words(text, statements, cedarpy.validate_policies("\n".join(out), SCHEMA).errors)
    return "\n".join(out) + "\n" if out else ""


def _annotations(statement: str) -> str:
    """Return what stands before the scope, so that no text further on looks like an id."""
    head = re.search(r"\b(?:permit|forbid)\s*\(", re.sub(r"\"(?:\\.|[^\"\\])*\"", _blank, statement))
    return statement[: head.start()] if head else statement


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())


def _at(statement: Statement, message: str, hint: str) -> CedarMistake:
    return CedarMistake(message, line=statement.line, column=statement.column, hint=hint)


def _check_syntax(statement: Statement, parse: Callable[[str], object]) -> None:
    try:
        parse(statement.text)
    except ValueError as failure:
        message = str(failure)
    else:
        return
    hint = "each rule reads `permit(principal, action, resource) when { … };` or `forbid(…) …;`"
    if not statement.text.endswith(";"):
        hint = "end the rule with `;`"
    lines = statement.text.rstrip().split("\n")
    if message == "unexpected end of input":
        last = len(lines) - 1
        raise CedarMistake(
            f"Cedar: {message}",
            line=statement.line + last,
            column=len(lines[last]) + (statement.column if last == 0 else 0),
            hint=hint,
        )
    # The first beginning of the rule that fails in the same way ends in the line with the mistake.
    bad = len(lines) - 1
    for number in range(len(lines)):
        try:
            parse("\n".join(lines[: number + 1]))
        except ValueError as failure:
            if str(failure) == message:
                bad = number
                break
    word = _named_in(message)
    at = lines[bad].find(word) if word else -1
    if at < 0:
        # Nothing to point at (a part that is missing): the rule's own beginning.
        raise _at(statement, f"Cedar: {message}", hint)
    raise CedarMistake(
        f"Cedar: {message}",
        line=statement.line + bad,
        column=at + (statement.column if bad == 0 else 0),
        hint=hint,
    )


def _named_in(message: str) -> str:
    """Return the word of the rule that the engine's message names, "" if it names none."""
    word = _QUOTED.search(message)
    return next(filter(None, word.groups())) if word else ""


def _check_words(text: str, statements: list[Statement], errors: Sequence[object]) -> None:
    for error in errors:
        policy_id = getattr(error, "policy_id", "")
        message = str(getattr(error, "error", error)).replace(f"for policy `{policy_id}`, ", "")
        number = int(policy_id.removeprefix("policy")) if policy_id.removeprefix("policy").isdigit() else 0
        statement = statements[min(number, len(statements) - 1)]
        word, hint = _suspect(message)
        at = statement.text.find(word) if word else -1
        if at < 0:
            raise CedarMistake(f"Cedar: {message}", line=statement.line, column=statement.column, hint=hint)
        line = statement.text.count("\n", 0, at)
        line_start = statement.text.rfind("\n", 0, at) + 1
        column = at - line_start + (statement.column if line == 0 else 0)
        raise CedarMistake(f"Cedar: {message}", line=statement.line + line, column=column, hint=hint)


def _suspect(message: str) -> tuple[str, str]:
    from difflib import get_close_matches

    action = re.search(r"Action::\"([^\"]+)\"", message)
    if "action" in message and action and action.group(1) not in ACTIONS:
        near = get_close_matches(action.group(1), ACTIONS, 1, 0.5)
        return action.group(
            1
        ), f"did you mean `{near[0]}`?" if near else f"the actions are {', '.join(ACTIONS)}"
    attribute = re.search(r"attribute `(?:context\.)?(\w+)`", message)
    if attribute and attribute.group(1) not in CONTEXT:
        near = get_close_matches(attribute.group(1), CONTEXT, 1, 0.5)
        known = f"the context holds {', '.join(CONTEXT)}"
        return attribute.group(1), f"did you mean `context.{near[0]}`?" if near else known
    return _named_in(message), "see docs/policy.md for the types of the context's attributes"
