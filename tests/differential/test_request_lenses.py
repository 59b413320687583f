"""A request that a lens recognises is decided as `spec/network.py` says, with `spec/tools.py` on the call that it is."""

import json
from typing import Any

from hypothesis import strategies as st
from spec import network as net
from spec import tools as spec
from tests.fakes.few_and_many import few_and_many
from tests.unit.test_policy_request_lenses import policy_of

from interlock import policy as room
from interlock.policy import Knowledge
from interlock.policy.lenses.trying import request_of

POLICY = policy_of("github")
TOOL: dict[str, Any] = {
    "effect": "send",
    "asks": ["open", "file", "create", "report", "raise"],
    "steers": {"repository": "name", "body.assignees[]": "name", "body.assignee": "name"},
    "carries": ["body.title", "body.body", "body.labels[]", "body.milestone"],
}
NETWORK: dict[str, Any] = {
    "hosts": [{"host": "api.github.com", "port": 0, "methods": net.SAFE, "paths": [], "clearance": 0}],
    "models": [],
    "opaque": [],
    "publish": [],
}
words = st.sampled_from(
    [
        "open",
        "report",
        "look",
        "at",
        "acme/lamp",
        "acme/other",
        "in",
        "an",
        "issue",
        "for",
        "evelyn",
        "please",
    ]
)
names = st.sampled_from(["acme", "lamp", "other"])
bodies = st.fixed_dictionaries(
    {"title": st.sampled_from(["x", "acme/lamp"])},
    optional={"assignee": st.sampled_from(["evelyn", "mallory"]), "unheard": st.just("evelyn")},
)


@few_and_many(150, 1500, st.lists(words, max_size=7).map(" ".join), names, names, bodies)
def test_the_code_vouches_as_the_plain_lines_do(
    task: str, owner: str, repository: str, body: dict[str, Any]
) -> None:
    line = f"POST https://api.github.com/repos/{owner}/{repository}/issues"
    made = request_of(line, {}, body, [])
    assert made is not None
    call = {"tool": "issues_create", "arguments": {"repository": f"{owner}/{repository}", "body": body}}
    world: dict[str, Any] = {
        "tools": {"issues_create": TOOL},
        "delegate": [],
        "task": task,
        "answers": [],
        "passed": [],
    }
    plain = {
        "method": "POST",
        "scheme": "https",
        "host": "api.github.com",
        "port": 443,
        "path": made.path,
        "query": "",
        "headers": dict(made.headers),
        "opaque": False,
        "published": False,
        "size": made.body_size_bytes,
        "text": json.dumps(body),
        "credential": "none",
        "inference": False,
        "action_vouched": spec.vouched(world, call),
    }
    known = Knowledge.started(POLICY, task, 0)
    effect = room.characterise_request(POLICY, known, made, "e1")
    (verdict,) = room.decide(POLICY, known, (effect,))
    ground = {"texts": [("named-in-task", task)], "grants": []}
    wanted = net.derivations({"network": NETWORK, "parties": {}}, ground, plain)
    assert {one.role: one.rule for one in verdict.derivations} == {
        role: rule for role, rule in wanted.items() if rule
    }
