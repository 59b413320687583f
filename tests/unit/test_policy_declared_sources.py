"""The lattice of labels, and each way to declare a source: it vouches where it was declared, and not beside that."""

from __future__ import annotations

import json
from itertools import product

import pytest

from interlock import policy as room
from interlock.model.events import FileRead
from interlock.model.labels import CLEAN, Confidentiality, Integrity, Label
from interlock.model.places import Place
from interlock.model.requests import NetRequest, NetResponse, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import Decision
from interlock.policy.provenance import Knowledge

LABELS = [Label(integrity=one, confidentiality=two) for one, two in product(Integrity, Confidentiality)]


def at_most(one: Label, other: Label) -> bool:
    """As good as the other, or better: as trusted, and as free to travel."""
    return one.integrity >= other.integrity and one.confidentiality <= other.confidentiality


def test_the_join_is_the_least_label_that_is_as_bad_as_both() -> None:
    assert len(LABELS) == 8
    for one, other in product(LABELS, LABELS):
        joined = one.join(other)
        assert at_most(one, joined)
        assert at_most(other, joined)
        assert all(at_most(joined, each) for each in LABELS if at_most(one, each) and at_most(other, each))
    for one, other, third in product(LABELS, LABELS, LABELS):
        assert one.join(other).join(third) == one.join(other.join(third)) == third.join(other).join(one)
    assert all(one.join(one) == one == one.join(CLEAN) for one in LABELS)


HEAD = """\
version: 1
preset: none
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived };
network:
  hosts:
    - {host: wiki.test, paths: ["/guide/"], trusted: true}
    - {host: wiki.test}
tools:
  mail: {effect: send, steers: {to: email}, carries: [text], asks: [mail]}
  look: {effect: read, output: {trust: none, fields: {"people[].mail": email, "people[].name": name}}}
trusted:
  - {task: true}
"""
MAIL = "ann@a.test"
START = "mail the note"


def decision(policy: room.Policy, known: Knowledge) -> Decision:
    call = ToolCall(call="c", tool="mail", arguments=json.dumps({"text": "x", "to": MAIL}))
    effect = room.characterise_call(policy, known, call, "e9")
    return room.decide(policy, known, (effect,))[0].decision


def after_read(entry: str, path: str, text: str, *, ref: str | None = None, author: str = "") -> Decision:
    policy = room.load_policy(HEAD + (f"  - {entry}\n" if entry else ""), filename="p.yaml")
    read = FileRead(
        place=Place(root="workspace", path=path), opened=1, closed=2, staged=False, text=text,
        tracked=() if ref is None else (ref,), author=author,
    )  # fmt: skip
    return decision(policy, Knowledge.started(policy, START, 0).with_reads(policy, (read,), 1))


@pytest.mark.parametrize(
    ("tracked", "authors", "vouches"),
    [
        (("main",), ("Ann@A.test",), True),
        (("", "main"), ("eve@b.test", "ann@a.test"), True),
        (("", "main"), ("ann@a.test", "eve@b.test"), False),
        (("", "main"), ("ann@a.test",), False),
        (("main",), (), False),
        (("main",), ("",), False),
        (("release",), ("ann@a.test",), False),
        ((), ("ann@a.test",), False),
    ],
)
def test_a_reference_and_an_author_hold_together(
    tracked: tuple[str, ...], authors: tuple[str, ...], vouches: bool
) -> None:
    """The author of HEAD, of another reference, or of no known one does not stand for that of `main`."""
    entry = '{git: {ref: main, author: "*@a.test"}}'
    policy = room.load_policy(f"{HEAD}  - {entry}\n", filename="p.yaml")
    place = Place(root="workspace", path="a.md")
    read = FileRead(
        place=place, opened=1, closed=2, staged=False, text=f"write to {MAIL}",
        tracked=tracked, author="ann@a.test", authors=authors,
    )  # fmt: skip
    known = Knowledge.started(policy, START, 0).with_reads(policy, (read,), 1)
    assert decision(policy, known) is (Decision.RELEASE if vouches else Decision.DEFER)


@pytest.mark.parametrize(
    ("entry", "path", "ref", "author", "vouches"),
    [
        ('{file: "docs/*.md"}', "docs/a.md", None, "", True),
        ('{file: "docs/*.md"}', "docs/b/a.md", None, "", False),
        ('{file: "docs/*.md"}', "Docs/a.md", None, "", False),
        ("{git: tracked}", "a.md", "", "eve@b.test", True),
        ("{git: tracked}", "a.md", None, "", False),
        ("{git: tracked}", "a.md", "main", "", False),
        ("{git: {ref: main}}", "a.md", "main", "", True),
        ("{git: {ref: main}}", "a.md", "", "", False),
        ('{git: {author: "*@a.test"}}', "a.md", "", "Ann@A.test", True),
        ('{git: {author: "*@a.test"}}', "a.md", "", "ann@a.test.evil.test", False),
        ('{git: {ref: main}, file: "docs/**"}', "docs/a.md", "main", "", True),
        ('{git: {ref: main}, file: "docs/**"}', "a.md", "main", "", False),
    ],
)
def test_a_file_by_its_glob_and_by_what_git_says_of_its_bytes(
    entry: str, path: str, ref: str | None, author: str, vouches: bool
) -> None:
    found = after_read(entry, path, f"write to {MAIL}", ref=ref, author=author)
    assert found is (Decision.RELEASE if vouches else Decision.DEFER)


@pytest.mark.parametrize(
    ("path", "trusted", "other"),
    [
        ("team.json", f'{{"people": [{{"mail": "{MAIL}"}}]}}', f'{{"people": [{{"about": "{MAIL}"}}]}}'),
        ("team.yaml", f"people:\n- mail: {MAIL}\n", f"people:\n- about: {MAIL}\n"),
        ("team.toml", f'[[people]]\nmail = "{MAIL}"\n', f'[[people]]\nabout = "{MAIL}"\n'),
        ("team.csv", f"mail,about\n{MAIL},x\n", f"mail,about\nx,{MAIL}\n"),
    ],
)
def test_a_field_of_a_structured_file_and_no_other(path: str, trusted: str, other: str) -> None:
    field = "mail" if path.endswith("csv") else "people[].mail"
    entry = f'{{file: "team.*", fields: ["{field}"]}}'
    assert after_read(entry.replace("team.*", path), path, trusted) is Decision.RELEASE
    assert after_read(entry.replace("team.*", path), path, other) is Decision.DEFER
    assert after_read("", path, trusted) is Decision.DEFER


@pytest.mark.parametrize(
    ("host", "path", "status", "vouches"),
    [
        ("wiki.test", "/guide/a", 200, True),
        ("wiki.test", "/talk/a", 200, False),
        ("wiki.test", "/guide/../talk/a", 200, False),
        ("wiki.test", "/guide/a", 404, False),
        ("a.wiki.test", "/guide/a", 200, False),
    ],
)
def test_a_host_with_a_path(host: str, path: str, status: int, vouches: bool) -> None:
    policy = room.load_policy(HEAD, filename="p.yaml")
    known = Knowledge.started(policy, START, 0)
    made = NetRequest(method="GET", scheme="https", host=host, port=443, path=path)
    effect = room.characterise_request(policy, known, made, "e1")
    answer = NetResponse(outcome=Outcome.DONE, status=status, size_bytes=9, text=f"write to {MAIL}")
    known = known.with_request(policy, effect).with_response(policy, effect, answer, 1)
    assert decision(policy, known) is (Decision.RELEASE if vouches else Decision.DEFER)


@pytest.mark.parametrize(
    ("tool", "field", "vouches"),
    [("look", "mail", True), ("look", "about", False), ("odd", "mail", False)],
)
def test_a_tool_with_a_field(tool: str, field: str, vouches: bool) -> None:
    policy = room.load_policy(HEAD, filename="p.yaml")
    known = Knowledge.started(policy, f"{START} to Ann Smith", 0)
    effect = room.characterise_call(policy, known, ToolCall(call="c", tool=tool, arguments="{}"), "e1")
    text = json.dumps({"people": [{"name": "Ann Smith", field: MAIL}]})
    result = ToolResult(outcome=Outcome.DONE, text=text, structured=True, size_bytes=len(text))
    known = known.with_tool_result(policy, effect, result, 1)
    assert decision(policy, known) is (Decision.RELEASE if vouches else Decision.DEFER)
