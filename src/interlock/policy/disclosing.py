"""What an effect discloses, as five-part flows: derived from where data came from and what roles are declared.

What the agent says of its own action counts for nothing: neither a purpose nor a subject that it names is believed.
Source: KNOX §4.2, derive(α).
"""

from interlock.model.disclosures import Flow
from interlock.model.effects import Channel, Effect
from interlock.model.records import dataclass
from interlock.policy.declaration import Policy
from interlock.policy.net_effects import readable
from interlock.policy.provenance import Knowledge
from interlock.policy.regulation import (
    CONSENT_BASES,
    Consent,
    ConsentField,
    RegulatedData,
    RegulatedParty,
    Regulation,
    addresses_in,
)
from interlock.policy.tools.leaves import Leaf, leaves_of
from interlock.policy.tools.roles import EGRESS, OBJECT_PREFIX, OPERATION_PREFIX, SEND, ToolRole, type_of

_MODEL = "net.model"
STRANGER = "somebody whom the policy does not declare"
RECIPIENT, BASIS, CONSENT = "regulation:recipient", "regulation:basis", "regulation:consent"
_ADDRESSES = ("email", "url", "host", "phone", "iban", "name")
MAX_FLOWS = 64


class TooMany(ValueError):
    """An effect tells so many so much that it is not looked through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosed:
    """One flow of an effect. Takes: `breach`, the static rule that it breaks, `""` for none; `why`, in words."""

    flow: Flow
    breach: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What an effect gives to others.

    Takes: `unread`, whether it may hold declared data that cannot be seen in it.
    """

    flows: tuple[Disclosed, ...] = ()
    unread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """Who is told, and in what texts; `leaves`, of a call's arguments; `opaque`, whether some of it cannot be read."""

    recipients: tuple[str, ...]
    texts: tuple[str, ...]
    tool: str = ""
    leaves: tuple[Leaf, ...] = ()
    opaque: bool = False


def discloses(policy: Policy, effect: Effect) -> bool:
    """Say whether an effect may tell somebody something."""
    if effect.channel is Channel.TOOL and effect.tool is not None:
        role = policy.tools.find(effect.tool.name)
        told = role is not None and role.discloses is not None
        return told or effect.operation.removeprefix(OPERATION_PREFIX) in (SEND, EGRESS)
    return effect.request is not None and effect.operation != _MODEL


def derive(policy: Policy, knowledge: Knowledge, effect: Effect) -> Disclosure | None:
    """Return what an effect discloses of the declared data; None where it tells nobody anything.

    Holds: pure; every part of a flow is a word of the policy's or of ours.
    Raises: TooMany.
    """
    regulation = policy.regulation
    if regulation is None or not discloses(policy, effect):
        return None
    told = _of_call(policy, regulation, effect) if effect.tool is not None else _of_request(effect)
    present, unread = _present(regulation, knowledge, told)
    if len(present) * len(told.recipients) > MAX_FLOWS:
        raise TooMany
    found = [
        _disclosed(regulation, entry, consent, regulation.party_of(value))
        for value in told.recipients
        for entry, consent in present
    ]
    return Disclosure(flows=tuple(dict.fromkeys(found)), unread=unread)


def _of_call(policy: Policy, regulation: Regulation, effect: Effect) -> _Told:
    assert effect.tool is not None
    call = effect.tool
    itself = (f"{OBJECT_PREFIX}{call.name}".lower(),)
    leaves = leaves_of(call.arguments, whole=True)
    if leaves is None:
        return _Told(recipients=itself, texts=(call.arguments,), tool=call.name, opaque=True)
    role = policy.tools.find(call.name)
    named = [leaf for leaf in leaves if _names_recipient(role, leaf)]
    values = tuple(dict.fromkeys(one for leaf in named for one in addresses_in(leaf.text))) or itself
    # An address of a declared party says nothing more than who is told; whatever else is there may be data.
    plain = {id(leaf) for leaf in named if all(map(regulation.party_of, addresses_in(leaf.text)))}
    texts = tuple(leaf.text for leaf in leaves if id(leaf) not in plain)
    return _Told(recipients=values, texts=(*texts, "\n".join(texts)), tool=call.name, leaves=leaves)


def _names_recipient(role: ToolRole | None, leaf: Leaf) -> bool:
    if role is None:
        return False
    if role.discloses is not None:
        return bool(type_of(tuple((name, "text") for name in role.discloses.recipient), leaf.field))
    kind = type_of(role.steers, leaf.field)
    return any(one in _ADDRESSES for one in kind.split("|"))


def _of_request(effect: Effect) -> _Told:
    assert effect.request is not None
    request, message = effect.request, effect.message
    if message is not None:
        body, opaque = message.text, message.text is None
    else:
        body = request.body_text
        opaque = body is None and request.body_size_bytes != 0
    texts = (readable(request),) if message is None else (body or "",)
    return _Told(recipients=(request.host.lower(),), texts=texts, opaque=opaque)


def _present(
    regulation: Regulation, knowledge: Knowledge, told: _Told
) -> tuple[list[tuple[RegulatedData, Consent]], bool]:
    """Return the declared data that stands in what is told, with its consent; and whether more of it may."""
    found: list[tuple[RegulatedData, Consent]] = []
    unread = False
    bare = told.tool.rpartition("/")[2]
    for number, entry in enumerate(regulation.data):
        if told.opaque and entry.arguments and _is_tool(entry, told.tool, bare):
            unread = True
        elif any(_is_argument(entry, told.tool, bare, leaf) for leaf in told.leaves):
            found.append((entry, _declared(entry)))
        for held in knowledge.regulated:
            if held.entry != number:
                continue
            if held.lost or told.opaque:
                unread = True
            if held.is_in(told.texts):
                found.append((entry, held.consent))
    return found, unread


def _is_tool(entry: RegulatedData, tool: str, bare: str) -> bool:
    return any(name.rpartition(".")[0] in (tool, bare) for name in entry.arguments)


def _is_argument(entry: RegulatedData, tool: str, bare: str, leaf: Leaf) -> bool:
    names = tuple(
        (argument, "text")
        for name in entry.arguments
        for of, _, argument in [name.rpartition(".")]
        if of in (tool, bare)
    )
    return bool(names) and bool(type_of(names, leaf.field))


def _declared(entry: RegulatedData) -> Consent:
    # An argument lies in no record, so no field of it says that there is consent.
    return Consent.WITHHELD if isinstance(entry.consent, ConsentField) else entry.consent


def _disclosed(
    regulation: Regulation, entry: RegulatedData, consent: Consent, party: RegulatedParty | None
) -> Disclosed:
    basis = (party.basis if party else "") or entry.basis
    purpose = (party.purpose if party else "") or entry.purpose
    if not basis and consent is Consent.GIVEN:
        basis = CONSENT_BASES[0]
    terms = [
        f"legal basis: {basis or 'none declared'}",
        f"purpose: {purpose or 'none declared'}",
        consent.value,
    ]
    flow = Flow(
        sender=regulation.sender,
        recipient=f"{party.name} ({party.role})" if party else STRANGER,
        subject=entry.subject,
        information=entry.type,
        principle="; ".join(terms),
    )
    breach, why = _breach(regulation, entry, consent, party, basis)
    return Disclosed(flow=flow, breach=breach, why=why)


def _breach(
    regulation: Regulation,
    entry: RegulatedData,
    consent: Consent,
    party: RegulatedParty | None,
    basis: str,
) -> tuple[str, str]:
    """Return the first static rule that a flow breaks, and why."""
    if party is None and not regulation.asks_unknown:
        return RECIPIENT, "its recipient is not declared"
    if party is not None and party.receives is not None and entry.type not in party.receives:
        return RECIPIENT, f"{party.name} may not be told {entry.type}"
    if consent is Consent.WITHHELD or (basis in CONSENT_BASES and consent is not Consent.GIVEN):
        return CONSENT, f"there is no consent of the {entry.subject}"
    if not basis:
        return BASIS, "no legal basis is declared for it"
    return "", ""
