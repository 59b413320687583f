"""The smallest change that is told really releases, made as a user makes it; and none of its kind releases less."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock import policy as room
from interlock.model.effects import ChangeKind, Effect, FileChange, FileStamp, FileType, Hazard
from interlock.model.events import FileRead, LabelsKnown, PlaceLabel
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.requests import AGENT_SCHEME, NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.policy.provenance import Knowledge
from interlock.policy.vouching import Change, candidates, decision_of, smallest_change

TOOLS = """\
  mail: {effect: send, steers: {to: email}, carries: [text], asks: [mail]}
  drop: {effect: destroy, steers: {file: "id:file"}, asks: [drop]}
  look: {effect: egress, steers: {address: url}}
"""
PERMIT = """\
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""
PLAIN = "version: 1\npreset: none\nsensitive: [{place: keys.txt, level: secret}]\ntools:\n" + TOOLS
LABELLED = Place(root="workspace", path="docs/run.md")
POLICIES = [
    PLAIN + PERMIT + "trusted: [{task: true}]\nnetwork: {}\n",
    PLAIN + PERMIT + "trusted: [{task: true}, {file: docs/run.md}]\nnetwork: {hosts: [{host: a.test}]}\n",
    PLAIN + "trusted: [{task: true}, {file: 'docs/**'}]\nnetwork: {}\n",
    PLAIN + PERMIT + "trusted: [{file: docs/run.md}]\nnetwork: {}\n",
]
NAMED = [
    "ann@a.test",
    "https://a.test/v1/x",
    ".git/hooks/pre-push",
    "AGENTS.md",
    "a.test",
    "file id 13",
    "mail",
    "drop",
]
SECRET = "gannet-6502-plover"
words = st.lists(st.sampled_from([*NAMED, "write", "to", SECRET]), min_size=1, max_size=4).map(" ".join)
fields = st.dictionaries(st.sampled_from(["lead", "hook", "about"]), words, min_size=1)
reads = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["notes.md", "docs/run.md", "keys.txt", "odd [1]*.md"]), words),
        st.tuples(st.just("team.json"), fields.map(json.dumps)),
    ),
    max_size=3,
    unique_by=lambda one: one[0],
)


def change_of(path: str, *hazards: Hazard, link: str = "") -> FileChange:
    type_ = FileType.SYMLINK if link else FileType.FILE
    stamp = FileStamp(type=type_, mode=0o755, uid=0, gid=0, size_bytes=1, digest="aa", link_target=link)
    place = Place(root="workspace", path=path)
    return FileChange(kind=ChangeKind.CREATE, place=place, after=stamp, hazards=hazards)


def request_of(method: str, host: str, path: str, body: str = "", **more: Any) -> NetRequest:
    made: dict[str, Any] = {
        "scheme": "https",
        "port": 443,
        "body_size_bytes": len(body),
        "body_text": body or None,
    }
    return NetRequest(method=method, host=host, path=path, **(made | more))


def call_of(tool: str, **arguments: str) -> ToolCall:
    return ToolCall(call="c", tool=tool, arguments=json.dumps(arguments, sort_keys=True))


MADE: list[FileChange | NetRequest | ToolCall] = [
    change_of(".git/hooks/pre-push"),
    change_of("AGENTS.md"),
    change_of("docs/AGENTS.md"),
    change_of("Makefile"),
    change_of("docs/out", Hazard.OUTWARD_LINK, link="../other/place"),
    request_of("GET", "a.test", "/v1/x"),
    request_of("GET", "a.test", "/v1/y"),
    request_of("GET", "10.0.0.5", "/"),
    request_of("POST", "a.test", "/v1/x", "hello"),
    request_of("POST", "a.test", "/v1/x", SECRET),
    request_of("POST", "a.test", "/v1/x*[1]", "hello"),
    request_of("POST", "a.test", "/other", "hello"),
    request_of("POST", "b.test", "/v1/x", "hello"),
    request_of("PUT", "b.test", "/v1/x", "hello", port=8443),
    request_of("CONNECT", "db.test", "", scheme="tcp", port=5432, protocol="opaque"),
    request_of("SIGN", "ssh-agent", "/git/SHA256:a/b", scheme=AGENT_SCHEME, port=0, body_size_bytes=5),
    call_of("mail", to="ann@a.test", text="x"),
    call_of("mail", to="bob@b.test", text="x"),
    call_of("mail", to="ann@a.test", text=SECRET),
    call_of("drop", file="13"),
    call_of("look", address="https://a.test/v1/x"),
]  # fmt: skip


def effect_of(policy: room.Policy, known: Knowledge, made: FileChange | NetRequest | ToolCall) -> Effect:
    if isinstance(made, FileChange):
        return room.characterise(policy, known, (made,), 1)[0]
    if isinstance(made, NetRequest):
        return room.characterise_request(policy, known, made, "e1")
    return room.characterise_call(policy, known, made, "e1")


def known_after(policy: room.Policy, task: str, read: list[tuple[str, str]], *, labelled: bool) -> Knowledge:
    known = Knowledge.started(policy, task, 0)
    if labelled:
        known = known.with_labels(policy, LabelsKnown(places=(PlaceLabel(place=LABELLED, run_id="r0"),)))
    seen = [
        FileRead(place=Place(root="workspace", path=path), opened=1, closed=2, staged=False, text=text)
        for path, text in read
    ]
    return known.with_reads(policy, seen, 1) if seen else known


def merged(text: str, added: str) -> str:
    """Add keys to a policy file as a user would: what is there stays, and a list gets one entry more."""

    def both(old: Any, new: Any) -> Any:
        if isinstance(old, dict) and isinstance(new, dict):
            return {**old, **{key: both(old[key], new[key]) if key in old else new[key] for key in new}}
        if isinstance(old, list) and isinstance(new, list):
            return [*new, *old]
        return f"{old}{new}" if isinstance(old, str) and isinstance(new, str) else new

    return yaml.safe_dump(both(yaml.safe_load(text), yaml.safe_load(added)), sort_keys=False)


def made_so(change: Change, text: str, task: str, *, labelled: bool) -> tuple[room.Policy, str, bool]:
    """Return policy, task, and whether the label is there, once a user did what the change says."""
    policy = room.load_policy(
        merged(text, change.text) if change.kind == "policy" else text, filename="p.yaml"
    )
    if change.kind == "task":
        return policy, f"{task}\n{change.text}", labelled
    return policy, task, labelled and change.kind != "labels"


@few_and_many(
    120, 2000, st.sampled_from(POLICIES), words, reads, st.sampled_from(MADE), st.booleans(), derandomize=True
)
def test_the_change_that_is_told_turns_the_deferral_into_a_release(
    text: str,
    task: str,
    read: list[tuple[str, str]],
    made: FileChange | NetRequest | ToolCall,
    labelled: bool,
) -> None:
    policy = room.load_policy(text, filename="p.yaml")
    known = known_after(policy, task, read, labelled=labelled)
    effect = effect_of(policy, known, made)
    (verdict,) = room.decide(policy, known, (effect,))
    if verdict.decision is not Decision.DEFER:
        return
    texts = [(Place(root="workspace", path=path), held) for path, held in read]
    change = smallest_change(policy, known, effect, texts)
    if change is None:
        # Nothing permits in this policy, or nobody's words count, or what it carries may go nowhere.
        assert text in POLICIES[2:] or effect.carried > effect.clearance, effect
        return
    then, asked, kept = made_so(change, text, task, labelled=labelled)
    again = known_after(then, asked, read, labelled=kept)
    (verdict,) = room.decide(then, again, (effect_of(then, again, made),))
    assert verdict.decision is Decision.RELEASE, change


@few_and_many(40, 800, st.sampled_from(POLICIES[:2]), words, reads, st.sampled_from(MADE), derandomize=True)
def test_no_other_change_of_its_kind_releases_less(
    text: str, task: str, read: list[tuple[str, str]], made: FileChange | NetRequest | ToolCall
) -> None:
    policy = room.load_policy(text, filename="p.yaml")
    known = known_after(policy, task, read, labelled=False)
    effect = effect_of(policy, known, made)
    if room.decide(policy, known, (effect,))[0].decision is not Decision.DEFER:
        return
    probes = [effect_of(policy, known, each) for each in MADE]
    texts = [(Place(root="workspace", path=path), held) for path, held in read]
    released: list[tuple[Change, frozenset[int], int]] = []
    for change, candidate, then in candidates(policy, known, effect, texts):
        if decision_of(candidate, then, effect) is Decision.RELEASE:
            freed = frozenset(
                number
                for number, probe in enumerate(probes)
                if decision_of(candidate, then, probe) is Decision.RELEASE
            )
            vouching = sum(len(source.text) for source in then.sources)
            released.append((change, freed, vouching))
    if not released:
        return
    told, fewest, least = released[0]
    assert told == smallest_change(policy, known, effect, texts)
    for change, others, vouching in released[1:]:
        if "trusted:" in told.text and "trusted:" in change.text:
            # Of two texts the shorter one: what each might name besides, no probe says.
            assert least <= vouching
        else:
            assert change.kind != told.kind or not others < fewest, (told, change)


def test_what_is_sensitive_may_go_where_the_change_says_and_nowhere_else() -> None:
    policy = room.load_policy(POLICIES[0], filename="p.yaml")
    known = known_after(policy, "mail ann@a.test", [("keys.txt", SECRET)], labelled=False)
    effect = effect_of(policy, known, call_of("mail", to="ann@a.test", text=SECRET))
    assert effect.carried is Confidentiality.SECRET
    change = smallest_change(policy, known, effect)
    assert change is not None
    assert change.text == 'parties:\n  - {name: "ann@a.test", clearance: secret}\n'
