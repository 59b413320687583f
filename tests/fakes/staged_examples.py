"""What the property tests of staged trees share: edits to draw, how many examples, and a place that is gone after."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from tests.fakes.staged_edits import EDITS, Edit


def lists_of_edits(
    kinds: Sequence[str] = EDITS, *, highest: int = 40, fewest: int = 1, most: int = 14
) -> st.SearchStrategy[list[Edit]]:
    number = st.integers(0, highest)
    one = st.builds(Edit, kind=st.sampled_from(kinds), first=number, second=number, third=number)
    return st.lists(one, min_size=fewest, max_size=most)


def examples(count: int) -> settings:
    """INTERLOCK_EXAMPLES takes another number of them, and other ones each time."""
    return settings(
        max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", str(count))),
        deadline=None,
        derandomize="INTERLOCK_EXAMPLES" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def scratch() -> Iterator[str]:
    base = tempfile.mkdtemp(prefix="il-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        yield base
    finally:
        shutil.rmtree(base)
