"""The checkers of the rules of choice: why the task means this value and no other of those that an answer holds."""

from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.derivations import names
from interlock.policy.derivations.checks_delegated import CHECKS as DELEGATED
from interlock.policy.derivations.checks_first_name import CHECKS as FIRST_NAMES
from interlock.policy.derivations.checks_listed import CHECKS as LISTED
from interlock.policy.derivations.checks_own import CHECKS as OWN
from interlock.policy.derivations.facts import Check, Facts, Fault, json_leaves
from interlock.policy.derivations.filenames_read import file_words
from interlock.policy.derivations.leaves_read import (
    READS,
    TRUSTED,
    field_of,
    field_type,
    records_of,
    same_value,
    whole_leaf,
)

_LEAST = 3


def record_selected(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """A trusted text names another leaf of the same record, and of no other; or the call's argument, of one record."""
    if not isinstance(facts.proposal, ToolCall):
        return Fault.RULE
    fault = whole_leaf(facts, derivation, kind)
    if fault is not None:
        return fault
    answer = facts.answer(derivation.node)
    tool = facts.policy.tools.find(answer.tool) if answer is not None else None
    if answer is None or tool is None or tool.effect not in READS or tool.output.echo:
        return Fault.NODE
    if len(derivation.premises) != 1:
        return Fault.PREMISE
    (premise,) = derivation.premises
    if sum(map(str.isalnum, premise.value)) < _LEAST:
        return Fault.PREMISE
    records = records_of(facts.leaves(derivation.node))
    own = tool.output.trust in TRUSTED
    for pointer, text in facts.leaves(derivation.node):
        if (
            records[pointer] != records[derivation.pointer]
            or pointer == derivation.pointer
            or text != premise.value
        ):
            continue
        field = field_of(pointer, answer.text) if answer.structured else ""
        beside = field_type(facts, answer, pointer) or ("name" if own else "")
        if field != premise.role or not beside or field == field_of(derivation.pointer, answer.text):
            continue
        spoken = premise.form == names.FILE_STEM
        twins = {
            records[other]
            for other, there in facts.leaves(derivation.node)
            if field_of(other, answer.text) == field
            and (
                file_words(there) == file_words(text) if spoken else same_value(beside, premise.value, there)
            )
        }
        if len(twins) == 1 and facts.recheck(premise, beside) is None:
            return None
    if len(set(records.values())) != 1:
        return Fault.PREMISE
    given = [(field_of(at, answer.arguments), text) for at, text in json_leaves(answer.arguments) or ()]
    named = (premise.role, premise.value) in given and facts.recheck(premise, "name") is None
    return None if named else Fault.PREMISE


CHECKS: dict[str, Check] = {
    names.RECORD_SELECTED: record_selected,
    **LISTED,
    **FIRST_NAMES,
    **DELEGATED,
    **OWN,
}
