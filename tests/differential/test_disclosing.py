"""The regulation guard and `spec/disclosing.py` derive the same flows and rules from the same declarations."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from spec.disclosing import judged
from tests.fakes.regulated import call, with_answer

from interlock.model.verdicts import Guard
from interlock.policy import Knowledge, decide, load_policy

WORDS = [f"v{number:02}x{number * 7919:06x}" for number in range(12)]
FIELDS = ["diagnosis", "phone", "consent"]
TYPES = ["health data", "contact data"]
PLACES = ["ann@lab.example", "bob@ads.example", "eve@else.example"]
TERMS = {"basis": st.sampled_from(["treatment", "consent"]), "purpose": st.just("care")}
PARTIES = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["Lab", "Ads"]),
        "role": st.just("processor"),
        "match": st.lists(st.sampled_from(PLACES[:2]), min_size=1, max_size=2, unique=True),
    },
    optional={"receives": st.lists(st.sampled_from(TYPES), max_size=2, unique=True), **TERMS},
)
CONSENTS = st.one_of(
    st.sampled_from(["given", "withheld", "not-needed"]), st.just({"field": "consent", "is": ["yes"]})
)
KEPT = {"type": st.sampled_from(TYPES), "subject": st.sampled_from(["patient", "customer"])}
DATA = st.one_of(
    st.fixed_dictionaries(
        {**KEPT, "tool": st.sampled_from(["read_record", "look"])},
        optional={
            "fields": st.lists(st.sampled_from(FIELDS[:2]), min_size=1, max_size=2, unique=True),
            "consent": CONSENTS,
            **TERMS,
        },
    ),
    st.fixed_dictionaries(
        {**KEPT, "arguments": st.just(["send_mail.note"])}, optional={"consent": CONSENTS, **TERMS}
    ),
)
DECLARED = st.fixed_dictionaries(
    {
        "apply": st.just(["hipaa"]),
        "sender": st.just({"name": "Clinic", "role": "covered entity"}),
        "parties": st.lists(PARTIES, max_size=3),
        "data": st.lists(DATA, max_size=4),
    },
    optional={"unknown": st.sampled_from(["refuse", "ask"])},
)
RECORDS = st.fixed_dictionaries(
    {"diagnosis": st.sampled_from(WORDS), "phone": st.sampled_from(WORDS)},
    optional={"consent": st.sampled_from(["yes", "no"])},
)
READ = st.lists(
    st.fixed_dictionaries({"tool": st.sampled_from(["read_record", "look"]), "record": RECORDS}), max_size=3
)
TEXTS = st.fixed_dictionaries(
    {"body": st.lists(st.sampled_from([*WORDS, "hello", "there"]), max_size=4).map(" ".join)},
    optional={"note": st.sampled_from(["", "nothing", *WORDS[:3]])},
)
TOOLS = """\
version: 1
preset: none
trusted: [{task: true}]
tools:
  read_record: {effect: read, steers: {number: text}}
  look: {effect: read, steers: {number: text}}
  send_mail: {effect: send, steers: {to: email}, carries: [body, note], discloses: {recipient: [to], data: [body]}}
cedar: |
  permit(principal, action, resource);
"""


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "120")), deadline=None)
@given(DECLARED, READ, TEXTS, st.lists(st.sampled_from(PLACES), min_size=1, max_size=2, unique=True))
def test_the_guard_derives_what_the_spec_derives(
    declared: dict[str, Any], read: list[dict[str, Any]], texts: dict[str, str], to: list[str]
) -> None:
    policy = load_policy(TOOLS.replace("cedar:", f"regulation: {json.dumps(declared)}\ncedar:"), filename="p")
    knowledge = Knowledge.started(policy, "read and mail to " + ", ".join(PLACES), 0)
    for one in read:
        knowledge = with_answer(policy, knowledge, one["tool"], one["record"])
    effect = call(policy, knowledge, "send_mail", to=", ".join(to), **texts)
    (verdict,) = decide(policy, knowledge, (effect,))
    checks = [one for one in verdict.checks if one.guard is Guard.REGULATION]
    # An address of nobody whom the policy knows may be data itself.
    known = {place for party in declared["parties"] for place in party["match"]}
    strangers = [] if set(to) <= known else to
    rule, flows = judged(
        declared, read, {"tool": "send_mail", "to": to, "texts": texts, "strangers": strangers}
    )
    assert (checks[-1].rules[0] if checks and checks[-1].rules else "") == rule
    derived = {
        (one.sender, one.recipient, one.subject, one.information, one.principle)
        for check in checks
        for one in check.flows
    }
    assert derived == flows
