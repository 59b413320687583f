"""What a call of a tool tells to whom about whom, plainly: written from docs/regulation.md.

Nothing of `src` imports this, and this imports nothing of `src`. Values are distinct words: what stands in a text is
looked for as it is, so disguises are no matter of this page.
"""

from __future__ import annotations

from typing import Any

STRANGER = "somebody whom the policy does not declare"


def judged(
    declared: dict[str, Any], read: list[dict[str, Any]], call: dict[str, Any]
) -> tuple[str, set[Any]]:
    """Return the rule that holds or refuses a call, `""` for none, and the flows that it stands for.

    Takes: `declared`, the key `regulation`; `read`, answers so far, `{"tool", "record"}`; `call`, `{"tool", "to": [],
    "texts": {argument: text}}`.
    """
    present = []
    for entry in declared.get("data", []):
        for consent in _consents_present(entry, read, call):
            present.append((entry, consent))
    flows = []
    for to in dict.fromkeys(one.strip().lower() for one in call["to"]):
        party = next((one for one in declared.get("parties", []) if to in one["match"]), None)
        for entry, consent in present:
            flows.append(_flow(declared, entry, consent, party))
    for tuple_, rule in flows:
        if rule:
            return rule, {tuple_}
    return ("regulation:judge" if flows else ""), {tuple_ for tuple_, _rule in flows}


def _consents_present(entry: dict[str, Any], read: list[dict[str, Any]], call: dict[str, Any]) -> list[str]:
    """Return the states of consent under which data of an entry stands in a call, in the order in which they came."""
    if "arguments" in entry:
        named = [f"{call['tool']}.{argument}" for argument, text in call["texts"].items() if text]
        return [_declared(entry, None)] if set(named) & set(entry["arguments"]) else []
    found: dict[str, list[str]] = {}
    for answer in read:
        if answer["tool"] != entry["tool"]:
            continue
        record = answer["record"]
        values = [text for key, text in record.items() if not entry.get("fields") or key in entry["fields"]]
        found.setdefault(_declared(entry, record), []).extend(values)
    told = " ".join([*call["texts"].values(), *call["strangers"]]).lower()
    return [
        consent for consent, values in found.items() if any(one.lower() in told.split() for one in values)
    ]


def _declared(entry: dict[str, Any], record: dict[str, str] | None) -> str:
    consent = entry.get("consent")
    if isinstance(consent, dict):
        said = record is not None and record.get(consent["field"], "").lower() in consent["is"]
        return "consent given" if said else "no consent"
    return {
        None: "consent not declared",
        "given": "consent given",
        "withheld": "no consent",
        "not-needed": "no consent needed",
    }[consent]


def _flow(
    declared: dict[str, Any], entry: dict[str, Any], consent: str, party: dict[str, Any] | None
) -> tuple[tuple[str, ...], str]:
    named = party or {}
    basis = named.get("basis") or entry.get("basis") or ("consent" if consent == "consent given" else "")
    purpose = named.get("purpose") or entry.get("purpose") or ""
    sender = declared["sender"]
    flow = (
        f"{sender['name']} ({sender['role']})",
        f"{party['name']} ({party['role']})" if party else STRANGER,
        entry["subject"],
        entry["type"],
        f"legal basis: {basis or 'none declared'}; purpose: {purpose or 'none declared'}; {consent}",
    )
    if party is None and declared.get("unknown", "refuse") == "refuse":
        return flow, "regulation:recipient"
    if party is not None and "receives" in party and entry["type"] not in party["receives"]:
        return flow, "regulation:recipient"
    if consent == "no consent" or (basis == "consent" and consent != "consent given"):
        return flow, "regulation:consent"
    return flow, ("" if basis else "regulation:basis")
