"""Check a recorded derivation again: from the ledger's events and the policy's text, without what found it.

The order of the questions is that of the faults: does the value steer the effect, is there such a rule, does the node
vouch, does the span give the value, do the premises hold.
"""

from collections.abc import Mapping
from functools import partial

from interlock.model.effects import ChangeKind, FileChange, Hazard
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.derivations import names
from interlock.policy.derivations.addresses import NET_READINGS, TOOL_READINGS, bare_host, url_value
from interlock.policy.derivations.checks_choice import CHECKS as CHOICE_CHECKS
from interlock.policy.derivations.facts import Check, Facts, Fault, Proposal, Trail, json_leaves
from interlock.policy.derivations.filenames_read import file_stem
from interlock.policy.derivations.grants_read import granted
from interlock.policy.derivations.leaves_read import CHECKS as LEAF_CHECKS
from interlock.policy.derivations.leaves_read import WHOLE_TOOL, field_of, kinds_of, type_at
from interlock.policy.derivations.net_read import by_policy, lens_action, net_roles
from interlock.policy.derivations.numbers_read import amount, date, date_words, iban, id_of, phone
from interlock.policy.derivations.places_read import base_name, link_target, path_tail, under_root
from interlock.policy.derivations.reading import Reading, email, path, phrase, shows_all
from interlock.policy.derivations.sentences_read import before_sentence

_WHERE = {names.NAMED_IN_TASK: "task", names.NAMED_IN_FILE: "file", names.NAMED_IN_NET: "net"}
_READINGS: Mapping[str, Reading] = {
    names.PHRASE: phrase,
    names.PATH: path,
    names.FILE_STEM: file_stem,
    names.EMAIL: email,
    names.IBAN: iban,
    names.PHONE: phone,
    names.AMOUNT: amount,
    names.DATE: date,
    **TOOL_READINGS,
}
_OF_TYPE: Mapping[tuple[str, str], Reading] = {
    ("email", names.EMAIL): before_sentence(email),
    ("url", names.URL): before_sentence(url_value),
    ("url", names.PHRASE): before_sentence(bare_host),
    ("date", names.PHRASE): date_words,
}
_FORMS_OF: Mapping[str, tuple[str, ...]] = {
    "text": (names.PHRASE,),
    "name": (names.PHRASE,),
    "choice": (names.PHRASE,),
    "email": (names.EMAIL,),
    "url": (names.URL, names.PHRASE),
    "host": (names.HOST, names.URL_HOST, names.ORIGIN, names.MAIL_DOMAIN),
    "filename": (names.PHRASE, names.FILE_STEM),
    "path": (names.PATH,),
    "iban": (names.IBAN,),
    "phone": (names.PHONE,),
    "amount": (names.AMOUNT,),
    "date": (names.DATE, names.PHRASE),
}
"""By which forms a value of a type may be had from a text."""


def recheck(trail: Trail, effect: str, seq: int, derivation: Derivation) -> Fault | None:
    """Check one derivation of an effect that the node `seq` proposed; None where it holds.

    Takes: `trail`, the ledger's events up to that node.
    """
    proposal, policy = trail.proposals.get(effect), trail.policy
    if proposal is None or policy is None:
        return Fault.NODE
    facts = Facts(policy=policy, effect=effect, proposal=proposal, seq=seq, trail=trail, check=premise)
    kinds = types_of(facts, proposal, derivation)
    if not kinds:
        return Fault.VALUE
    faults = [_fault(facts, derivation, kind) for kind in kinds]
    return None if None in faults else faults[0]


def owed(trail: Trail, effect: str) -> frozenset[tuple[str, str]]:
    """Return the roles and values of which each needs a derivation where provenance releases an effect.

    Holds: errs towards fewer: that a request's URL steers it, and what a text that is carried holds, the fold says.
    """
    proposal, policy = trail.proposals.get(effect), trail.policy
    if proposal is None or policy is None:
        return frozenset()
    if isinstance(proposal, FileChange):
        roles = ("path", "source", "link-target")
        return frozenset((role, value) for role in roles for value in _of_change(proposal, role))
    if isinstance(proposal, NetRequest):
        return frozenset(("host", value) for value in net_roles(policy, proposal)["host"])
    tool = policy.tools.find(proposal.name)
    leaves = json_leaves(proposal.arguments)
    if tool is None or leaves is None:
        return frozenset(((WHOLE_TOOL, proposal.name),))
    if tool.effect == "read" or tool.inert or tool.follows:
        return frozenset()
    fields = ((field_of(pointer, proposal.arguments), text) for pointer, text in leaves)
    carried = tuple((name, "text") for name in tool.carries)
    declared = (*tool.steers, *tool.acts)
    return frozenset(
        (field, text) for field, text in fields if type_at(declared, field) or not type_at(carried, field)
    )


def types_of(facts: Facts, proposal: Proposal, derivation: Derivation) -> tuple[str, ...]:
    """Return the value types that a value has as what steers an effect, none where it does not."""
    role, value = derivation.role, derivation.value
    if isinstance(proposal, FileChange):
        return ("place",) if value in _of_change(proposal, role) else ()
    if isinstance(proposal, NetRequest):
        return (role,) if value in net_roles(facts.policy, proposal).get(role, ()) else ()
    return kinds_of(facts.policy, proposal, role, value)


def _of_change(change: FileChange, role: str) -> tuple[str, ...]:
    if role == "path":
        return (change.place.path,)
    if role == "source" and change.kind is ChangeKind.RENAME and change.source is not None:
        return (change.source.path,)
    if role == "link-target" and change.after is not None and Hazard.OUTWARD_LINK in change.hazards:
        return (change.after.link_target,)
    return ()


def _fault(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    rule, proposal = derivation.rule, facts.proposal
    if rule in _WHERE:
        if isinstance(proposal, FileChange):
            return _named(facts, derivation, _place_readings(proposal, derivation.role))
        if isinstance(proposal, NetRequest):
            return _named(facts, derivation, _net_readings(proposal, derivation.role))
        return _named(facts, derivation, typed_readings(kind))
    check = RULE_CHECKS.get(rule)
    return Fault.RULE if check is None else check(facts, derivation, kind)


def premise(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """Check what another derivation rests on, as a value of one of these types (`iban|name`)."""
    if derivation.rule in _WHERE:
        return _named(facts, derivation, typed_readings(kind))
    check = RULE_CHECKS.get(derivation.rule)
    if check is None:
        return Fault.RULE
    faults = [check(facts, derivation, one) for one in kind.split("|")]
    return None if None in faults else faults[0]


def typed_readings(kind: str) -> dict[str, Reading]:
    """Return the readings by which a text may give a value of a type, or of one of several."""
    found: dict[str, Reading] = {}
    for one in kind.split("|"):
        if one.startswith("id:"):
            found[names.ID] = partial(id_of, one.removeprefix("id:"))
        for form in _FORMS_OF.get(one, ()):
            found[form] = _OF_TYPE.get((one, form)) or _READINGS[form]
    return found


def _net_readings(request: NetRequest, role: str) -> dict[str, Reading]:
    forms: tuple[str, ...] = (names.HOST, names.URL_HOST) if role == "host" else (names.URL, names.URL_PREFIX)
    if role == "url" and request.method.upper() == "DELETE":
        # Whoever names the URL above it does not speak of what stands below.
        forms = (names.URL,)
    return {form: NET_READINGS[form] for form in forms}


def _place_readings(change: FileChange, role: str) -> dict[str, Reading]:
    if role == "link-target":
        return {names.PHRASE: link_target}
    return {
        names.PATH_TAIL: path_tail(change, role),
        names.BASE_NAME: base_name(change, role),
    }


def _named(facts: Facts, derivation: Derivation, readings: Mapping[str, Reading]) -> Fault | None:
    if facts.kind(derivation.node) not in ("task", "file", "net"):
        return Fault.NODE
    form = derivation.form
    if _WHERE[derivation.rule] != facts.kind(derivation.node) or derivation.premises:
        return Fault.RULE
    if form and form not in readings:
        return Fault.RULE
    given = facts.text_at(derivation.node, derivation.start, derivation.pointer)
    if given is None:
        return Fault.SPAN
    if not given.vouches:
        return Fault.NODE
    start, end = derivation.start - given.start, derivation.end - given.start
    if not 0 <= start < end <= len(given.text):
        return Fault.SPAN
    if isinstance(facts.proposal, ToolCall) and not shows_all(derivation.value):
        return Fault.VALUE
    # An older ledger does not say the form: any of its type will do.
    for name, read in readings.items():
        if form in ("", name) and read(derivation.value, given.text, start, end):
            return None
    return Fault.SPAN


RULE_CHECKS: dict[str, Check] = {
    names.UNDER_ROOT: under_root,
    names.PUBLISHED: by_policy,
    names.MODEL_PROVIDER: by_policy,
    names.NAMED_IN_POLICY: by_policy,
    names.GRANTED: granted,
    names.LENS_ACTION: lens_action,
    **LEAF_CHECKS,
    **CHOICE_CHECKS,
}
"""The checker of every rule that is not about words in a text."""
