"""Work on a Ray cluster: here one of this machine, started for the test."""

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
def test_a_cluster_that_is_not_there_is_told() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.raises(InputError, match="no Ray cluster"):
        list(streamed(abs, [1], ray="auto"))
