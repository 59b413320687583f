"""The task chooses a record by the end of a declared field: the largest, the latest, the one with the most of it.

The word that chooses is the task's own. What it chooses from has to be whole: an enumeration that the agent did not
cut, where every record has the field and one record alone stands at that end.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.knowing import Returned
from interlock.policy.tools.leaves import Leaf, declared_type, leaves_of, plain_field, record_of
from interlock.policy.tools.named import arguments_named, named_in_task, task_text, word_in_task
from interlock.policy.tools.roles import DIRECTORY, EGRESS, OWN, READ, Rank, ToolRole
from interlock.policy.tools.selecting import at_leaf, lost_any, typed_leaves
from interlock.policy.tools.values import same_form

EXTREME = "extreme-of"
COUNT = "#"
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2}))?)?")
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?")
_BETWEEN = r"(?:\W+\w+){0,3}?\W+"
Measure = tuple[int, Decimal, str]
Entry = tuple[Returned, Leaf, Measure | None]


def select_extreme(policy: Policy, knowledge: Knowledge, value: Value, kind: str) -> Derivation | None:
    """Return why the record that holds a value is the one at the end which the task asks for."""
    text = task_text(knowledge)
    for tool in policy.tools.tools if text else ():
        if tool.effect not in (READ, EGRESS) or tool.output.echo:
            continue
        for rank in tool.output.ranks:
            end = chosen_end(text, rank)
            if end is None:
                continue
            most, span = end
            word = word_in_task(knowledge, f"{'most' if most else 'least'} {rank.field}", span)
            for answers, premises in _enumerations(policy, knowledge, tool):
                entry = _at_end(tool, rank, answers, kind, most=most)
                if word is None or entry is None:
                    continue
                for one, leaf in entry:
                    if any(_same(each, leaf.text, value.text) for each in kind.split("|")):
                        return at_leaf(value, EXTREME, one, leaf, (word, *premises))
    return None


def _same(kind: str, text: str, value: str) -> bool:
    form = same_form(kind, value)
    return bool(form) and form == same_form(kind, text)


def chosen_end(text: str, rank: Rank) -> tuple[bool, tuple[int, int]] | None:
    """Return which end of a field a text asks for, and where; None where it asks for none, or for both."""
    most = _first(text, rank.most)
    least = _first(text, rank.least)
    if most is not None and least is None:
        return True, most
    return (False, least) if least is not None and most is None else None


def _first(text: str, phrases: tuple[str, ...]) -> tuple[int, int] | None:
    for phrase in phrases:
        words = _BETWEEN.join(re.escape(word) for word in phrase.split())
        found = re.search(rf"(?<![\w-]){words}(?![\w-])", text, re.IGNORECASE)
        if found is not None:
            return found.span()
    return None


def _enumerations(
    policy: Policy, knowledge: Knowledge, tool: ToolRole
) -> Iterator[tuple[tuple[Returned, ...], tuple[Derivation, ...]]]:
    """Yield what the task may choose from: what was asked in its words, and what was asked of a whole listing."""
    answers = [each for each in knowledge.returned if policy.tools.find(each.tool) is tool]
    if lost_any(policy, knowledge, tool):
        return
    for arguments in dict.fromkeys(each.arguments for each in answers):
        premises = arguments_named(knowledge, tool.steers, arguments)
        if premises is not None:
            yield tuple(each for each in answers if each.arguments == arguments), premises
    for listing in knowledge.returned:
        lister = policy.tools.find(listing.tool)
        if lister is None or lister is tool or lister.effect not in (READ, EGRESS) or lister.output.echo:
            continue
        if lister.output.trust not in (OWN, DIRECTORY) or leaves_of(listing.arguments, whole=True):
            continue
        listed = {leaf.text for leaf in listing.leaves if leaf.field == "[]"}
        if not listed or any(named_in_task(knowledge, "", "name", each) for each in listed):
            continue
        asked = {each.arguments: _only(each.arguments) for each in answers}
        of_list = {arguments for arguments, given in asked.items() if given in listed}
        if {asked[each] for each in of_list} == listed:
            yield tuple(each for each in answers if each.arguments in of_list), ()


def _only(arguments: str) -> str:
    leaves = leaves_of(arguments, whole=True) or ()
    return leaves[0].text if len(leaves) == 1 else ""


def _at_end(
    tool: ToolRole, rank: Rank, answers: tuple[Returned, ...], kind: str, *, most: bool
) -> tuple[tuple[Returned, Leaf], ...] | None:
    """Return the fitting leaves of the one record at an end, None where there is no such one."""
    if rank.field.startswith(COUNT):
        return _most_frequent(tool, rank.field.removeprefix(COUNT), answers, kind, most=most)
    records: dict[tuple[int, str], list[Measure]] = {}
    for one in answers:
        for leaf in one.leaves:
            if plain_field(leaf.field) == rank.field:
                measure = measured(declared_type(tool.output.fields, leaf), leaf.text)
                if measure is None:
                    return None
                records.setdefault((one.node, record_of(leaf)), []).append(measure)
    # A record without the field might be the one: all that was listed has to lie in one that has it.
    loose = any(not _in_any(records, one, leaf) for one in answers for leaf in one.leaves)
    if len(records) < 2 or loose or any(len(found) != 1 for found in records.values()):
        return None
    ends = {found[0] for found in records.values()}
    end = max(ends) if most else min(ends)
    there = {key: found for key, found in records.items() if found[0] == end}
    # Asked again, a listing holds the same record once more: it is still one where nothing of it differs.
    said = {key: _said(answers, key) for key in there}
    if len(set(said.values())) != 1 or len({node for node, _ in there}) != len(there):
        return None
    fits = [(one, leaf) for one in answers for leaf, _ in typed_leaves(tool.output, one, kind)]
    return tuple((one, leaf) for one, leaf in fits if _in_any(there, one, leaf))


def _said(answers: tuple[Returned, ...], key: tuple[int, str]) -> frozenset[tuple[str, str]]:
    node, record = key
    return frozenset(
        (leaf.pointer.removeprefix(record), leaf.text)
        for one in answers
        if one.node == node
        for leaf in one.leaves
        if leaf.pointer.startswith(f"{record}/")
    )


def _in_any(records: dict[tuple[int, str], list[Measure]], one: Returned, leaf: Leaf) -> bool:
    at = leaf.pointer
    while at:
        at = at.rpartition("/")[0]
        if (one.node, at) in records:
            return True
    return False


def _most_frequent(
    tool: ToolRole, field: str, answers: tuple[Returned, ...], kind: str, *, most: bool
) -> tuple[tuple[Returned, Leaf], ...] | None:
    found: dict[str, list[tuple[Returned, Leaf]]] = {}
    for one in {each.arguments: each for each in answers}.values():
        for leaf, type_ in typed_leaves(tool.output, one, kind):
            if plain_field(leaf.field) == field:
                found.setdefault(same_form(type_, leaf.text), []).append((one, leaf))
    counts = [len(each) for each in found.values()]
    end = (max if most else min)(counts) if len(counts) > 1 else 0
    there = [each for each in found.values() if len(each) == end]
    return tuple(there[0][:1]) if len(there) == 1 else None


def measured(kind: str, text: str) -> Measure | None:
    """Return what a field says, so that two may be compared; None where it says no number and no date."""
    if kind == "date":
        found = _DATE.match(text)
        return None if found is None else (0, Decimal(0), " ".join(part or "" for part in found.groups()))
    plain = text.replace(",", "")
    return (1, Decimal(plain), "") if kind == "amount" and _NUMBER.fullmatch(plain) else None
