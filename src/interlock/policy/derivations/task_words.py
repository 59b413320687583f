"""The second reading of the task's own words that choose: which they are, and whether the task names something else."""

from interlock.model.verdicts import Derivation
from interlock.policy.derivations import names
from interlock.policy.derivations.facts import Answer, Facts, Fault, json_leaves
from interlock.policy.derivations.leaves_read import TRUSTED, field_of, same_value
from interlock.policy.derivations.numbers_read import amount
from interlock.policy.derivations.reading import Reading, part_of_name, phrase

Token = tuple[str, int, int]


def task_text(facts: Facts) -> str:
    """Return the principal's words, `""` where they are not trusted."""
    given = facts.text_at(facts.task_node, 0)
    return given.text if given is not None and given.vouches else ""


def is_word(facts: Facts, premise: Derivation, role: str) -> bool:
    """Say whether a premise is a word of the task, as it stands there."""
    text = task_text(facts)
    where = (premise.rule, premise.node, premise.role) == (names.NAMED_IN_TASK, facts.task_node, role)
    inside = 0 <= premise.start < premise.end <= len(text) and not premise.premises
    return where and inside and text[premise.start : premise.end] == premise.value


def tokens(text: str) -> list[Token]:
    """Return the words of a text in lower case, with their places."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        end = at
        while end < len(text) and part_of_name(text[end]):
            end += 1
        if end > at:
            found.append((text[at:end].lower(), at, end))
        at = max(end, at + 1)
    return found


def says(text: str, wanted: str) -> bool:
    """Say whether a text has some words in this order, with at most three others between any two."""
    words = [word for word, _, _ in tokens(wanted)]
    given = tokens(text)

    def from_here(index: int, at: int) -> bool:
        if index == len(words):
            _, _, end = given[at - 1]
            return text[end : end + 1] != "-"
        most = at + 4 if index else at + 1
        return any(
            given[next_][0] == words[index] and from_here(index + 1, next_ + 1)
            for next_ in range(at, min(most, len(given)))
        )

    return any(text[start - 1 : start] != "-" and from_here(0, at) for at, (_, start, _) in enumerate(given))


def occurs(readings: dict[str, Reading], value: str, text: str) -> bool:
    """Say whether a text gives a value somewhere, as one of these forms."""
    wanted = value.strip().lower()
    spans = (
        [(at, at + len(wanted)) for at in _places(wanted, text.lower())]
        if len(text.lower()) == len(text)
        else []
    )
    spans += _numbers(text) if names.AMOUNT in readings else []
    return any(read(value, text, start, end) for start, end in spans for read in readings.values())


def task_names(facts: Facts, value: str) -> bool:
    """Say whether the task names something."""
    text = task_text(facts)
    return occurs({names.PHRASE: phrase}, value, text)


def _places(wanted: str, text: str) -> list[int]:
    found: list[int] = []
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def _numbers(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        end = at
        while end < len(text) and text[end] in "0123456789.,":
            end += 1
        if end > at:
            trimmed = text[at:end].rstrip(".,")
            found.append((at, at + len(trimmed)))
        at = max(end, at + 1)
    return [(start, end) for start, end in found if amount(text[start:end], text, start, end)]


def arguments_of(answer: Answer) -> list[tuple[str, str]]:
    """Return the fields of a reading call with their texts."""
    return [(field_of(at, answer.arguments), text) for at, text in json_leaves(answer.arguments) or ()]


def named_arguments(
    facts: Facts, answer: Answer, premises: tuple[Derivation, ...], *, left_open: bool = False
) -> Fault | None:
    """Check that the task names each argument of a reading call, by one premise each, and nothing else is a premise.

    Takes: `left_open`, whether an argument may also be one of a listing of which the task names nothing.
    """
    tool = facts.policy.tools.find(answer.tool)
    kinds = dict(tool.steers) if tool is not None else {}
    left = list(premises)
    for field, text in arguments_of(answer):
        kind = kinds.get(field, "name")
        here = next((one for one in left if (one.role, one.value) == (field, text)), None)
        if here is None:
            if not left_open or not _is_left_open(facts, text, kind):
                return Fault.PREMISE
            continue
        left.remove(here)
        if here.rule != names.NAMED_IN_TASK or facts.recheck(here, kind) is not None:
            return Fault.PREMISE
    return Fault.PREMISE if left else None


def _is_left_open(facts: Facts, value: str, kind: str) -> bool:
    for node, answer in facts.answers():
        tool = facts.policy.tools.find(answer.tool)
        if tool is None or tool.output.trust not in TRUSTED or tool.output.echo or arguments_of(answer):
            continue
        for pointer, text in facts.leaves(node):
            if any(same_value(one, value, text) for one in kind.split("|")):
                field = field_of(pointer, answer.text) if answer.structured else ""
                listed = [
                    there
                    for at, there in facts.leaves(node)
                    if (field_of(at, answer.text) if answer.structured else "") == field
                ]
                return not any(task_names(facts, one) for one in listed)
    return False
