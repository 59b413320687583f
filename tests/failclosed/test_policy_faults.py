"""What breaks in the decision refuses: a rule that cannot be evaluated, an engine that falls, content that is cut."""

from __future__ import annotations

from dataclasses import replace

import cedarpy
import pytest

from interlock.model.effects import ChangeKind, Effect, FileChange, FileStamp, FileType
from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.model.requests import NetMessage, NetRequest
from interlock.model.verdicts import Decision, Verdict
from interlock.policy import (
    Knowledge,
    Policy,
    characterise,
    characterise_message,
    characterise_request,
    decide,
    load_policy,
)
from interlock.policy.rules import _compile


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """What the rules said in one test must not answer another that breaks the engine."""
    _compile.cache_clear()


HEAD = "version: 1\npreset: coding\ncedar: |\n"


def policy_of(*rules: str) -> Policy:
    return load_policy(HEAD + "".join(f"  {rule}\n" for rule in rules), filename="p.yaml")


def change(path: str, text: str | None = None, size: int = 3) -> FileChange:
    return FileChange(
        kind=ChangeKind.CREATE,
        place=Place(root="workspace", path=path),
        after=FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=size, digest="aa"),
        after_text=text,
    )


def decided(policy: Policy, *changes: FileChange, task: str = "work") -> tuple[Verdict, ...]:
    knowledge = Knowledge.started(policy, task, 0)
    return decide(policy, knowledge, characterise(policy, knowledge, changes, 1))


@pytest.mark.parametrize("effect", ["permit", "forbid"])
def test_a_rule_that_errs_at_evaluation_refuses(effect: str) -> None:
    """Cedar itself skips an erring forbid; here it refuses, whichever kind it is."""
    policy = policy_of(
        f'@id("errs") {effect}(principal, action, resource) when {{ context.size + 9223372036854775807 > 0 }};'
    )
    (verdict,) = decided(policy, change("a"))
    assert verdict.decision is Decision.REFUSE
    assert verdict.exception is not None


def test_a_rule_that_errs_on_one_effect_leaves_its_neighbours_alone() -> None:
    policy = policy_of(
        '@id("errs") forbid(principal, action, resource) when '
        '{ context.path == "bad" && context.size + 9223372036854775807 > 0 };'
    )
    verdicts = decided(policy, change("a"), change("bad"), change("c"))
    assert [item.decision for item in verdicts] == [Decision.RELEASE, Decision.REFUSE, Decision.RELEASE]


def test_an_engine_that_falls_refuses_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def falls(*_arguments: object) -> list[object]:
        raise RuntimeError("engine")

    monkeypatch.setattr(cedarpy, "is_authorized_batch", falls)
    for verdict in decided(policy_of("permit(principal, action, resource);"), change("a"), change("b")):
        assert verdict.decision is Decision.REFUSE
        assert "failed" in verdict.reason


def test_an_engine_that_answers_too_little_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cedarpy, "is_authorized_batch", lambda *_arguments: [])
    assert {item.decision for item in decided(policy_of(), change("a"), change("b"))} == {Decision.REFUSE}


@pytest.mark.parametrize("path", ["package.json", "Makefile", ".git/config", "pyproject.toml"])
def test_content_that_could_not_be_read_is_taken_for_executable(path: str) -> None:
    """The gate gives no text for what is too long or no UTF-8: that must not make it plain data."""
    (verdict,) = decided(policy_of(), change(path, text=None, size=1 << 30))
    assert verdict.decision is Decision.DEFER


def test_content_that_cannot_be_parsed_is_taken_for_executable() -> None:
    (verdict,) = decided(policy_of(), change("package.json", text='{"name": '))
    assert verdict.decision is Decision.DEFER


def test_lost_events_raise_the_label_and_never_lower_it() -> None:
    policy = load_policy(None, filename="coding")
    before = Knowledge.started(policy, "work", 0)
    after = before.with_unknown_reads(policy)
    assert after.label.integrity <= before.label.integrity
    assert after.read_level is policy.highest_level
    assert after.level_in("anything") is policy.highest_level


def test_once_what_is_sensitive_was_listed_only_what_it_holds_counts() -> None:
    policy = load_policy(None, filename="coding")
    read = FileRead(
        place=Place(root="workspace", path=".env"), opened=0, closed=0, staged=False, text="K=tok-7f3a91"
    )
    known = Knowledge.started(policy, "work", 0).with_unknown_reads(policy).with_reads(policy, [read], 3)
    listed = known.with_unknown_reads(policy, listed=True)
    assert listed.level_in("nothing of it") is Confidentiality.PUBLIC
    assert listed.level_in("here: tok-7f3a91") is Confidentiality.SECRET
    assert listed.read_level is Confidentiality.SECRET
    assert listed.with_unknown_reads(policy).level_in("nothing of it") is policy.highest_level


def test_a_sensitive_file_that_was_too_long_to_know_counts_as_present_everywhere() -> None:
    policy = load_policy(None, filename="coding")
    read = FileRead(place=Place(root="workspace", path=".env"), opened=1, closed=2, staged=False, text=None)
    knowledge = Knowledge.started(policy, "work", 0).with_reads(policy, [read], 3)
    assert knowledge.level_in("nothing of it") is Confidentiality.SECRET


def test_a_staged_file_vouches_for_nothing() -> None:
    """The agent wrote `docs/plan.md` itself: a trusted place does not make its words the principal's."""
    policy = load_policy('version: 1\npreset: coding\ntrusted:\n  - file: "docs/**"\n', filename="p.yaml")
    words = "please add .git/hooks/pre-commit"
    place = Place(root="workspace", path="docs/plan.md")
    verdicts: list[Decision] = []
    for staged in (False, True):
        read = FileRead(place=place, opened=1, closed=2, staged=staged, text=words)
        knowledge = Knowledge.started(policy, "work", 0).with_reads(policy, [read], 3)
        effects: tuple[Effect, ...] = characterise(policy, knowledge, [change(".git/hooks/pre-commit")], 1)
        verdicts += [item.decision for item in decide(policy, knowledge, effects)]
    assert verdicts == [Decision.RELEASE, Decision.DEFER]


def asked(url_host: str = "a.test", **more: object) -> NetRequest:
    given: dict[str, object] = {
        "method": "GET",
        "scheme": "https",
        "host": url_host,
        "port": 443,
        "path": "/x",
    }
    return NetRequest(**{**given, **more})  # type: ignore[arg-type]


def answered(policy: Policy, made: NetRequest, task: str = "work") -> Verdict:
    knowledge = Knowledge.started(policy, task, 0)
    (verdict,) = decide(policy, knowledge, (characterise_request(policy, knowledge, made, "e1"),))
    return verdict


@pytest.mark.parametrize("effect", ["permit", "forbid"])
def test_a_rule_that_errs_on_a_request_refuses(effect: str) -> None:
    policy = policy_of(
        f'@id("errs") {effect}(principal, action, resource) when {{ context.port + 9223372036854775807 > 0 }};'
    )
    verdict = answered(policy, asked(), task="read https://a.test/x")
    assert verdict.decision is Decision.REFUSE
    assert "errs" in verdict.reason
    assert verdict.exception is not None
    assert "request" in verdict.exception.allowed_objective


def test_an_engine_that_falls_once_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of('@id("fresh") permit(principal, action, resource) when { context.host == "b.test" };')

    def falls(*_arguments: object) -> list[object]:
        raise RuntimeError("engine")

    with monkeypatch.context() as broken:
        broken.setattr(cedarpy, "is_authorized_batch", falls)
        assert answered(policy, asked(), task="a.test").decision is Decision.REFUSE
    assert answered(policy, asked(), task="a.test").decision is Decision.RELEASE


ODD = [
    asked(""),
    asked("", port=0, path="", scheme=""),
    asked("x" * 300 + ".test"),
    asked("ёлка.test"),
    asked("a.test", path="/" + "x" * 1_000_000),
    asked("a.test", path="/\u0000\ud800/%ff%", query="%" * 100),
    asked("a.test", path="", query="&" * 10_000),
    asked("a.test", port=-1),
    asked("a.test", port=1 << 40),
    asked("::1::"),
    asked("[::1]"),
    asked("."),
    asked("a.test\n"),
    asked("a.test", method=""),
    asked("a.test", method="ＧＥＴ"),
    asked("a.test", scheme="gopher"),
    asked("a.test", headers=(("", ""), ("\ud800", "\ud800"))),
    asked("a.test", body_size_bytes=-1),
    asked("a.test", body_size_bytes=-7),
    asked("a.test", body_size_bytes=1 << 70, body_text=""),
]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_an_odd_request_is_never_released_unless_named(number: int) -> None:
    policy = load_policy(None, filename="coding")
    verdict = answered(policy, ODD[number])
    assert verdict.decision is not Decision.RELEASE
    assert verdict.reason


@pytest.mark.parametrize("number", range(len(ODD)))
def test_an_odd_request_is_decided_where_secrets_are_known(number: int) -> None:
    """Looking for them in it must not fail: what fails there would stop the run."""
    policy = load_policy(None, filename="coding")
    place = Place(root="workspace", path=".env")
    read = FileRead(place=place, opened=1, closed=2, staged=False, text="KEY=hunter2hunter2")
    knowledge = Knowledge.started(policy, "work", 0).with_reads(policy, [read], 3)
    effect = characterise_request(policy, knowledge, ODD[number], "e1")
    message = NetMessage(stream="e1", size_bytes=3, digest="", text="\ud800 hunter2hunter2")
    sent = characterise_message(policy, knowledge, effect, message, "e2")
    assert sent.carried is Confidentiality.SECRET
    for verdict in decide(policy, knowledge, (effect, sent)):
        assert verdict.decision is not Decision.RELEASE


def test_a_request_without_a_host_is_not_named_by_any_text() -> None:
    policy = policy_of("permit(principal, action, resource);")
    for made in ODD[:2]:
        assert answered(policy, made, task="https:///x . : @ [] https://").decision is not Decision.RELEASE


def test_an_effect_that_speaks_of_another_host_than_its_request_has_no_derivation() -> None:
    policy = policy_of("permit(principal, action, resource);")
    knowledge = Knowledge.started(policy, "read https://a.test/", 0)
    effect = characterise_request(policy, knowledge, asked("b.test"), "e1")
    named = characterise_request(policy, knowledge, asked("a.test"), "e1")
    forged = replace(effect, steering=named.steering)
    assert [one.decision for one in decide(policy, knowledge, (named, forged))] == [
        Decision.RELEASE,
        Decision.DEFER,
    ]
    (verdict,) = decide(policy, knowledge, (replace(named, request=None),))
    assert verdict.decision is Decision.DEFER
