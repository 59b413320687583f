"""The second reading of tools: what steers a call, and which leaf of an answer vouches for it alone."""

from collections.abc import Iterator

from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.derivations import names
from interlock.policy.derivations.addresses import url_value
from interlock.policy.derivations.facts import Answer, Check, Facts, Fault, json_leaves
from interlock.policy.derivations.numbers_read import day_of, iban, number_of
from interlock.policy.derivations.reading import email, lower

READS = ("read", "egress")
"""Effects of tools that make nothing."""
TRUSTED = ("own", "directory")
"""Whose answers vouch without a declared field."""
WHOLE_TOOL = "tool"
"""The role of a tool that the policy does not declare."""


def kinds_of(policy: Policy, call: ToolCall, role: str, value: str) -> tuple[str, ...]:
    """Return the value types that a value has as what steers a call, none where it does not."""
    tool = policy.tools.find(call.name)
    leaves = json_leaves(call.arguments)
    if tool is None or leaves is None:
        return ("text",) if (role, value) == (WHOLE_TOOL, call.name) else ()
    found: list[str] = []
    for pointer, text in leaves:
        if field_of(pointer, call.arguments) != role:
            continue
        declared = type_at((*tool.steers, *tool.acts), role)
        if declared and text == value:
            found += declared.split("|")
        elif not declared and not type_at(tuple((name, "text") for name in tool.carries), role):
            found += ["text"] if text == value else []
        elif not declared:
            found += _acting(text, value)
    return tuple(dict.fromkeys(found))


def _acting(text: str, value: str) -> Iterator[str]:
    """Yield as what a value acts that stands in a text that is carried."""
    if not value or value not in text:
        return
    whole = (value, value, 0, len(value))
    if email(*whole):
        yield "email"
    if url_value(*whole):
        yield "url"
    if iban(*whole):
        yield "iban"


def field_of(pointer: str, structure: str) -> str:
    """Return the dotted name of a leaf (`to[]`, `who.name`) whose pointer in a JSON text is given."""
    import json

    if pointer.endswith("~"):
        # The name of an entry of a mapping, not what stands there.
        return field_of(pointer.rpartition("/")[0], structure) + "{}"
    here = json.loads(structure)
    field = ""
    for part in pointer.split("/")[1:]:
        if isinstance(here, list):
            field, here = f"{field}[]", here[int(part)]
        else:
            key = part.replace("~1", "/").replace("~0", "~")
            field, here = (f"{field}.{key}" if field else key), here[key]
    return field


def type_at(declared: tuple[tuple[str, str], ...], field: str) -> str:
    """Return the type declared of a field, or of what it lies in; `""` for none."""
    while field:
        for name, kind in declared:
            if name == field:
                return kind
        field = field[:-2] if field.endswith("[]") else field.rpartition(".")[0]
    return ""


def field_type(facts: Facts, answer: Answer, pointer: str) -> str:
    """Return the type that the policy declares of a leaf of an answer, `""` for none."""
    tool = facts.policy.tools.find(answer.tool)
    if tool is None:
        return ""
    field = field_of(pointer, answer.text) if answer.structured else ""
    for name, kind in tool.output.fields:
        if name.removeprefix("[]").removeprefix(".") == field.removeprefix("[]").removeprefix("."):
            return kind
        if name[:2] == "*." and field and _below_entry(pointer, field) == name[2:]:
            return kind
    return ""


def _below_entry(pointer: str, field: str) -> str:
    """Return the name of a leaf's field within its entry of a mapping, `""` where it lies in none."""
    entry = pointer.split("/")[1].replace("~1", "/").replace("~0", "~")
    return field[len(entry) + 1 :] if field.startswith(f"{entry}.") else ""


def same_value(kind: str, value: str, given: str) -> bool:
    """Say whether a leaf gives a value of a type."""
    if kind == "url":
        return url_value(value, given, 0, len(given)) if "://" in given else lower(value) == lower(given)
    if kind == "amount":
        number = number_of(" ".join(value.split()))
        return number is not None and number == number_of(" ".join(given.split()))
    if kind == "date" and day_of(value.strip()) is not None:
        return day_of(value.strip()) == day_of(given.strip())
    if kind == "iban":
        return value.replace(" ", "") == given.replace(" ", "")
    if kind == "phone":
        return bool(_digits(value)) and _digits(value) == _digits(given)
    one, other = " ".join(value.split()), " ".join(given.split())
    if kind.startswith("id:"):
        return one == other
    return one == other or (one.isascii() and other.isascii() and one.lower() == other.lower())


def _digits(text: str) -> str:
    plain = all(char in "+0123456789 ()./-" for char in text.strip()) and not day_of(text.strip())
    return "".join(char for char in text if char in "+0123456789") if plain else ""


def whole_leaf(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """The whole leaf is the value, by its declared type or as the user's own."""
    if derivation.form:
        return Fault.RULE
    answer = facts.answer(derivation.node)
    if answer is None:
        return Fault.NODE
    tool = facts.policy.tools.find(answer.tool)
    if tool is None:
        return Fault.NODE
    leaf = facts.leaf(derivation.node, derivation.pointer)
    if leaf is None or (derivation.start, derivation.end) != (0, len(leaf)):
        return Fault.SPAN
    if not same_value(kind, derivation.value, leaf):
        return Fault.SPAN
    declared = field_type(facts, answer, derivation.pointer)
    own = tool.output.trust in TRUSTED and not tool.output.echo and derivation.pointer != ""
    return None if kind in declared.split("|") or (own and not declared) else Fault.NODE


def structured_leaf(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """It is a leaf of the user's own state, in an answer that is one record."""
    if derivation.premises or not isinstance(facts.proposal, ToolCall):
        return Fault.RULE
    fault = whole_leaf(facts, derivation, kind)
    if fault is not None:
        return fault
    answer = facts.answer(derivation.node)
    tool = facts.policy.tools.find(answer.tool) if answer is not None else None
    if answer is None or tool is None or tool.effect not in READS or tool.output.echo:
        return Fault.NODE
    one_record = len(set(records_of(facts.leaves(derivation.node)).values())) == 1
    field = field_of(derivation.pointer, answer.text) if answer.structured else ""
    alone = one_record and "[]" not in field and not field.endswith("{}")
    return None if tool.output.trust == "own" and alone else Fault.NODE


def records_of(leaves: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return by pointer of a leaf the pointer of the nearest object that it lies in."""
    found: dict[str, str] = {}
    for pointer, _ in leaves:
        parts = pointer.split("/")
        if pointer.endswith("~"):
            parts.pop()
        while len(parts) > 1 and parts[-1].isdigit():
            parts.pop()
        found[pointer] = "/".join(parts[:-1])
    return found


def own_object(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """It is the id of what a call of this run made: new, so not among what the call was given."""
    if derivation.premises or not isinstance(facts.proposal, ToolCall) or not kind.startswith("id:"):
        return Fault.RULE
    fault = whole_leaf(facts, derivation, kind)
    if fault is not None:
        return fault
    answer = facts.answer(derivation.node)
    tool = facts.policy.tools.find(answer.tool) if answer is not None else None
    if answer is None or tool is None or tool.effect in READS:
        return Fault.NODE
    leaf = facts.leaf(derivation.node, derivation.pointer)
    given = [text for _, text in json_leaves(answer.arguments) or ()]
    return Fault.NODE if leaf in given else None


CHECKS: dict[str, Check] = {names.STRUCTURED_LEAF: structured_leaf, names.OWN_OBJECT: own_object}
