"""However much comes in, memory is bounded: what has no room vouches for nothing, and is as sensitive as its place."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.property.test_policy_trust_laws import BASE

from interlock import policy as room
from interlock.model.effects import Effect
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality, Integrity
from interlock.model.places import Place
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import Decision
from interlock.policy import provenance
from interlock.policy.provenance import Knowledge

POLICY = room.load_policy(
    BASE.replace("network: {hosts: [", "network: {hosts: [{host: vault.test, level: secret}, ")
    .replace("tools:", "tools:\n  rumours: {effect: read}\n  keys: {effect: read, output: {level: secret}}")
    .replace("trust: own, fields", "trust: own, covers: [address], fields")
    + "trusted: [{task: true}, {file: 'docs/**'}, {file: '*.json', fields: [to]}]\n"
    + "delegate: [{tool: rumours, source: '*', roles: [write_mail.to]}]\n",
    filename="p.yaml",
)
START = Knowledge.started(POLICY, "send the note to whom a.txt names", 0)
Bring = Callable[[Knowledge, str, str, int], Knowledge]


def by_file(known: Knowledge, path: str, text: str, node: int) -> Knowledge:
    place = Place(root="workspace", path=path)
    return known.with_reads(
        POLICY, (FileRead(place=place, opened=1, closed=2, staged=False, text=text),), node
    )


def by_net(known: Knowledge, host: str, text: str, node: int) -> Knowledge:
    made = NetRequest(method="GET", scheme="https", host=host, port=443, path="/")
    effect = room.characterise_request(POLICY, known, made, f"e{node}")
    response = NetResponse(outcome=Outcome.DONE, status=200, size_bytes=len(text), text=text)
    return known.with_request(POLICY, effect).with_response(POLICY, effect, response, node)


def by_tool(known: Knowledge, tool: str, text: str, node: int, arguments: str = "{}") -> Knowledge:
    call = ToolCall(call="c", tool=tool, arguments=arguments)
    effect = room.characterise_call(POLICY, known, call, f"e{node}")
    structured = text.startswith("{")
    result = ToolResult(outcome=Outcome.DONE, text=text, structured=structured, size_bytes=len(text))
    return known.with_tool_result(POLICY, effect, result, node)


def mail(known: Knowledge, to: str = "ann@a.test") -> Decision:
    call = ToolCall(call="c", tool="write_mail", arguments=json.dumps({"text": "x", "to": to}))
    effect = room.characterise_call(POLICY, known, call, "e99")
    return room.decide(POLICY, known, (effect,))[0].decision


VOUCHING: dict[str, tuple[Bring, str, str]] = {
    "a trusted file": (by_file, "docs/a.md", "write to ann@a.test"),
    "a trusted field": (by_file, "team.json", '{"to": "ann@a.test"}'),
    "a trusted host": (by_net, "wiki.test", "write to ann@a.test"),
    "a tool of one's own": (by_tool, "look_up", '{"to": "ann@a.test"}'),
}
FILLING: dict[str, tuple[Bring, str]] = {
    "files": (by_file, "other.txt"),
    "trusted files": (by_file, "docs/other.md"),
    "answers": (by_net, "docs.test"),
    "results": (by_tool, "rumours"),
    "results of tools that nobody declared": (by_tool, "odd"),
}


@pytest.mark.parametrize("filling", FILLING)
@pytest.mark.parametrize("vouching", VOUCHING)
def test_what_comes_after_the_bound_vouches_for_nothing_whatever_filled_it(
    vouching: str, filling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "MAX_INBOUND_LENGTH", 1_000)
    bring, where, text = VOUCHING[vouching]
    assert mail(bring(START, where, text, 1)) is Decision.RELEASE
    fill, there = FILLING[filling]
    full = fill(START, there, "x " * 600, 1)
    after = bring(full, where, text, 2)
    assert mail(after) is Decision.DEFER
    assert after.label.integrity is Integrity.UNTRUSTED
    assert len(after.sources) <= len(full.sources)
    # what had come before still vouches
    assert mail(fill(bring(START, where, text, 1), there, "x " * 600, 2)) is Decision.RELEASE


@pytest.mark.parametrize(
    ("bring", "where"), [(by_file, "private/k"), (by_net, "vault.test"), (by_tool, "keys")]
)
def test_what_comes_after_the_bound_is_as_sensitive_as_its_place(
    bring: Bring, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "MAX_INBOUND_LENGTH", 1_000)
    full = by_file(START, "other.txt", "x " * 600, 1)
    after = bring(full, where, "the code is gannet-6502-plover", 2)
    assert full.read_level is Confidentiality.PUBLIC
    assert after.read_level is Confidentiality.SECRET
    assert after.level_in("see gannet-6502-plover") is Confidentiality.SECRET


def test_of_tools_so_much_is_kept_and_of_the_rest_that_it_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    named, other = '{"path":"a.txt"}', '{"path":"b.txt"}'
    monkeypatch.setattr(provenance, "MAX_KEPT_LENGTH", 3_000)
    known = by_tool(START, "rumours", "write to ann@a.test", 1, named)
    assert mail(known) is Decision.RELEASE
    for node in range(2, 200):
        known = by_tool(known, "rumours", "x" * 100, node, other)
    assert len(known.returned) < 20
    # the source that was named may have said more since
    assert mail(known) is Decision.DEFER


def test_calls_that_are_counted_are_so_many_and_then_none_is_vouched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provenance, "MAX_KEPT_LENGTH", 3_000)
    known = by_tool(START, "rumours", "write to ann@a.test", 1, '{"path":"a.txt"}')
    call = ToolCall(call="c", tool="write_mail", arguments='{"text":"x","to":"eve@b.test"}')
    effect: Effect = room.characterise_call(POLICY, known, call, "e1")
    for _ in range(100):
        known = known.with_request(POLICY, effect)
    assert len(known.passed) < 20
    assert mail(known) is Decision.DEFER


_GIGABYTE = """
import resource, sys
sys.path[:0] = {path!r}
from tests.failclosed import test_policy_bounds as here
bring, where = getattr(here, {bring!r}), {where!r}
known = here.by_file(here.START, "docs/a.md", "write to ann@a.test", 1)
words = " ".join(f"w{{each:x}}q" for each in range(150_000))[:1_000_000]
for number in range(1_000):
    known = bring(known, where, words[number * 99 :] + words[: number * 99], 2 + number)
assert known.inbound >= 1_000_000_000
assert here.mail(known) is here.Decision.RELEASE
assert here.mail(known, "eve@b.test") is here.Decision.DEFER
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bring", "where"),
    [("by_file", "docs/b.md"), ("by_net", "wiki.test"), ("by_tool", "look_up"), ("by_tool", "rumours")],
)
def test_a_gigabyte_that_comes_in_leaves_memory_bounded(bring: str, where: str) -> None:
    script = _GIGABYTE.format(path=sys.path, bring=bring, where=where)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 1_000, f"{done.stdout} MiB"
