"""The checkers of what lies with the user's own things, with the site that the task names, and with what a run made."""

from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.derivations import names
from interlock.policy.derivations.addresses import url_value
from interlock.policy.derivations.facts import Answer, Check, Facts, Fault, json_leaves
from interlock.policy.derivations.leaves_read import READS, field_type, type_at, whole_leaf
from interlock.policy.derivations.reading import shows_all
from interlock.policy.derivations.task_words import arguments_of, is_word, task_text, tokens
from interlock.policy.tools.roles import ToolRole

_NAME_CHARS = "abcdefghijklmnopqrstuvwxyz0123456789-._:"


def _called(facts: Facts) -> ToolRole | None:
    call = facts.proposal
    return facts.policy.tools.find(call.name) if isinstance(call, ToolCall) else None


def _answered(facts: Facts, derivation: Derivation) -> tuple[Answer, ToolRole] | None:
    answer = facts.answer(derivation.node)
    tool = facts.policy.tools.find(answer.tool) if answer is not None else None
    return None if answer is None or tool is None else (answer, tool)


def own_choice(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """A declared field of the user's own, for a call that lets the agent choose; the task has a word that asks for it.

    That the word is an order, the fold says.
    """
    tool = _called(facts)
    if tool is None or not type_at(tuple((one, one) for one in tool.chooses), derivation.role):
        return Fault.RULE
    fault = whole_leaf(facts, derivation, kind)
    if fault is not None:
        return fault
    read = _answered(facts, derivation)
    if read is None:
        return Fault.NODE
    answer, lister = read
    listed = lister.effect in READS and lister.output.trust != "directory" and not lister.output.echo
    if not listed or kind not in field_type(facts, answer, derivation.pointer).split("|"):
        return Fault.NODE
    if not tool.asks:
        return Fault.PREMISE if derivation.premises or tool.effect != "write" else None
    if len(derivation.premises) != 1 or not is_word(facts, derivation.premises[0], "asks"):
        return Fault.PREMISE
    said = derivation.premises[0].value.lower()
    known = {word for word, _, _ in tokens(task_text(facts))}
    asked = any(each.split()[0] == said and known.issuperset(each.split()[1:]) for each in tool.asks)
    return None if asked else Fault.PREMISE


def same_site(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """A link stands as it is in what a call gave back that opened another of the same host; the task names that one.

    Or that one is such a link itself, of an earlier answer.
    """
    tool = _called(facts)
    if tool is None or not tool.links or tool.effect != "egress" or kind != "url" or derivation.form:
        return Fault.RULE
    read = _answered(facts, derivation)
    if read is None or read[1].output.echo:
        return Fault.NODE
    answer, opener = read
    text = facts.leaf(derivation.node, derivation.pointer)
    if text is None or not 0 <= derivation.start < derivation.end <= len(text):
        return Fault.SPAN
    if not url_value(derivation.value, text, derivation.start, derivation.end):
        return Fault.SPAN
    if len(derivation.premises) != 1:
        return Fault.PREMISE
    (first,) = derivation.premises
    opened = (first.role, first.value) in arguments_of(answer) and (first.role, "url") in opener.steers
    host = _host(derivation.value)
    if not opened or not host or host != _host(first.value):
        return Fault.PREMISE
    if first.rule == names.SAME_SITE and not first.node < derivation.node:
        return Fault.PREMISE
    if first.rule not in (names.SAME_SITE, names.NAMED_IN_TASK) or facts.recheck(first, "url") is not None:
        return Fault.PREMISE
    return None


def _host(url: str) -> str:
    lower = url.strip().lower()
    for scheme in ("https://", "http://"):
        lower = lower.removeprefix(scheme)
    end = next((at for at, char in enumerate(lower) if char in "/?#"), len(lower))
    host = lower[:end]
    return host if "." in host and all(char in _NAME_CHARS for char in host) else ""


def made_here(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """A call of this run names it in quotes as what it made, and was not given it; of a folder, all below it too."""
    if _called(facts) is None or derivation.premises or derivation.form:
        return Fault.RULE
    read = _answered(facts, derivation)
    if read is None:
        return Fault.NODE
    answer, maker = read
    if maker.effect == "read" or not maker.output.makes or maker.output.makes != kind:
        return Fault.NODE
    text = facts.leaf(derivation.node, derivation.pointer)
    start, end = derivation.start, derivation.end
    if text is None or not 0 < start < end < len(text):
        return Fault.SPAN
    made = text[start:end]
    quoted = text[start - 1] == text[end] and text[end] in "'\"" and not set("'\"\n") & set(made)
    if not quoted or (
        text[end] == "'" and start > 1 and (text[start - 2].isalnum() or text[start - 2] == "_")
    ):
        return Fault.SPAN
    if any(made in given for _, given in json_leaves(answer.arguments) or ()):
        return Fault.NODE
    value = derivation.value
    if kind != "path":
        return None if value == made else Fault.SPAN
    if not shows_all(value) or any(step in (".", "..") for step in value.split("/")):
        return Fault.VALUE
    folder = made.rstrip("/")
    below = folder.startswith("/") and (
        value.rstrip("/") == folder or value[: len(folder) + 1] == f"{folder}/"
    )
    return None if below and folder.strip("/") else Fault.SPAN


CHECKS: dict[str, Check] = {
    names.OWN_CHOICE: own_choice,
    names.SAME_SITE: same_site,
    names.MADE_HERE: made_here,
}
