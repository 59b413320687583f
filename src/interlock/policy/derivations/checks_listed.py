"""The checkers of what the task chooses from a listing: by a name's beginning, by an end of a field, or all of it."""

from collections.abc import Iterator

from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.derivations import names
from interlock.policy.derivations.facts import Answer, Check, Facts, Fault
from interlock.policy.derivations.leaves_read import (
    READS,
    TRUSTED,
    field_of,
    field_type,
    records_of,
    same_value,
    whole_leaf,
)
from interlock.policy.derivations.numbers_read import day_of, number_of
from interlock.policy.derivations.task_words import (
    arguments_of,
    is_word,
    named_arguments,
    says,
    task_names,
    task_text,
    tokens,
)
from interlock.policy.tools.roles import Rank, ToolRole

_LEAST = 3
_STARTS = ("start", "starts", "starting", "begin", "begins", "beginning")


def _read(facts: Facts, derivation: Derivation, kind: str) -> tuple[Answer, ToolRole] | Fault:
    if not isinstance(facts.proposal, ToolCall):
        return Fault.RULE
    fault = whole_leaf(facts, derivation, kind)
    if fault is not None:
        return fault
    answer = facts.answer(derivation.node)
    tool = facts.policy.tools.find(answer.tool) if answer is not None else None
    if answer is None or tool is None or tool.effect not in READS or tool.output.echo:
        return Fault.NODE
    return answer, tool


def _typed(facts: Facts, kind: str, tool: ToolRole) -> Iterator[tuple[int, str, str]]:
    """Yield the leaves of a type in all answers of a tool: node, pointer and text."""
    for node, answer in facts.answers():
        if facts.policy.tools.find(answer.tool) is not tool:
            continue
        for pointer, text in facts.leaves(node):
            declared = field_type(facts, answer, pointer)
            own = tool.output.trust in TRUSTED and not tool.output.echo
            if kind in declared.split("|") or (own and not declared and pointer):
                yield node, pointer, text


def prefix_selected(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """The task says how the name begins, and of all names that this tool listed no other does."""
    if kind != "name":
        return Fault.RULE
    read = _read(facts, derivation, kind)
    if isinstance(read, Fault):
        return read
    _, tool = read
    if tool.output.trust not in TRUSTED:
        return Fault.NODE
    if len(derivation.premises) != 1 or not is_word(facts, derivation.premises[0], "prefix"):
        return Fault.PREMISE
    (word,) = derivation.premises
    head, value = word.value, derivation.value
    first = value.split()[0] if len(value.split()) > 1 else ""
    called = head == first and head.isalpha() and _alone(task_text(facts), word)
    if len(head) < _LEAST or not (called or _asked_to_begin(task_text(facts)[: word.start])):
        return Fault.PREMISE
    begun = {
        text.lower() for _, _, text in _typed(facts, kind, tool) if text.lower().startswith(head.lower())
    }
    return None if begun == {value.lower()} else Fault.PREMISE


def _alone(text: str, word: Derivation) -> bool:
    before, after = text[word.start - 1 : word.start], text[word.end : word.end + 2]
    free = not before or not (before.isalnum() or before in "_.@-")
    joined = bool(after) and (after[0].isalnum() or after[0] in "_@")
    return free and not joined and not (after[:1] in tuple(".-") and after[1:].isalnum())


def _asked_to_begin(before: str) -> bool:
    words = [word for word, _, _ in tokens(before.rstrip("\"'\u201c\u2018`"))][-2:]
    return words[-1:] == ["prefix"] or (len(words) == 2 and words[0] in _STARTS and words[1] == "with")


def extreme_of(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """The task asks for one end of a field, and this record alone stands there in a listing that nobody cut."""
    read = _read(facts, derivation, kind)
    if isinstance(read, Fault):
        return read
    answer, tool = read
    if not derivation.premises:
        return Fault.PREMISE
    word, *limits = derivation.premises
    rank = _rank(facts, tool, word)
    if rank is None:
        return Fault.PREMISE
    most = word.role.startswith("most ")
    for nodes in _enumerations(facts, tool, answer, tuple(limits)):
        end = _end(facts, tool, rank, nodes, kind, most=most)
        if (derivation.node, derivation.pointer) in end:
            return None
    return Fault.PREMISE


def _rank(facts: Facts, tool: ToolRole, word: Derivation) -> Rank | None:
    end, _, field = word.role.partition(" ")
    for rank in tool.output.ranks:
        asked, other = (rank.most, rank.least) if end == "most" else (rank.least, rank.most)
        if end not in ("most", "least") or rank.field != field or not is_word(facts, word, word.role):
            continue
        chosen = any(says(word.value, each) for each in asked)
        if chosen and not any(says(task_text(facts), each) for each in other):
            return rank
    return None


def _enumerations(
    facts: Facts, tool: ToolRole, answer: Answer, limits: tuple[Derivation, ...]
) -> Iterator[list[int]]:
    """Yield the nodes of what was chosen from: asked in the task's words, or of each of a whole listing."""
    own = [(node, one) for node, one in facts.answers() if facts.policy.tools.find(one.tool) is tool]
    if named_arguments(facts, answer, limits) is None:
        yield [node for node, one in own if one.arguments == answer.arguments]
    for node, listing in facts.answers():
        lister = facts.policy.tools.find(listing.tool)
        if lister is None or lister is tool or lister.effect not in READS or lister.output.echo or limits:
            continue
        if lister.output.trust not in TRUSTED or arguments_of(listing) or not listing.structured:
            continue
        listed = {text for at, text in facts.leaves(node) if field_of(at, listing.text) == "[]"}
        if not listed or any(task_names(facts, one) for one in listed):
            continue
        asked = {each: [text for _, text in arguments_of(one)] for each, one in own}
        of_list = [each for each, texts in asked.items() if len(texts) == 1 and texts[0] in listed]
        if {asked[each][0] for each in of_list} == listed:
            yield of_list


def _end(
    facts: Facts, tool: ToolRole, rank: Rank, nodes: list[int], kind: str, *, most: bool
) -> set[tuple[int, str]]:
    """Return the leaves of the one record at an end, none where there is no such one."""
    fits = {(node, at): text for node, at, text in _typed(facts, kind, tool) if node in nodes}
    if rank.field.startswith("#"):
        return _most_often(facts, rank.field[1:], fits, kind, most=most)
    measures: dict[tuple[int, str], tuple[int, ...]] = {}
    within: list[tuple[int, str]] = []
    for node in nodes:
        answer = facts.answer(node)
        leaves = facts.leaves(node)
        records = records_of(leaves)
        for at, text in leaves:
            within.append((node, at))
            if answer is None or not answer.structured or _plain(field_of(at, answer.text)) != rank.field:
                continue
            measure = _measure(field_type(facts, answer, at), text)
            if measure is None or (node, records[at]) in measures:
                return set()
            measures[node, records[at]] = measure
    if len(measures) < 2 or not all(_lies_in(measures, one) for one in within):
        return set()
    end = max(measures.values()) if most else min(measures.values())
    there = {key: measure for key, measure in measures.items() if measure == end}
    first, *others = there
    for other in others:
        # The same record of a listing that was asked for again, and no twin beside it.
        again = sum(node == other[0] for node, _ in there) == 1 and _beneath(facts, first) == _beneath(
            facts, other
        )
        if not again:
            return set()
    return {one for one in fits if _lies_in(there, one)}


def _beneath(facts: Facts, record: tuple[int, str]) -> dict[str, str]:
    node, at = record
    return {
        pointer[len(at) :]: text for pointer, text in facts.leaves(node) if pointer[: len(at) + 1] == f"{at}/"
    }


def _plain(field: str) -> str:
    return field.removeprefix("[]").removeprefix(".")


def _lies_in(records: dict[tuple[int, str], tuple[int, ...]], one: tuple[int, str]) -> bool:
    node, at = one
    return any(node == other and at.startswith(record + "/") for other, record in records)


def _measure(kind: str, text: str) -> tuple[int, ...] | None:
    """Return what a field says as whole numbers, in an order; a fraction in billionths."""
    if kind == "date":
        day = day_of(text[:10])
        if day is None:
            return None
        clock = text[11:19].split(":") if text[10:11] in ("T", " ") else []
        return (*day, *(int(part) for part in clock if part.isdecimal()))
    number = number_of(text) if kind == "amount" else None
    if number is None or len(number[2]) > 9:
        return None
    negative, whole, part = number
    size = int(whole or 0) * 10**9 + int((part + "0" * 9)[:9])
    return (-size if negative else size,)


def _most_often(
    facts: Facts, field: str, fits: dict[tuple[int, str], str], kind: str, *, most: bool
) -> set[tuple[int, str]]:
    groups: list[tuple[str, list[tuple[int, str]]]] = []
    asked: dict[str, int] = {}
    for node, _ in fits:
        answer = facts.answer(node)
        if answer is not None:
            # Of one question asked twice the last answer counts.
            asked[answer.arguments] = max(node, asked.get(answer.arguments, -1))
    for (node, at), text in fits.items():
        answer = facts.answer(node)
        if answer is None or node not in asked.values() or _plain(field_of(at, answer.text)) != field:
            continue
        group = next((each for name, each in groups if same_value(kind, text, name)), None)
        if group is None:
            groups.append((text, [(node, at)]))
        else:
            group.append((node, at))
    counts = sorted(len(each) for _, each in groups)
    end = (counts[-1] if most else counts[0]) if len(counts) > 1 else 0
    there = [each for _, each in groups if len(each) == end]
    return set(there[0]) if len(there) == 1 else set()


def whole_enumeration(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """The task asks for all of what the tool lists, and the listing is not cut but where the task says so."""
    read = _read(facts, derivation, kind)
    if isinstance(read, Fault):
        return read
    answer, tool = read
    if not derivation.premises:
        return Fault.PREMISE
    word, *limits = derivation.premises
    if not is_word(facts, word, "all") or not _asks_all(task_text(facts), word, tool.output.covers):
        return Fault.PREMISE
    return named_arguments(facts, answer, tuple(limits), left_open=True)


_FILLERS = ("of", "the", "my", "our", "their", "its", "these", "those", "other")
_PARTS = """who that which whose with without except but apart if where when not older newer other""".split()  # noqa: SIM905


def _asks_all(text: str, word: Derivation, nouns: tuple[str, ...]) -> bool:
    said = tokens(word.value)
    if not said or said[0][0] not in ("all", "each", "every"):
        return False
    end = next(
        (noun for noun in nouns if word.value.lower().endswith((noun.lower(), noun.lower() + "s"))), None
    )
    if end is None:
        return False
    between = [one for one, _, _ in said[1 : len(said) - len(tokens(end))]]
    fillers = 0
    while fillers < min(3, len(between)) and between[fillers] in _FILLERS:
        fillers += 1
    if len(between) - fillers > 1:
        return False
    after = text[word.end :]
    following = tokens(after)
    if following and following[0][0] in _PARTS and not after[: following[0][1]].strip():
        return False
    before = tokens(text[: word.start])[-2:]
    return not any(one in ("not", "never") or one == "t" for one, _, _ in before)


CHECKS: dict[str, Check] = {
    names.PREFIX_SELECTED: prefix_selected,
    names.EXTREME_OF: extreme_of,
    names.WHOLE_ENUMERATION: whole_enumeration,
}
