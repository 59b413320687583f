"""One object of a text made another: only what differs is touched."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from interlock.mcp.importing.entries import Left
from interlock.mcp.importing.written import Edit, Member, Written

ODD_FORM = "it is written in a way in which it cannot be changed without changing more"


class Form:
    """How members are written. Takes: `assign`, between key and value; `comma`, between members."""

    def __init__(self, assign: str, comma: str, *, is_json: bool) -> None:
        self.assign = assign
        self.comma = comma
        self._is_json = is_json

    def key(self, key: str) -> str:
        """Return a key as it is written."""
        return _json_value(key) if self._is_json else toml_key(key)

    def value(self, value: object) -> str:
        """Return a value as it is written. Raises: Left, where the format has no such value."""
        return _json_value(value) if self._is_json else _toml_value(value)

    def member(self, key: str, value: object) -> str:
        """Return a key and its value as they are written."""
        return f"{self.key(key)}{self.assign}{self.value(value)}"


JSON = Form(": ", ",", is_json=True)
INLINE = Form(" = ", ",", is_json=False)
TABLE = Form(" = ", "", is_json=False)


def changes(
    text: str, members: tuple[Member, ...], entry: Mapping[str, Any], wanted: Mapping[str, Any], form: Form
) -> list[Edit]:
    """Return the edits that make one object of another. New members stand where the first that goes stood."""
    if not members:
        raise Left(ODD_FORM)
    edits = [
        _value_change(text, one.value, wanted[one.key], form)
        for one in members
        if one.key in wanted and wanted[one.key] != one.value.data
    ]
    gone = [one for one in members if one.key in entry and one.key not in wanted]
    between = form.comma + _space_before(text, members, form)
    new = [form.member(key, value) for key, value in wanted.items() if key not in entry]
    if new and gone:
        edits.append(Edit(start=gone[0].start, end=gone[0].value.end, text=between.join(new)))
        gone = gone[1:]
    elif new:
        # after the command, whose arguments they are
        anchor = next((one for one in members if one.key == "command"), members[-1])
        edits.append(
            Edit(start=anchor.value.end, end=anchor.value.end, text="".join(between + one for one in new))
        )
    return edits + _removals(text, members, gone, form)


def _value_change(text: str, written: Written, wanted: object, form: Form) -> Edit:
    """Return the edit of a value; words that come before a list's own leave those as they are."""
    old = written.data
    if written.items and isinstance(wanted, list) and wanted and old[-len(wanted) :] == wanted:
        return Edit(start=written.items[0].start, end=written.items[-len(wanted)].start, text="")
    if written.items and isinstance(wanted, list) and wanted[-len(old) :] == old:
        first = written.items[0].start
        space = text[written.start + 1 : first]
        gap = "," + (space[space.rindex("\n") :] if "\n" in space and not space.strip() else " ")
        words = "".join(form.value(one) + gap for one in wanted[: -len(old)])
        return Edit(start=first, end=first, text=words)
    return Edit(start=written.start, end=written.end, text=form.value(wanted))


def _removals(text: str, members: tuple[Member, ...], gone: list[Member], form: Form) -> list[Edit]:
    """Return the edits that take members out: each with the comma after it, those at the end with the comma before."""
    if not form.comma:
        return [Edit(start=one.start, end=one.value.end, text="") for one in gone]
    last: list[Member] = []
    for one in reversed(members):
        if one not in gone:
            break
        last.insert(0, one)
    edits = []
    for one in gone:
        if one in last:
            continue
        after = re.compile(r"[ \t\r\n]*,[ \t]*(?:\r?\n[ \t]*)?").match(text, one.value.end)
        edits.append(Edit(start=one.start, end=after.end() if after else one.value.end, text=""))
    if last:
        before = re.search(r",[ \t\r\n]*$", text[: last[0].start])
        start = before.start() if before else last[0].start
        edits.append(Edit(start=start, end=last[-1].value.end, text=""))
    return edits


def _space_before(text: str, members: tuple[Member, ...], form: Form) -> str:
    """Return what stands between members: a new line and as many spaces, or one space."""
    for one in members:
        line = text.rfind("\n", 0, one.start)
        indent = text[line + 1 : one.start]
        if not indent.strip() and (line >= 0 or not form.comma):
            end = "\r\n" if text[:line].endswith("\r") else "\n"
            return end + indent
    return " " if form.comma else "\n"


def _json_value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def toml_key(key: str) -> str:
    """Return a key as TOML has it."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_text(key)


def _toml_value(value: object) -> str:
    match value:
        case str():
            return _toml_text(value)
        case list():
            return f"[{', '.join(map(_toml_value, value))}]"
        case dict():
            return f"{{ {', '.join(f'{toml_key(key)} = {_toml_value(one)}' for key, one in value.items())} }}"
    raise Left(ODD_FORM)


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
