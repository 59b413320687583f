"""A property on few examples in `make test`, and on many in `make soak` and `make fuzz`."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def few_and_many(
    few: int, many: int, *strategies: st.SearchStrategy[Any], **choices: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of a property, once unmarked and once slow; INTERLOCK_EXAMPLES takes the place of `few`.

    Takes: `strategies`, as `given` takes them; `choices`, further settings.
    """
    few = int(os.environ.get("INTERLOCK_EXAMPLES", str(few)))

    def made_of(check: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.slow)])
        def test(examples: int) -> None:
            settings(max_examples=examples, deadline=None, **choices)(given(*strategies)(check))()

        # Not `wraps`: pytest would read the property's own arguments.
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(test, name, getattr(check, name))
        return test

    return made_of
