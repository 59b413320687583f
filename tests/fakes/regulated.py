"""A clinic's policy with data, parties and consent, and judges that say what a test wrote down."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.fakes.http_service import Service

from interlock.model.effects import Effect
from interlock.model.requests import Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.policy import Knowledge, Policy, load_policy
from interlock.policy.tools.calling import characterise_call

TASK = "read record 7 and mail it to lab@lab.example, ad@ads.example, eve@x.example and kin@home.example"
REGULATION = """\
regulation:
  apply: [hipaa]
  sender: {name: Riverside Clinic, role: covered entity}
  parties:
    - {name: City Lab, role: laboratory, match: ["*@lab.example", lab.example], receives: [health data], basis: treatment}
    - {name: Ad Firm, role: advertiser, match: ["*@ads.example"], receives: []}
    - {name: Family, role: relative, match: ["*@home.example"]}
  data:
    - type: health data
      subject: patient
      tool: read_record
      fields: [diagnosis]
      purpose: care
      consent: {field: consent, is: ["yes"]}
    - {type: contact data, subject: patient, tool: read_record, fields: [phone]}
    - {type: billing data, subject: patient, place: "bills/**", basis: payment, consent: not-needed}
    - {type: free note, subject: patient, arguments: [send_mail.note], basis: treatment}
"""
TOOLS = """\
tools:
  read_record: {effect: read, steers: {number: text}}
  send_mail: {effect: send, steers: {to: email}, carries: [body, note], clearance: critical, asks: [mail],
    discloses: {recipient: [to], data: [body]}}
"""
POLICY = f"""\
version: 1
preset: none
trusted: [{{task: true}}]
{TOOLS}{REGULATION}cedar: |
  permit(principal, action, resource) when {{ context.derived }};
"""
RECORD = {"name": "Ann Doe", "diagnosis": "diabetes", "phone": "555-0133-7781", "consent": "yes"}


def clinic(more: str = "", *, without: str = "") -> Policy:
    return load_policy(
        POLICY.replace(without, "") + more if without else POLICY + more, filename="clinic.yaml"
    )


def known(policy: Policy, record: object = RECORD, task: str = TASK) -> Knowledge:
    """Return what is known after a record was read."""
    knowledge = Knowledge.started(policy, task, 0)
    return knowledge if record is None else with_answer(policy, knowledge, "read_record", record)


def with_answer(
    policy: Policy, knowledge: Knowledge, tool: str, answer: object, text: str | None = ""
) -> Knowledge:
    effect = call(policy, knowledge, tool, number="7")
    text = json.dumps(answer) if text == "" else text
    result = ToolResult(
        outcome=Outcome.DONE, text=text, structured=not isinstance(answer, str), size_bytes=len(text or "x")
    )
    return knowledge.with_tool_result(policy, effect, result, 1)


def call(policy: Policy, knowledge: Knowledge, tool: str, **arguments: object) -> Effect:
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return characterise_call(policy, knowledge, ToolCall(call="c1", tool=tool, arguments=text), "e1")


def said(label: str, provision: str = "", thought: str = "It is as the test says.") -> str:
    return json.dumps({"label": label, "provision": provision, "thought": thought})


def judge_server(judging: Callable[[str, list[str]], str]) -> Service:
    """Return a model's server. Takes: `judging`, the prompt's last message and the provisions shown to the answer."""

    def answer(_method: str, _path: str, body: bytes) -> tuple[int, Any]:
        asked = json.loads(body)
        schema = asked["response_format"]["json_schema"]["schema"]
        shown = schema["properties"]["provision"]["enum"][:-1]
        return 200, {
            "model": "judge-1",
            "choices": [
                {
                    "message": {"content": judging(asked["messages"][-1]["content"], shown)},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 900, "completion_tokens": 80},
        }

    return Service(answer)
