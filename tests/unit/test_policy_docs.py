"""docs/policy.md: its examples load, and it names every key, action and attribute."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock.policy import load_policy
from interlock.policy.loading import _KEYS
from interlock.policy.vocabulary import ACTIONS, CONTEXT

TEXT = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_loads(example: str) -> None:
    assert load_policy(example, filename="example").digest


def test_every_key_action_and_attribute_is_named() -> None:
    words = set(re.findall(r"[\w.]+", TEXT))
    assert not [word for word in (*_KEYS, *ACTIONS, *CONTEXT) if word not in words]
