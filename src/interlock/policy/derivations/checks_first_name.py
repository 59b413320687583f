"""The checker of a first name: whom the task calls so, and that the user wrote to nobody else of that name."""

from collections.abc import Iterator

from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.derivations import names
from interlock.policy.derivations.facts import Check, Facts, Fault
from interlock.policy.derivations.leaves_read import READS, field_of, records_of, same_value
from interlock.policy.derivations.task_words import Token, is_word, named_arguments, task_text, tokens

_LEAST = 3


def first_name(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """The address of the only one to whom the user wrote whom the task calls by this first name."""
    if not isinstance(facts.proposal, ToolCall) or kind != "email" or derivation.form:
        return Fault.RULE
    answer = facts.answer(derivation.node)
    if answer is None:
        return Fault.NODE
    leaf = facts.leaf(derivation.node, derivation.pointer)
    if leaf is None or (derivation.start, derivation.end) != (0, len(leaf)):
        return Fault.SPAN
    if not same_value("email", derivation.value, leaf):
        return Fault.SPAN
    written_to = list(_written_to(facts))
    if (derivation.node, derivation.pointer, leaf) not in written_to:
        return Fault.NODE
    parts = _parts(leaf)
    if not parts or not derivation.premises:
        return Fault.PREMISE
    word, *limits = derivation.premises
    if not is_word(facts, word, "first name") or not _calls(task_text(facts), word, parts):
        return Fault.PREMISE
    for _, _, other in written_to:
        if _parts(other)[:1] == parts[:1] and not same_value("email", leaf, other):
            return Fault.PREMISE
    return named_arguments(facts, answer, tuple(limits))


def _written_to(facts: Facts) -> Iterator[tuple[int, str, str]]:
    """Yield node, pointer and address of each to whom the user wrote."""
    for node, answer in facts.answers():
        tool = facts.policy.tools.find(answer.tool)
        told = tool.output.correspondents if tool is not None else None
        if tool is None or told is None or tool.effect not in READS or tool.output.echo:
            continue
        if not answer.structured:
            continue
        leaves = facts.leaves(node)
        records = records_of(leaves)
        fields = {pointer: _bare(field_of(pointer, answer.text)) for pointer, _ in leaves}
        for pointer, text in leaves:
            if fields[pointer] not in [_bare(name) for name in told.fields]:
                continue
            beside = [(fields[at], said) for at, said in leaves if records[at] == records[pointer]]
            if all([said for at, said in beside if at == _bare(name)] == [mark] for name, mark in told.where):
                yield node, pointer, text


def _bare(field: str) -> str:
    return field.removeprefix("[]").removeprefix(".")


def _parts(address: str) -> list[str]:
    """Return the words that an address begins with, none where the first is no name."""
    local, at, _ = address.partition("@")
    parts = local.lower().replace("_", ".").split(".")
    name = at and parts[0].isascii() and parts[0].isalpha() and len(parts[0]) >= _LEAST
    return parts if name else []


def _calls(text: str, word: Derivation, parts: list[str]) -> bool:
    if word.value != parts[0].capitalize():
        return False
    said = tokens(text)
    here = [at for at, one in enumerate(said) if one[0] == parts[0] and text[one[1] : one[2]] == word.value]
    if not any(said[at][1:] == (word.start, word.end) for at in here):
        return False
    if any(_other_surname(text, said, at, parts[1:]) for at in here):
        return False
    before = text[: word.start]
    if before[-1:] != " ":
        return False
    last = before[:-1].removesuffix(",")
    at = len(last)
    while at and (last[at - 1].isalpha() or last[at - 1] in "'\u2019-"):
        at -= 1
    plain = last[at:].replace("\u2019", "'")
    return plain.isascii() and plain[:1].islower() and plain == plain.lower() and _free(text, word)


def _free(text: str, word: Derivation) -> bool:
    behind = text[word.end : word.end + 2]
    return not (behind[:1] in ("@", "-") or (behind[:1] in (".", "/") and behind[1:].isalnum()))


def _other_surname(text: str, said: list[Token], at: int, surnames: list[str]) -> bool:
    """Say whether a capital word follows that is no part of the address."""
    if at + 1 == len(said) or text[said[at][2] : said[at + 1][1]] != " ":
        return False
    following = text[said[at + 1][1] : said[at + 1][2]]
    return following[:1].isupper() and following.lower() not in surnames


CHECKS: dict[str, Check] = {names.FIRST_NAME: first_name}
