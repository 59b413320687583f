"""docs/policy.md: its examples load, and it names every key, action and attribute."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock.policy import load_policy
from interlock.policy.compensation_loading import COMPENSATION_KEYS, UNDO_KEYS
from interlock.policy.loading import _KEYS
from interlock.policy.net_effects import FACETS
from interlock.policy.network_loading import (
    HOST_KEYS,
    KEYS,
    LIMIT_KEYS,
    OPAQUE_KEYS,
    PUBLISH_KEYS,
    SECRET_KEYS,
)
from interlock.policy.vocabulary import ACTIONS, CONTEXT

TEXT = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_loads(example: str) -> None:
    assert load_policy(example, filename="example").digest


def test_every_key_action_and_attribute_is_named() -> None:
    words = set(re.findall(r"[\w.]+", TEXT))
    assert not [word for word in (*_KEYS, *ACTIONS, *CONTEXT) if word not in words]


def test_every_key_and_facet_of_the_network_is_named() -> None:
    words = set(re.findall(r"[\w-]+", TEXT))
    keys = (
        *KEYS,
        *HOST_KEYS,
        *OPAQUE_KEYS,
        *PUBLISH_KEYS,
        *SECRET_KEYS,
        *LIMIT_KEYS,
        *COMPENSATION_KEYS,
        *UNDO_KEYS,
    )
    assert not [word for word in (*keys, *FACETS) if word not in words]


def test_what_the_example_of_the_network_says_holds() -> None:
    network = load_policy(
        next(text for text in EXAMPLES if "hooks.example.com" in text), filename="e"
    ).network
    assert network.rule_for("docs.example.com", 443, "GET", "/guide") is not None
    assert network.rule_for("api.github.com", 443, "POST", "/repos/example/app/issues/1/comments") is not None
    assert network.rule_for("api.github.com", 443, "POST", "/repos/example/application") is None
    assert network.rule_for("hooks.example.com", 443, "POST", "/") is not None
