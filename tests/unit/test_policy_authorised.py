"""The static part of the system-call guard: what a manifest authorises, asked of single effects."""

import pytest
from tests.fakes.kernel_needs import needs
from tests.fakes.signed_plans import manifest, step

from interlock.model.effects import ChangeKind, Channel, Effect, FileChange, Reach
from interlock.model.labels import Confidentiality
from interlock.model.manifest import Manifest
from interlock.model.places import Place
from interlock.model.records import changed
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import CheckOutcome, ExceptionType
from interlock.policy.authorised import authorised


def plan(**given: tuple[str, ...]) -> Manifest:
    made = manifest(
        "do it",
        step("s1", "mail/send", {"to": "a@b.example"}),
        lacking=(
            ("sh/execute", ("system call execve", "write {workspace}")),
            ("py/run", ("system call clone",)),
            ("other/send", ("host other.example",)),
        ),
    )
    return changed(made, authorised=needs("read", **{"read": (), **given}), authorises=True)  # type: ignore[arg-type]


def effect(channel: Channel, operation: str, **given: object) -> Effect:
    values: dict[str, object] = {
        "id": "e1", "channel": channel, "operation": operation, "object": "o", "reach": Reach.BLOCKING, "steering": (),
        "carried": Confidentiality.PUBLIC, "clearance": Confidentiality.PUBLIC, **given,
    }  # fmt: skip
    return Effect(**values)  # type: ignore[arg-type]


def call(name: str) -> Effect:
    return effect(Channel.TOOL, "tool.write", tool=ToolCall(call="c1", server="", tool=name, arguments="{}"))


def request(host: str, port: int = 443, operation: str = "net.write") -> Effect:
    asked = NetRequest(method="POST", scheme="https", host=host, port=port, path="/")
    return effect(Channel.NET, operation, request=asked)


def change(place: str, source: str = "") -> Effect:
    def at(text: str) -> Place:
        root, _, path = text.rpartition(":")
        return Place(root=root, path=path)

    made = FileChange(
        kind=ChangeKind.RENAME if source else ChangeKind.MODIFY,
        place=at(place),
        source=at(source) if source else None,
    )
    return effect(Channel.FILE, "file.modify", change=made)


def outcome(given: Manifest, one: Effect) -> CheckOutcome | None:
    found = authorised(given, one)
    if found is None:
        return None
    assert (found.exception is not None) == (found.check.outcome is CheckOutcome.BLOCK)
    if found.exception is not None:
        assert found.exception.type is ExceptionType.SYSCALL
    return found.check.outcome


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mail/send", CheckOutcome.PASS), ("mcp__mail__send", CheckOutcome.PASS),
        ("sh/execute", CheckOutcome.BLOCK), ("execute", CheckOutcome.BLOCK), ("mcp__sh__execute", CheckOutcome.BLOCK),
        ("send", CheckOutcome.BLOCK), ("unheard", None), ("mail/list", None), ("", None),
    ],
)  # fmt: skip
def test_calls(name: str, expected: CheckOutcome | None) -> None:
    assert outcome(plan(), call(name)) is expected


def test_a_refused_call_says_what_its_tool_needs() -> None:
    found = authorised(plan(), call("sh/execute"))
    assert found is not None
    assert "system call execve, write {workspace}" in found.check.reason


@pytest.mark.parametrize(
    ("hosts", "host", "port", "expected"),
    [
        (("a.example:443",), "a.example", 443, CheckOutcome.PASS),
        (("a.example:443",), "a.example", 80, CheckOutcome.BLOCK),
        (("a.example",), "a.example", 80, CheckOutcome.PASS),
        (("*.example",), "b.a.example", 443, CheckOutcome.PASS),
        (("*.example",), "example", 443, CheckOutcome.BLOCK),
        (("a.example",), "xa.example", 443, CheckOutcome.BLOCK),
        (("a.example",), "a.example.evil", 443, CheckOutcome.BLOCK),
        (("a.example",), "aXexample", 443, CheckOutcome.BLOCK),
        ((), "a.example", 443, CheckOutcome.BLOCK),
    ],
)
def test_requests(hosts: tuple[str, ...], host: str, port: int, expected: CheckOutcome) -> None:
    assert outcome(plan(hosts=hosts), request(host, port)) is expected
    assert outcome(plan(hosts=hosts), request(host, port, "net.read")) is expected
    assert outcome(plan(hosts=hosts), request(host, port, "net.model")) is None


def test_a_refused_request_says_the_line_to_add() -> None:
    found = authorised(plan(), request("a.example", 8443))
    assert found is not None
    assert "needs: {hosts: [{host: a.example, port: 8443" in found.check.reason


@pytest.mark.parametrize(
    ("written", "place", "expected"),
    [
        ("{workspace}", "workspace:src/a.py", CheckOutcome.PASS),
        ("{workspace}/src", "workspace:src/a.py", CheckOutcome.PASS),
        ("{workspace}/src/", "workspace:src", CheckOutcome.PASS),
        ("{workspace}/src", "workspace:srcs/a.py", CheckOutcome.BLOCK),
        ("{workspace}/src", "workspace:", CheckOutcome.BLOCK),
        ("{workspace}", "folder:/more:a", CheckOutcome.PASS),
        ("{workspace}", "home:.cache/a", CheckOutcome.BLOCK),
        ("{home}/.cache", "home:.cache/a", CheckOutcome.PASS),
        ("{home}", "workspace:a", CheckOutcome.BLOCK),
        ("/", "workspace:a", CheckOutcome.PASS),
        ("{workspace}/\xe9", "workspace:\xe9/a", CheckOutcome.PASS),
        ("{workspace}/a", "workspace:\\x61/b", CheckOutcome.PASS),
        ("{workspace}", "workspace:\\xZZ", CheckOutcome.BLOCK),
    ],
)
def test_changes(written: str, place: str, expected: CheckOutcome) -> None:
    assert outcome(plan(write=(written,)), change(place)) is expected
    assert outcome(plan(read=(written,)), change(place)) is CheckOutcome.BLOCK, "to read is not to write"


def test_both_ends_of_a_rename_count() -> None:
    given = plan(write=("{workspace}/in",))
    assert outcome(given, change("workspace:in/a", "workspace:in/b")) is CheckOutcome.PASS
    assert outcome(given, change("workspace:in/a", "workspace:b")) is CheckOutcome.BLOCK
    assert outcome(given, change("workspace:a", "workspace:in/b")) is CheckOutcome.BLOCK


def test_a_refused_change_says_the_line_to_add() -> None:
    found = authorised(plan(), change("workspace:src/a.py"))
    assert found is not None
    assert 'needs: {paths: [{path: "{workspace}/src/a.py", access: write' in found.check.reason
