"""The noisy oracle errs at its rates, the same way each time."""

from __future__ import annotations

import pytest

from interlock.bench.noisy import Noisy, sweep, table
from interlock.model.errors import InputError


def test_the_rates_are_kept_and_two_runs_agree() -> None:
    oracle = Noisy.parse("noisy:0.2,0.1,7")
    good = [oracle.releases("c", str(number), good=True) for number in range(5000)]
    bad = [oracle.releases("c", str(number), good=False) for number in range(5000)]
    assert abs(1 - sum(good) / 5000 - 0.2) < 0.02
    assert abs(sum(bad) / 5000 - 0.1) < 0.02
    assert good == [
        Noisy.parse("noisy:0.2,0.1,7").releases("c", str(number), good=True) for number in range(5000)
    ]


def test_a_higher_rate_undoes_no_error() -> None:
    low, high = Noisy.parse("noisy:0.1,0.1,7"), Noisy.parse("noisy:0.3,0.3,7")
    for number in range(500):
        assert low.releases("c", str(number), good=True) or not high.releases("c", str(number), good=True)
        assert high.releases("c", str(number), good=False) or not low.releases("c", str(number), good=False)


def test_rates_of_none_and_all_are_exact() -> None:
    assert Noisy.parse("noisy:0,1,3").releases("c", "e", good=True)
    assert Noisy.parse("noisy:0,1,3").releases("c", "e", good=False)
    assert not Noisy.parse("noisy:1,0,3").releases("c", "e", good=True)
    assert not Noisy.parse("noisy:1,0,3").releases("c", "e", good=False)


@pytest.mark.parametrize(
    "text", ["noisy", "noisy:1,2,3", "noisy:a,b,c", "noisy:0,0", "noisy:nan,0,1", "0,0,1"]
)
def test_what_is_no_noisy_oracle_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Noisy.parse(text)


def test_a_sweep_measures_every_pair() -> None:
    points = sweep(lambda oracle: (oracle.releases_bad, 1.0, 1 - oracle.refuses_good), rates=(0.0, 0.5))
    assert len(points) == 4
    assert "| 50.0 | 0.0 | 0.0 | 100.0 | 50.0 |" in table(points)
