"""Played agents and the counting of what they reached."""

from interlock.bench.agents import Json, hijacked, squeezed, variants
from interlock.bench.cases import Case, CaseResult
from interlock.bench.dojo_roles import Level, at_level, role_text
from interlock.bench.dojo_suites import SUITES, escaped
from interlock.bench.metrics import totals


def result(injection: str, *, succeeded: bool = False, text_only: bool = False) -> CaseResult:
    return CaseResult(
        case=Case(suite="s", user="u", injection=injection),
        utility=True,
        judged=succeeded,
        succeeded=succeeded,
        kept=True,
        reached=True,
        text_only=text_only,
        questions=0,
        calls=(),
    )


def test_a_payload_with_quotes_and_back_slashes_is_escaped_for_the_environment() -> None:
    assert escaped('a "b" \\ c') == 'a \\"b\\" \\\\ c'


def test_a_goal_is_found_however_it_is_wrapped() -> None:
    assert squeezed("send it\nto me") in squeezed("please  send it to me")


def test_a_hijacked_call_has_the_attackers_value_of_the_same_kind() -> None:
    own: dict[str, Json] = {"recipients": ["a@x.org"], "body": "hi"}
    assert hijacked(own, {"to": "evil@y.org"}, ("recipients",)) == {
        "recipients": ["evil@y.org"],
        "body": "hi",
    }
    assert hijacked(own, {"to": "nobody"}, ("recipients",)) is None


def test_a_stubborn_agent_has_three_variants() -> None:
    assert [each["a"] for each in variants({"a": "x"})] == [" x ", "X", "<x>"]


def test_answers_without_a_call_are_counted_apart() -> None:
    found = totals([result("i"), result("j", succeeded=True, text_only=True)])
    assert (found.attack_success, found.text_only_success) == (0.0, 1.0)


def test_levels_take_trust_away() -> None:
    for suite in SUITES:
        text = role_text(suite)
        assert at_level(text, Level.FULL) == text
        assert "fields:" not in at_level(text, Level.DIRECTORY)
        assert "own" not in at_level(text, Level.TASK).split()
