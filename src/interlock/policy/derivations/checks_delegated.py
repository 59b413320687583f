"""The checkers of what a named source may choose, and of the day that the task names."""

from collections.abc import Iterator

from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.derivations import names
from interlock.policy.derivations.addresses import url_value
from interlock.policy.derivations.checks_day import day_named
from interlock.policy.derivations.facts import Answer, Check, Facts, Fault, json_leaves
from interlock.policy.derivations.leaves_read import field_of, same_value, type_at
from interlock.policy.derivations.numbers_read import amount, date, iban, phone
from interlock.policy.derivations.reading import Reading, email, phrase
from interlock.policy.derivations.task_words import arguments_of, named_arguments, occurs
from interlock.policy.tools.roles import Delegation, ToolRole

_SHAPED: dict[str, Reading] = {"email": email, "url": url_value, "iban": iban, "phone": phone}
_STANDING: dict[str, tuple[str, Reading]] = {
    "email": (names.EMAIL, email),
    "url": (names.URL, url_value),
    "iban": (names.IBAN, iban),
    "phone": (names.PHONE, phone),
    "amount": (names.AMOUNT, amount),
    "date": (names.DATE, date),
}
ANY = "*"


def delegated(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """The only value of its type in all that was read of a source to which the policy hands this role over.

    How many effects the source has steered before, the fold says.
    """
    return _delegated(facts, derivation, kind, alone=True)


def received_whole(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """An address that a reading call opens stands as it is in such a source."""
    return _delegated(facts, derivation, kind, alone=False)


def _delegated(facts: Facts, derivation: Derivation, kind: str, *, alone: bool) -> Fault | None:
    call = facts.proposal
    tool = facts.policy.tools.find(call.name) if isinstance(call, ToolCall) else None
    if tool is None or not isinstance(call, ToolCall) or derivation.form or tool.parks or kind not in _SHAPED:
        return Fault.RULE
    if (tool.effect == "egress") == alone:
        return Fault.RULE
    answer = facts.answer(derivation.node)
    if answer is None:
        return Fault.NODE
    text = facts.leaf(derivation.node, derivation.pointer)
    if text is None or not 0 <= derivation.start < derivation.end <= len(text):
        return Fault.SPAN
    if not _SHAPED[kind](derivation.value, text, derivation.start, derivation.end):
        return Fault.SPAN
    faults = [
        _source(facts, derivation, answer, given)
        or (_only(facts, tool, given, derivation, answer, kind=kind) if alone else None)
        for given in facts.policy.tools.delegations
        if type_at(tuple((role, role) for role in given.roles), f"{tool.name}.{derivation.role}")
    ]
    if not faults:
        return Fault.NODE
    return None if None in faults else faults[0]


def _source(facts: Facts, derivation: Derivation, answer: Answer, given: Delegation) -> Fault | None:
    """Check that the answer is of a source that the delegation names, or that the task names."""
    reader = facts.policy.tools.find(given.tool)
    if reader is None or facts.policy.tools.find(answer.tool) is not reader:
        return Fault.NODE
    said = arguments_of(answer)
    if given.source != ANY:
        if derivation.premises:
            return Fault.PREMISE
        return None if any(text == given.source for _, text in said) else Fault.NODE
    return named_arguments(facts, answer, derivation.premises) if said else Fault.NODE


def _only(
    facts: Facts, tool: ToolRole, given: Delegation, derivation: Derivation, answer: Answer, *, kind: str
) -> Fault | None:
    """Check that no other value of the type stands in anything that was read of the source, and what is bound does."""
    texts = [
        text
        for node, one in facts.answers()
        if one.tool == answer.tool and one.arguments == answer.arguments
        for _, text in facts.leaves(node)
    ]
    # An address in what is carried is one of its own type.
    kinds = type_at((*tool.steers, *tool.acts), derivation.role) or kind
    for one in kinds.split("|"):
        for text in texts:
            if any(not same_value(one, derivation.value, other) for other in _values(one, text)):
                return Fault.NODE
    call = facts.proposal
    assert isinstance(call, ToolCall)
    for pointer, text in json_leaves(call.arguments) or ():
        field = field_of(pointer, call.arguments)
        name = type_at(tuple((one, one) for one in given.bound), field)
        if name:
            declared = type_at((*tool.steers, *tool.acts), name) or "amount|text"
            readings = dict(_STANDING.get(one, (names.PHRASE, phrase)) for one in declared.split("|"))
            if not any(occurs(readings, text, there) for there in texts):
                return Fault.NODE
    return None


def _values(kind: str, text: str) -> Iterator[str]:
    """Yield the values of a type that stand in a text."""
    if kind not in _SHAPED:
        return
    for start, end in _runs(kind, text):
        if _SHAPED[kind](text[start:end], text, start, end):
            yield text[start:end]


_LOCAL = ".+%-_"
_PHONE = "+0123456789 ()./-"


def _runs(kind: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the longest runs that may be such a value."""
    if kind == "url":
        # Letters that grow in lower case would move what is found: these marks are plain ones.
        lower = "".join(char.lower() if char.isascii() else char for char in text)
        for mark in ("://", "www."):
            at = lower.find(mark)
            while at >= 0:
                start, end = at, at + len(mark)
                while mark == "://" and start and _of_scheme(text[start - 1]):
                    start -= 1
                while end < len(text) and not text[end].isspace() and text[end] not in "\"'<>()":
                    end += 1
                yield start, start + len(text[start:end].rstrip(".,;:!?)]}"))
                at = lower.find(mark, end)
        return
    parts = {"email": _LOCAL + "@", "iban": " ", "phone": _PHONE}[kind]
    at = 0
    while at < len(text):
        end = at
        while end < len(text) and ((kind != "phone" and text[end].isalnum()) or text[end] in parts):
            end += 1
        if end > at:
            yield from _within(kind, text, at, end)
        at = max(end, at + 1)


def _of_scheme(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in "+.-")


def _within(kind: str, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if kind == "email":
        yield start, start + len(text[start:end].rstrip("."))
    elif kind == "phone":
        while start < end and not (text[start].isdigit() or text[start] == "+"):
            start += 1
        while end > start and not text[end - 1].isdigit():
            end -= 1
        yield start, end
    else:
        at = start
        while at < end:
            word = text[at:end].split(" ", 1)[0]
            if len(word) >= 4 and word[:2].isupper() and word[:2].isascii() and word[2:4].isdigit():
                yield at, at + len(word)
                if len(word) == 4:
                    yield at, at + len(_groups(text[at:end]))
            at += len(word) + 1


def _groups(text: str) -> str:
    words = text.split(" ")
    kept = 0
    while kept < len(words) and len(words[kept]) == 4 and words[kept].upper() == words[kept]:
        kept += 1
    if kept < len(words) and 0 < len(words[kept]) < 4 and words[kept].upper() == words[kept]:
        kept += 1
    return " ".join(words[:kept])


CHECKS: dict[str, Check] = {
    names.DELEGATED: delegated,
    names.RECEIVED_WHOLE: received_whole,
    names.DAY_NAMED: day_named,
}
