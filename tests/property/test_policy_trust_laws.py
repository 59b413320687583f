"""Laws of trust: labels only rise, less trust never releases more, and the order of unrelated events is all one."""

import json
from itertools import accumulate, pairwise

import pytest
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock import policy as room
from interlock.model.effects import ChangeKind, Channel, FileChange, FileStamp, FileType
from interlock.model.events import FileRead
from interlock.model.places import Place
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import Decision
from interlock.policy import provenance
from interlock.policy.provenance import Knowledge

BASE = """\
version: 1
network: {hosts: [{host: wiki.test, trusted: true}, {host: docs.test}]}
sensitive: [{place: "private/"}]
tools:
  write_mail: {effect: send, steers: {to: email}, carries: [text], asks: [send], output: {echo: true}}
  look_up: {effect: read, output: {trust: own, fields: {to: email}}}
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""
ENTRIES = ['{file: "a.md"}', '{file: "b/**"}', '{file: "private/**"}', '{file: "*.md"}', "{task: true}"]
POLICY = room.load_policy(
    BASE + "trusted:\n" + "".join(f"- {entry}\n" for entry in ENTRIES), filename="p.yaml"
)
LESS = [
    room.load_policy(text, filename="p.yaml")
    for text in (
        *(
            POLICY.text.replace(f"- {entry}\n", "- {task: false}\n" if "task" in entry else "", 1)
            for entry in ENTRIES
        ),
        POLICY.text.replace("trusted: true}", "trusted: false}", 1),
        POLICY.text.replace("trust: own", "trust: none", 1),
        POLICY.text.replace("fields: {to: email}", "fields: {to: name}", 1),
    )
]

NAMES = [
    "x@a.test",
    "y@b.test",
    "next.test",
    "https://next.test/v1",
    "AGENTS.md",
    "make",
    "Makefile",
    "send",
    "note",
    "secret-9471",
]
texts = st.lists(st.sampled_from([*NAMES, " ", "\n", ", ", "pad " * 9]), max_size=9).map(" ".join)
reads = st.builds(
    lambda path, text, staged: FileRead(
        place=Place(root="workspace", path=path), opened=1, closed=2, staged=staged, text=text
    ),
    st.sampled_from(["a.md", "c.md", "b/x", "private/k", "other"]),
    st.one_of(texts, st.none()),
    st.sampled_from([False, False, False, True]),
)
answers = st.tuples(st.sampled_from(["wiki.test", "docs.test"]), texts)
results = st.tuples(
    st.sampled_from(["look_up", "write_mail", "undeclared"]),
    st.one_of(
        texts,
        st.dictionaries(
            st.sampled_from(["to", "about"]), st.sampled_from(["x@a.test", "y@b.test"]), min_size=1
        ),
    ),
)
events = st.lists(st.one_of(reads, reads, answers, results), max_size=6)


def _after(policy: room.Policy, known: Knowledge, event: object, node: int) -> Knowledge:
    if isinstance(event, FileRead):
        return known.with_reads(policy, (event,), node)
    assert isinstance(event, tuple)
    host, text = event
    if "." not in host:
        call = ToolCall(call="c", tool=host, arguments='{"text":"","to":"x@a.test"}')
        of_call = room.characterise_call(policy, known, call, f"e{node}")
        structured = not isinstance(text, str)
        said = json.dumps(text) if structured else text
        result = ToolResult(outcome=Outcome.DONE, text=said, structured=structured, size_bytes=len(said))
        return known.with_tool_result(policy, of_call, result, node)
    made = NetRequest(method="GET", scheme="https", host=host, port=443, path="/")
    effect = room.characterise_request(policy, known, made, f"e{node}")
    known = known.with_request(policy, effect)
    response = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=len(text) // 2 + 1, text=text)
    return known.with_response(policy, effect, response, node)


def _states(policy: room.Policy, task: str, given: list[object]) -> list[Knowledge]:
    start = Knowledge.started(policy, task, 0)
    numbered = enumerate(given, start=1)
    return list(
        accumulate(numbered, lambda known, each: _after(policy, known, each[1], each[0]), initial=start)
    )  # type: ignore[arg-type, return-value]


def _decisions(policy: room.Policy, known: Knowledge) -> list[Decision]:
    stamp = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1, digest="aa")
    changes = [
        FileChange(kind=ChangeKind.CREATE, place=Place(root="workspace", path=path), before=None, after=stamp)
        for path in ("AGENTS.md", "docs/Makefile", "plain.txt")
    ]
    effects = list(room.characterise(policy, known, changes, 1))
    for path, method in (("/v1/x", "POST"), ("/", "GET")):
        made = NetRequest(method=method, scheme="https", host="next.test", port=443, path=path)
        effects.append(room.characterise_request(policy, known, made, f"e{len(effects) + 10}"))
    for to in ("x@a.test", "y@b.test"):
        call = ToolCall(call="c", tool="write_mail", arguments=f'{{"text":"note","to":"{to}"}}')
        effects.append(room.characterise_call(policy, known, call, f"e{len(effects) + 10}"))
    assert {effect.channel for effect in effects} == {Channel.FILE, Channel.NET, Channel.TOOL}
    return [verdict.decision for verdict in room.decide(policy, known, effects)]


@few_and_many(80, 1500, texts, events, derandomize=True)
def test_labels_only_rise_and_sources_are_only_added(task: str, given: list[object]) -> None:
    states = _states(POLICY, task, given)
    for before, after in pairwise(states):
        assert after.label.integrity <= before.label.integrity
        assert after.label.confidentiality >= before.label.confidentiality
        assert after.read_level >= before.read_level
        assert after.inbound >= before.inbound
        assert after.sources[: len(before.sources)] == before.sources[:]


@few_and_many(
    150,
    3000,
    texts,
    events,
    st.sampled_from(range(len(LESS))),
    st.sampled_from([60, 250, 10**9]),
    derandomize=True,
)
def test_one_trusted_source_less_never_releases_more(
    task: str, given: list[object], less: int, bound: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Also where the bounds of a run are reached.
        patch.setattr(provenance, "MAX_INBOUND_LENGTH", bound)
        _compare(task, given, less)


def _compare(task: str, given: list[object], less: int) -> None:
    for known, fewer in zip(_states(POLICY, task, given), _states(LESS[less], task, given), strict=True):
        for more, then in zip(_decisions(POLICY, known), _decisions(LESS[less], fewer), strict=True):
            assert not (then is Decision.RELEASE and more is not Decision.RELEASE)


@few_and_many(80, 1500, texts, events, st.randoms(use_true_random=False), derandomize=True)
def test_the_order_of_reads_and_answers_is_all_one(task: str, given: list[object], chance: object) -> None:
    moved = list(given)
    chance.shuffle(moved)  # type: ignore[attr-defined]
    first, then = _states(POLICY, task, given)[-1], _states(POLICY, task, moved)[-1]
    assert _decisions(POLICY, first) == _decisions(POLICY, then)
    assert (first.label, first.inbound) == (then.label, then.inbound)
    assert {source.text for source in first.sources} == {source.text for source in then.sources}
