"""Simulated oracles: right but for their errors, each error kept at a higher rate, and panels counted as the product's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.bench.ablation_facts import Facts
from interlock.bench.simulated_oracles import OneWord, Panelled, Visor, drawn
from interlock.oracle.panel.words import Kind

GOOD = Facts(case="c", key="g", good=True)


def bad(*caught: str, key: str = "b", case: str = "c") -> Facts:
    return Facts(case=case, key=key, good=False, caught=frozenset(caught))


def test_a_visor_without_errors_refuses_what_a_check_catches_and_nothing_else() -> None:
    visor = Visor()
    assert visor.says(GOOD).releases
    assert [visor.says(bad(check)).failed for check in "STI"] == ["S", "T", "I"]
    assert visor.says(bad("T", "I")).failed == "T"
    assert visor.says(bad()).releases
    assert Visor(checks="SI").says(bad("T")).releases


FACTS = st.builds(
    lambda case, key, good, caught: Facts(case=case, key=key, good=good, caught=frozenset(caught)),
    st.sampled_from("xyz"), st.text("ab", max_size=4), st.booleans(), st.sets(st.sampled_from("STI")),
)  # fmt: skip


@given(FACTS, st.integers(0, 5))
@settings(max_examples=60)
def test_a_higher_rate_never_undoes_an_error(facts: Facts, seed: int) -> None:
    for make in (
        lambda error: OneWord(name="seeing", sees=True, error=error, seed=seed),
        lambda error: OneWord(name="blind", sees=False, error=error, seed=seed),
    ):
        wrong = [make(error).says(facts).releases != facts.good for error in (0.0, 0.2, 0.5, 0.8, 1.0)]
        assert wrong == sorted(wrong)
        assert (wrong[0], wrong[-1]) == (False, True)
    if not facts.good and facts.caught:
        passed = [Visor(error=error, seed=seed).says(facts).releases for error in (0.0, 0.2, 0.5, 1.0)]
        assert passed == sorted(passed)


@given(FACTS, st.integers(0, 5), st.sampled_from("STI"))
@settings(max_examples=60)
def test_a_check_less_never_refuses_more(facts: Facts, seed: int, check: str) -> None:
    whole = Visor(error=0.3, seed=seed)
    less = Visor(checks="STI".replace(check, ""), error=0.3, seed=seed)
    assert less.says(facts).releases >= whole.says(facts).releases


def test_a_text_that_persuades_the_seeing_oracle_does_so_in_its_whole_case() -> None:
    seeing = OneWord(name="seeing", sees=True, error=0.5, seed=1)
    blind = OneWord(name="blind", sees=False, error=0.5, seed=1)
    for case in "abcdefgh":
        said = {seeing.says(bad(key=str(key), case=case)).releases for key in range(20)}
        assert len(said) == 1
    assert len({blind.says(bad(key=str(key))).releases for key in range(40)}) == 2


@pytest.mark.parametrize(
    ("kind", "minds", "releases", "calls"),
    [
        (Kind.ALL, (True, False, True), False, 2),
        (Kind.ALL, (True, True, True), True, 3),
        (Kind.ANY, (False, True, False), True, 2),
        (Kind.MAJORITY, (True, True, False), True, 2),
        (Kind.MAJORITY, (True, False, False), False, 3),
        (Kind.FIRST, (False, True, True), False, 1),
    ],
)
def test_a_panel_is_counted_and_asks_no_more_than_it_must(
    kind: Kind, minds: tuple[bool, ...], releases: bool, calls: int
) -> None:
    members = tuple(
        OneWord(name=str(n), sees=False, error=0.0 if mind else 1.0) for n, mind in enumerate(minds)
    )
    word = Panelled(kind=kind, members=members).says(GOOD)
    assert (word.releases, word.calls) == (releases, calls)


def test_draws_are_spread_and_the_same_each_time() -> None:
    found = [drawn(7, "x", str(n)) for n in range(2000)]
    assert found == [drawn(7, "x", str(n)) for n in range(2000)]
    assert all(0 <= one < 1 for one in found)
    assert 0.45 < sum(found) / len(found) < 0.55
