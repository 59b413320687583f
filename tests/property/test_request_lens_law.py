"""Lenses over requests: whatever path, host or body comes, what is released through one is what the task names."""

import json
from typing import Any
from urllib.parse import quote, unquote

from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many
from tests.unit.test_policy_request_lenses import policy_of

from interlock import policy as room
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Decision
from interlock.policy import Knowledge
from interlock.policy.derivations.names import LENS_ACTION
from interlock.policy.lenses.graphql import only_field
from interlock.policy.lenses.recognising import recognise

POLICY = policy_of("github", "git", "github-graphql")
PLAIN = policy_of("git", more="network: {hosts: [{host: api.github.com}, {host: github.com}]}\n")
TASK = "open an issue in acme/lamp, and comment on issue 7"

pieces = st.sampled_from(
    ["/", "repos", "acme", "lamp", "evil", "issues", "7", "comments", "..", ".", "%2e", "%2F", "%2f", "//", ";a", "\\",
     "%5c", "%00", "%25", "%252e", "ACME", "lamp%20", " ", "é", "%c3%a9", "%ff", "?", "#", "{owner}", "*", "@", "%61cme"]
)  # fmt: skip
paths = st.one_of(
    st.lists(pieces, max_size=9).map(lambda parts: "/" + "".join(parts)),
    st.lists(pieces, min_size=3, max_size=6).map(lambda parts: "/" + "/".join(parts)),
    st.tuples(pieces, pieces).map(lambda two: f"/repos/{two[0]}/{two[1]}/issues"),
    st.just("/repos/acme/lamp/issues"),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["x", "eve", "acme/lamp", ""])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["a", "title"]), inner)
    ),
    max_leaves=4,
)
keys = st.sampled_from(
    ["title", "body", "assignees", "Assignees", "assignee", "_method", "labels", "other", "query"]
)
bodies = st.one_of(
    st.dictionaries(keys, values, max_size=3).map(json.dumps),
    st.sampled_from(
        ['{"title":"a","title":"b"}', '{"title":"a"', "[]", "", "NaN", '{"a":NaN}', "[" * 5000, '"x"']
    ),
    st.text(max_size=20),
)
fields = st.lists(
    st.sampled_from(
        [("content-type", "application/json"), ("content-type", "text/plain"), ("x-http-method-override", "DELETE"),
         ("content-type", "application/json; charset=utf-16"), ("accept", "*/*")]
    ),
    max_size=3,
)  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> NetRequest:
    text = draw(bodies)
    kinds = draw(st.one_of(st.just([("content-type", "application/json")]), fields))
    return NetRequest(
        method=draw(st.sampled_from(["POST", "POST", "PUT", "PATCH", "DELETE", "GET"])),
        scheme="https",
        host=draw(st.sampled_from(["api.github.com", "api.github.com", "github.com", "evil.test"])),
        port=443,
        path=draw(paths),
        query=draw(st.sampled_from(["", "", "a=b", "_method=DELETE", "a", "&&", "assignee=eve", "%zz"])),
        headers=tuple(kinds),
        body_size_bytes=len(text.encode()),
        body_text=text,
    )


@few_and_many(300, 5_000, requests())
def test_what_is_released_through_a_lens_is_what_the_task_names(request: NetRequest) -> None:
    known = Knowledge.started(POLICY, TASK, 0)
    effect = room.characterise_request(POLICY, known, request, "e1")
    (verdict,) = room.decide(POLICY, known, (effect,))
    through = [one for one in verdict.derivations if one.rule == LENS_ACTION]
    if through:
        # What a server could make of the path is the one repository that the task names.
        assert unquote(request.path) == request.path or "%" not in unquote(request.path)
        assert request.path.lower().startswith("/repos/acme/lamp/issues")
        assert request.host == "api.github.com"
        assert not any(name.startswith("x-http-method") for name, _ in request.headers)
        assert {one.rule for one in through[0].premises} <= {"named-in-task"}
        said = json.loads(request.body_text or "{}")
        assert set(said) <= {"title", "body", "labels", "assignees", "assignee"}
    else:
        assert verdict.decision is not Decision.RELEASE or request.method == "GET"


@few_and_many(200, 2_000, requests())
def test_a_lens_takes_nothing_away_from_who_else_vouches(request: NetRequest) -> None:
    """What is released without the lens is released with it, and its host, level and facets are the same."""
    known = [Knowledge.started(each, TASK, 0) for each in (POLICY, PLAIN)]
    effects = [
        room.characterise_request(each, knows, request, "e1")
        for each, knows in zip((POLICY, PLAIN), known, strict=True)
    ]
    verdicts = [
        room.decide(each, knows, (effect,))[0]
        for each, knows, effect in zip((POLICY, PLAIN), known, effects, strict=True)
    ]
    assert (effects[0].steering, effects[0].facets, effects[0].clearance) == (
        effects[1].steering,
        effects[1].facets,
        effects[1].clearance,
    )
    if verdicts[1].decision is Decision.RELEASE:
        assert verdicts[0].decision is Decision.RELEASE
    if verdicts[0].decision is not verdicts[1].decision:
        assert any(one.rule == LENS_ACTION for one in verdicts[0].derivations)


@few_and_many(200, 2_000, st.text(min_size=1, max_size=12))
def test_a_segment_is_read_back_as_it_was_written_or_not_at_all(name: str) -> None:
    request = NetRequest(
        method="POST",
        scheme="https",
        host="api.github.com",
        port=443,
        path=f"/repos/acme/{quote(name, safe='', errors='replace')}/issues",
        headers=(("content-type", "application/json"),),
        body_size_bytes=2,
        body_text="{}",
    )
    found = recognise(POLICY.lenses, request)
    if found is not None:
        assert json.loads(found[0].arguments)["repository"] == f"acme/{name}"
        assert not {"/", "\\", "%", ";", "\0"} & set(name)
        assert name not in (".", "..")


words = st.sampled_from(
    ["mutation", "query", "{", "}", "(", ")", ":", "$", "a", "input", "createIssue", "deleteIssue", "...", "on", "@skip", "!",
     '"x"', '"""', "#", "\n", ",", "fragment", "b", "ID", "=", "[", "]", "1"]
)  # fmt: skip


@few_and_many(300, 4_000, st.lists(words, max_size=24).map(" ".join))
def test_a_graphql_document_has_one_plain_field_or_none(document: str) -> None:
    found = only_field(document, "")
    if found is not None:
        bare: Any = "\n".join(line.partition("#")[0] for line in document.splitlines())
        assert found.name in bare.split()
        assert "..." not in bare.split()[: bare.split().index(found.name)]
        assert "fragment" not in bare.split() or found.name == "fragment" or "fragment" in document
