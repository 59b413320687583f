"""The law of profiles: none makes a decision more permissive for what is not its own model, state or reading."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.errors import PolicyError
from interlock.model.places import Place
from interlock.model.requests import Credential, NetRequest
from interlock.model.verdicts import Decision
from interlock.policy import Knowledge, Policy, characterise, characterise_request, decide, load_policy
from interlock.policy.profile_inlining import inlined, resolved
from interlock.policy.profiles import read_profile

ORDER = {Decision.REFUSE: 0, Decision.DEFER: 1, Decision.RELEASE: 2}
HOSTS = ["a.test", "b.a.test", "pypi.org", "api.anthropic.com", "10.0.0.5"]
HEAD = "version: 1\nname: mine\ncommands: [mine]\npolicy:\n"

hosts = st.sampled_from(HOSTS)
paths = st.sampled_from([[], ["/v1/"], ["/"]])
LINES = st.one_of(
    st.builds(lambda h, p: ("quiet", {"host": h, **({"paths": p} if p else {})}), hosts, paths),
    st.builds(lambda h, m: ("hosts", {"host": h, "methods": m}), hosts, st.sampled_from([["GET"], ["HEAD", "GET"], ["POST"], ["*"]])),
    st.builds(lambda h: ("hosts", {"host": h, "trusted": True}), hosts),
    st.builds(lambda h: ("opaque", {"host": h, "port": 22}), hosts),
    st.builds(lambda h: ("secrets", {"name": "k", "from": "K", "hosts": [h]}), hosts),
    st.builds(lambda h: ("models", f"{h}:443"), hosts),
)  # fmt: skip
KEYS = st.sampled_from([
    "  trusted: [{task: true}]\n", "  cedar: 'permit(principal, action, resource);'\n", "  parties: [{name: a.test, clearance: secret}]\n",
    "  state: ['~/.mine']\n", "  sandbox: {nested: true}\n", "  sensitive: [{place: 'x', level: internal}]\n", "", "", "",
])  # fmt: skip
POLICIES = st.sampled_from([None, "version: 1\npreset: none\n", "version: 1\nnetwork: {known_models: false}\n",
    "version: 1\nnetwork: {hosts: [{host: a.test, methods: [POST], clearance: internal}]}\n"])  # fmt: skip
TASKS = st.sampled_from(["work", "read https://a.test/v1/x", "post to a.test", "edit Makefile"])
REQUESTS = st.builds(
    lambda method, host, scheme, path, size, credential: NetRequest(
        method=method, scheme=scheme, host=host, port=443 if scheme == "https" else 80, path=path, body_size_bytes=size,
        body_text="x" * size if size >= 0 else None, credential=credential,
    ),
    st.sampled_from(["GET", "POST", "PUT"]), hosts, st.sampled_from(["https", "http"]), st.sampled_from(["/v1/x", "/", "/v1/messages"]),
    st.sampled_from([0, 3, -1]), st.sampled_from(list(Credential)),
)  # fmt: skip
PLACES = st.sampled_from(["src/a.py", "Makefile", ".git/hooks/x", "x", ".env"])


def with_and_without(
    network: list[tuple[str, object]], keys: str, text: str | None
) -> tuple[Policy, Policy] | None:
    import json

    grouped: dict[str, list[object]] = {}
    for key, value in network:
        if value not in grouped.setdefault(key, []):
            grouped[key].append(value)
    bare = load_policy(text, filename="p")
    try:
        mine = read_profile(f"{HEAD}{keys}  network: {json.dumps(grouped)}\n", filename="mine.yaml")
    except PolicyError:
        return None  # refused before anything starts
    return bare, load_policy(inlined(bare, resolved(mine, {"K": "v"}, bare)), filename="p")


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.lists(LINES, max_size=3), KEYS, POLICIES, TASKS, REQUESTS)
def test_no_profile_lets_a_request_pass_but_reads_and_models_that_it_names(
    network: list[tuple[str, object]], keys: str, text: str | None, task: str, request: NetRequest
) -> None:
    made = with_and_without(network, keys, text)
    if made is None:
        return
    bare, mixed = made

    def decision(policy: Policy) -> tuple[Decision, str]:
        knowledge = Knowledge.started(policy, task, 0)
        effect = characterise_request(policy, knowledge, request, "e1")
        return decide(policy, knowledge, (effect,))[0].decision, effect.operation

    before, (after, operation) = decision(bare)[0], decision(mixed)
    if ORDER[after] > ORDER[before]:
        named = {value["host"] for key, value in network if key == "hosts" and isinstance(value, dict)}
        models = {value for key, value in network if key == "models"}
        assert (operation == "net.read" and request.host in named) or (
            operation == "net.model" and f"{request.host}:{request.port}" in models
        )
    assert not (mixed.network.declared and not bare.network.declared)
    assert mixed.cedar == bare.cedar
    assert (mixed.trusted, mixed.task_trusted, mixed.parties) == (
        bare.trusted,
        bare.task_trusted,
        bare.parties,
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(LINES, max_size=2), KEYS, POLICIES, TASKS, PLACES)
def test_no_profile_lets_a_change_in_the_workspace_through(
    network: list[tuple[str, object]], keys: str, text: str | None, task: str, path: str
) -> None:
    made = with_and_without(network, keys, text)
    if made is None:
        return
    stamp = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1, digest="aa")
    change = FileChange(
        kind=ChangeKind.CREATE, place=Place(root="workspace", path=path), after=stamp, after_text="x"
    )
    decisions = []
    for policy in made:
        knowledge = Knowledge.started(policy, task, 0)
        decisions.append(decide(policy, knowledge, characterise(policy, knowledge, (change,), 1))[0].decision)
    assert ORDER[decisions[1]] <= ORDER[decisions[0]]


@pytest.mark.parametrize(
    "key",
    ["trusted", "untrusted", "cedar", "folders", "sign", "commit", "parties", "limits", "preset", "profile"],
)
def test_a_key_of_the_operators_is_a_mistake_inline_too(key: str) -> None:
    with pytest.raises(PolicyError, match="unknown key"):
        load_policy(f"version: 1\nprofile: {{name: a, policy: {{{key}: x}}}}\n", filename="p")
