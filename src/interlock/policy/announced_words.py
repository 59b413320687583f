"""The words and operators of a shell command.

Source: POSIX, shell command language, §2.2 (quoting), §2.6 (expansions), §2.7 (redirection).
"""

import re
from collections.abc import Iterator

from interlock.model.records import dataclass

MAX_WORDS = 2_000
_KNOWN_FOLDERS = {"$HOME": "~", "${HOME}": "~", "$PWD": ".", "${PWD}": "."}
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|&>>|&>|>>|>\||>&|<<<|<<-|<<|<>|<&|[;&|()<>\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word. Takes: `made`, whether the shell makes it, or a part of it, only when it runs."""

    text: str
    made: bool = False
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word, or an operator (`word` is None then)."""

    operator: str = ""
    word: Word | None = None
    runs: bool = False
    """Whether commands stand inside of it (`$(…)`, a backtick)."""


class Unreadable(Exception):
    """The command's quotes, or a here-document, do not end."""


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the words and operators of a command. Raises: Unreadable."""
    at, count = 0, 0
    documents: list[tuple[str, bool]] = []
    while at < len(text):
        char = text[at]
        if char in " \t\r":
            at += 1
        elif text.startswith("\\\n", at):
            at += 2
        elif char == "#":
            at = _end_of_line(text, at)
        elif text.startswith(("<(", ">("), at):
            at, token = _word(text, at)
            yield token
        elif operator := _OPERATOR.match(text, at):
            at = operator.end()
            if operator[0] in ("<<", "<<-"):
                at, document = _delimiter(text, at, operator[0])
                documents.append(document)
                continue
            yield Token(operator=operator[0])
            if operator[0] == "\n" and documents:
                for document in documents:
                    at, runs = _document(text, at, document)
                    if runs:
                        yield Token(word=Word(text=runs, made=True), runs=True)
                        yield Token(operator="\n")
                documents = []
        else:
            at, token = _word(text, at)
            yield token
        count += 1
        if count > 2 * MAX_WORDS:
            raise Unreadable
    if documents:
        raise Unreadable


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _delimiter(text: str, at: int, operator: str) -> tuple[int, tuple[str, bool]]:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    at, token = _word(text, at)
    assert token.word is not None
    quoted = token.word.quoted
    return at, (("\t" if operator == "<<-" else "") + token.word.text, quoted)


def _document(text: str, at: int, document: tuple[str, bool]) -> tuple[int, str]:
    """Pass over a here-document. Returns: where it ends, and its text where the shell runs commands in it."""
    delimiter, quoted = document
    strip = delimiter.startswith("\t")
    delimiter = delimiter.removeprefix("\t")
    start = at
    while at < len(text):
        end = _end_of_line(text, at)
        line = text[at:end].lstrip("\t") if strip else text[at:end]
        at = end + 1
        if line == delimiter:
            body = text[start : at - 1]
            return min(at, len(text)), "" if quoted or not re.search(r"\$\(|`|\$\{", body) else body
    raise Unreadable


def _word(text: str, at: int) -> tuple[int, Token]:
    out: list[str] = []
    made = runs = quoted = False
    start = at
    while at < len(text):
        char = text[at]
        if char in " \t\r\n;&|()<>" and not (at == start and text.startswith(("<(", ">("), at)):
            break
        if char in "<>":
            at, inner = _inside(text, at + 1)
            out.append(inner)
            made = runs = True
        elif char == "'":
            end = text.find("'", at + 1)
            if end < 0:
                raise Unreadable
            out.append(text[at + 1 : end])
            at, quoted = end + 1, True
        elif char == '"':
            at, inner, how = _double(text, at + 1)
            out.append(inner)
            made, runs, quoted = made or how > 0, runs or how > 1, True
        elif char == "\\":
            out.append(text[at + 1 : at + 2])
            at, quoted = at + 2, True
        elif char in "$`":
            at, inner, how = _expansion(text, at)
            out.append(inner)
            made, runs = made or how > 0, runs or how > 1
        else:
            made = (
                made or char in "*?" or (char in "[{" and at + 1 < len(text) and text[at + 1] not in " \t\n")
            )
            out.append(char)
            at += 1
    said = "".join(out)
    if said == "[" or (said in ("{", "}") and not quoted):
        made = False
    return at, Token(word=Word(text=said, made=made, quoted=quoted), runs=runs)


def _double(text: str, at: int) -> tuple[int, str, int]:
    """Read to the end of a double quote. Returns: the place after it, its text, 1 if made, 2 if it runs commands."""
    out: list[str] = []
    most = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            return at + 1, "".join(out), most
        if char == "\\" and text[at + 1 : at + 2] in ("$", "`", '"', "\\", "\n"):
            out.append(text[at + 1].replace("\n", ""))
            at += 2
        elif char in "$`":
            at, inner, how = _expansion(text, at)
            out.append(inner)
            most = max(most, how)
        else:
            out.append(char)
            at += 1
    raise Unreadable


def _expansion(text: str, at: int) -> tuple[int, str, int]:
    """Read what the shell expands. Returns: the place after it, its text, 0 if it is known, 1 if made, 2 if it runs."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        if end < 0:
            raise Unreadable
        return end + 1, " " + text[at + 1 : end] + " ", 2
    if text.startswith("$((", at) or text.startswith("$(", at):
        end, inner = _inside(text, at + 1)
        return end, inner, 2
    if text.startswith(("$'", '$"'), at):
        raise Unreadable
    for name, folder in _KNOWN_FOLDERS.items():
        if text.startswith(name, at) and not (
            name[-1] != "}" and text[at + len(name) : at + len(name) + 1].isalnum()
        ):
            return at + len(name), folder, 0
    if text.startswith("${", at):
        end = text.find("}", at)
        if end < 0:
            raise Unreadable
        return end + 1, text[at : end + 1], 2 if re.search(r"[`$(]", text[at + 2 : end]) else 1
    match = re.compile(r"\$(\w+|[@*#?$!-])").match(text, at)
    return (match.end(), match[0], 1) if match else (at + 1, "$", 0)


def _inside(text: str, at: int) -> tuple[int, str]:
    """Pass over `( … )`. Returns: the place after it, and what stands in it."""
    depth, start = 0, at
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "'":
            end = text.find("'", at + 1)
            if end < 0:
                raise Unreadable
            at = end
        elif char == '"':
            at, _, _ = _double(text, at + 1)
            continue
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return at + 1, " " + text[start + 1 : at] + " "
        at += 1
    raise Unreadable
