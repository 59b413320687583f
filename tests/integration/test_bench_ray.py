"""Work on a Ray cluster: here one of this machine, started for the test."""

from functools import partial
from importlib.util import find_spec

import pytest

from interlock.bench.spread import streamed
from interlock.model.errors import InputError


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_it_is_told() -> None:
    with pytest.raises(InputError, match="Ray is not installed"):
        list(streamed(abs, [1], ray="auto"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_local_cluster_gives_the_results_in_their_order() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    # What is sent is a function that each node has: here one of the language.
    assert list(streamed(abs, list(range(-20, 0)), ray="local")) == list(range(20, 0, -1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_cases_come_out_the_same_on_a_cluster_as_here() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("agentdojo", reason="run scripts/need_bench")
    from interlock.bench import dojo

    work = partial(dojo.run_case, settings=dojo.Settings())
    some = [case for case in dojo.cases(["banking"]) if case.user == "user_task_0"]
    assert list(streamed(work, some, ray="local")) == [work(case) for case in some]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_is_not_there_is_told() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.raises(InputError, match="no Ray cluster"):
        list(streamed(abs, [1], ray="auto"))
