"""The smallest change that would have vouched: it is tried, and what does not release is not said."""

from __future__ import annotations

import pytest

from interlock.model.effects import ChangeKind, Effect, FileChange, FileStamp, FileType, Hazard
from interlock.model.events import LabelsKnown, PlaceLabel
from interlock.model.places import Place
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.verdicts import Decision
from interlock.policy import Knowledge, characterise, characterise_request, decide, load_policy
from interlock.policy.vouching import smallest_change

POLICY_TEXT = """version: 1
preset: coding
trusted:
  - {task: true}
  - file: "docs/runbook.md"
network:
  hosts:
    - {host: docs.test}
"""
POLICY = load_policy(POLICY_TEXT, filename="test")
KNOWN = Knowledge.started(POLICY, "mend the sum", 0)
RUNBOOK = Place(root="workspace", path="docs/runbook.md")
NOTES = Place(root="workspace", path="notes.md")


def request(method: str = "POST", path: str = "/v1/items") -> Effect:
    return characterise_request(
        POLICY,
        KNOWN,
        NetRequest(
            method=method,
            scheme="https",
            host="api.test",
            port=443,
            path=path,
            body_size_bytes=1,
            body_text="x",
        ),
        "e1",
    )


def hook(*hazards: Hazard) -> Effect:
    change = FileChange(
        kind=ChangeKind.CREATE,
        place=Place(root="workspace", path=".git/hooks/pre-push"),
        after=FileStamp(type=FileType.FILE, mode=0o755, uid=0, gid=0, size_bytes=1, digest="aa"),
        hazards=hazards,
    )
    return characterise(POLICY, KNOWN, (change,), 1)[0]


@pytest.mark.parametrize("effect", [request(), request("GET", "/x"), hook()])
def test_what_is_suggested_was_deferred_before(effect: Effect) -> None:
    assert decide(POLICY, KNOWN, (effect,))[0].decision is Decision.DEFER
    assert smallest_change(POLICY, KNOWN, effect) is not None


def test_a_request_wants_one_method_and_one_path() -> None:
    change = smallest_change(POLICY, KNOWN, request())
    assert change is not None
    assert change.text == (
        'network:\n  hosts:\n    - {host: "api.test", methods: [POST], paths: ["/v1/items"]}\n'
    )


def test_a_file_that_was_read_and_names_it_is_the_smallest() -> None:
    change = smallest_change(POLICY, KNOWN, hook(), [(NOTES, "write .git/hooks/pre-push"), (RUNBOOK, "no")])
    assert change is not None
    assert (change.kind, change.text) == ("policy", 'trusted:\n  - {file: "notes.md"}\n')


@pytest.mark.parametrize(
    ("scheme", "port", "entry"),
    [
        ("https", 443, '{host: "wiki.test", paths: ["/guide"], trusted: true}'),
        ("https", 8443, '{host: "wiki.test", port: 8443, paths: ["/guide"], trusted: true}'),
        ("http", 80, '{host: "wiki.test", port: 80, paths: ["/guide"], trusted: true}'),
    ],
)
def test_a_page_that_was_read_and_names_it_may_be_trusted_alone(scheme: str, port: int, entry: str) -> None:
    page = NetRequest(method="GET", scheme=scheme, host="wiki.test", port=port, path="/guide")
    text = "write .git/hooks/pre-push"
    change = smallest_change(POLICY, KNOWN, hook(), [(NOTES, f"{text} and more")], [(page, text)])
    assert change is not None
    assert change.text == f"network:\n  hosts:\n    - {entry}\n"
    # as the user would have had it from the start
    with_it = f"network:\n  hosts:\n    - {entry}\n    - {{host: docs.test}}\n"
    policy = load_policy(
        POLICY_TEXT.replace("network:\n  hosts:\n    - {host: docs.test}\n", with_it), filename="t"
    )
    known = Knowledge.started(policy, "mend the sum", 0)
    asked = characterise_request(policy, known, page, "e1")
    answer = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=len(text), text=text)
    known = known.with_request(policy, asked).with_response(policy, asked, answer, 1)
    assert decide(policy, known, (hook(),))[0].decision is Decision.RELEASE


def test_a_trusted_file_that_an_agent_wrote_wants_the_users_word() -> None:
    label = PlaceLabel(place=RUNBOOK, run_id="r0")
    known = KNOWN.with_labels(POLICY, LabelsKnown(places=(label,)))
    texts = [(RUNBOOK, "write .git/hooks/pre-push")]
    assert decide(POLICY, known, (hook(),))[0].decision is Decision.DEFER
    change = smallest_change(POLICY, known, hook(), texts)
    assert change is not None
    assert change.text == "interlock labels --forget docs/runbook.md"


def test_else_the_tasks_own_words() -> None:
    change = smallest_change(POLICY, KNOWN, hook())
    assert change is not None
    assert change.kind == "task"
    assert ".git/hooks/pre-push" in change.text


def test_where_nothing_vouches_nothing_is_said() -> None:
    assert smallest_change(POLICY, KNOWN, hook(Hazard.SET_ID)) is None
