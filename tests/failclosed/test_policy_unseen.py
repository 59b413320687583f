"""What is not seen, or only looks alike, names nothing: NUL, lost bytes, marks of direction, homoglyphs, on every channel."""

from __future__ import annotations

import json

import pytest

from interlock import policy as room
from interlock.model.effects import ChangeKind, Effect, FileChange, FileStamp, FileType
from interlock.model.places import Place
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.policy.provenance import Knowledge

KINDS = ("name", "email", "url", "host", "path", "iban", "phone", "amount", "date", "id:file")
POLICY = room.load_policy(
    "version: 1\npreset: none\ntrusted: [{task: true}]\nnetwork: {}\ntools:\n"
    + "".join(
        f'  t{number}: {{effect: destroy, steers: {{it: "{kind}"}}}}\n' for number, kind in enumerate(KINDS)
    )
    + 'cedar: |\n  @id("all")\n  permit(principal, action, resource) when { context.derived };\n',
    filename="p.yaml",
)
UNSEEN = {
    "NUL": "\x00",
    "a lost byte": "\ufffd",
    "a byte that is no UTF-8": "\udce9",
    "zero-width space": "\u200b",
    "right-to-left mark": "\u200f",
    "right-to-left override": "\u202e",
    "isolate": "\u2067",
    "soft hyphen": "\u00ad",
    "combining mark": "\u0301",
    "bell": "\x07",
    "private use": "\ue000",
}
VALUES: dict[str, tuple[str, str]] = {
    "a changed file": ("", ".git/hooks/pre-push"),
    "a request's host": ("", "docs.example.test"),
    "a request's URL": ("", "https://docs.example.test/v1/x"),
    "name": ("t0", "Mara Lind"),
    "email": ("t1", "mara@example.test"),
    "url": ("t2", "https://docs.example.test/v1/x"),
    "host": ("t3", "docs.example.test"),
    "path": ("t4", "docs/plan.txt"),
    "iban": ("t5", "DE89370400440532013000"),
    "phone": ("t6", "555 0100 22"),
    "amount": ("t7", "1234.50"),
    "date": ("t8", "2024-05-15"),
    "id": ("t9", "26041k"),
}


def effect_of(what: str, known: Knowledge, value: str) -> Effect:
    tool, _ = VALUES[what]
    if tool:
        call = ToolCall(call="c", tool=tool, arguments=json.dumps({"it": value}))
        return room.characterise_call(POLICY, known, call, "e1")
    if what == "a changed file":
        stamp = FileStamp(type=FileType.FILE, mode=0o755, uid=0, gid=0, size_bytes=1, digest="aa")
        change = FileChange(kind=ChangeKind.CREATE, place=Place(root="workspace", path=value), after=stamp)
        return room.characterise(POLICY, known, (change,), 1)[0]
    host, _, path = value.removeprefix("https://").partition("/")
    method = "GET" if what == "a request's host" else "POST"
    size = 0 if method == "GET" else 1
    made = NetRequest(
        method=method, scheme="https", host=host, port=443, path=f"/{path}", body_size_bytes=size
    )
    return room.characterise_request(POLICY, known, made, "e1")


def decision(what: str, task: str, value: str) -> Decision:
    known = Knowledge.started(POLICY, task, 0)
    return room.decide(POLICY, known, (effect_of(what, known, value),))[0].decision


@pytest.mark.parametrize("what", VALUES)
def test_the_plain_value_is_named(what: str) -> None:
    value = VALUES[what][1]
    assert decision(what, f"write to {value}, please", value) is Decision.RELEASE


@pytest.mark.parametrize("mark", UNSEEN)
@pytest.mark.parametrize("what", VALUES)
def test_with_something_unseen_beside_or_inside_it_is_not(what: str, mark: str) -> None:
    value, char = VALUES[what][1], UNSEEN[mark]
    half = len(value) // 2
    for said in (
        f"{char}{value}",
        f"{value}{char}",
        f"evil{char}{value}",
        f"{value}{char}evil",
        f"{value[:half]}{char}{value[half:]}",
    ):
        assert decision(what, f"write to {said} please", value) is not Decision.RELEASE, ascii(said)


@pytest.mark.parametrize("mark", UNSEEN)
@pytest.mark.parametrize("what", [each for each in VALUES if VALUES[each][0]])
def test_a_value_of_a_call_that_holds_something_unseen_is_never_vouched_for(what: str, mark: str) -> None:
    value, char = VALUES[what][1], UNSEEN[mark]
    for given in (f"{char}{value}", f"{value}{char}", f"{value[:3]}{char}{value[3:]}"):
        # These two are seen in a value: the same text vouches for it, and the plain one does not.
        for said in (value,) if mark in ("combining mark", "a lost byte") else (value, given):
            assert decision(what, f"write to {said} please", given) is not Decision.RELEASE, ascii(given)


@pytest.mark.parametrize(
    ("what", "alike"),
    [
        ("a changed file", ".git/hooks/pre\u2010push"),
        ("a changed file", ".git/h\u043eoks/pre-push"),
        ("a request's host", "d\u043ecs.example.test"),
        ("a request's host", "docs.example\uff0etest"),
        ("a request's host", "docs.ex\u0430mple.test"),
        ("a request's URL", "https://docs.example.test/v1/\u0445"),
        ("a request's URL", "https://docs.example.test\u2215v1/x"),
        ("name", "M\u0430ra Lind"),
        ("email", "mara@ex\u0430mple.test"),
        ("email", "mar\u0430@example.test"),
        ("url", "https://docs.ex\u0430mple.test/v1/x"),
        ("host", "docs.ex\u0430mple.test"),
        ("path", "d\u043ecs/plan.txt"),
        ("iban", "\u0415DE89370400440532013000"),
        ("id", "2604\u0131k"),
    ],
)
def test_what_only_looks_alike_is_another_value(what: str, alike: str) -> None:
    value = VALUES[what][1]
    assert decision(what, f"write to {alike}, please", value) is not Decision.RELEASE
    if what != "a changed file":
        # That would be another file, of which nothing says that it runs.
        assert decision(what, f"write to {value}, please", alike) is not Decision.RELEASE
