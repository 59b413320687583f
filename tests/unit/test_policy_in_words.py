"""A policy as an oracle is told it: what it names, and no word that judges a source."""

import pytest

from interlock.policy import load_policy
from interlock.policy.explaining import in_words

OWN = """
version: 1
preset: {preset}
trusted:
  - task: true
  - file: "docs/runbook.md"
untrusted:
  - file: "vendor/"
sensitive:
  - {{place: "customers/", level: critical}}
parties:
  - {{name: "api.example.com", clearance: internal}}
network:
  hosts:
    - {{host: docs.example.com, trusted: true}}
    - {{host: api.example.com, methods: [GET, POST], clearance: internal}}
cedar: |
  @id("keep-migrations")
  @reason("migrations that ran are never changed")
  forbid(principal, action == Action::"file.delete", resource) when {{ context.path like "migrations/*" }};
"""


@pytest.mark.parametrize("preset", ["none", "coding"])
def test_what_a_policy_says_is_there_and_no_word_judges(preset: str) -> None:
    lines = in_words(load_policy(OWN.format(preset=preset), filename="policy.yaml"))
    assert "values may come from the task's own words" in lines
    assert "values may come from docs/runbook.md" in lines
    assert "values may come from answers of docs.example.com" in lines
    assert "values never come from vendor/" in lines
    assert "ruled out: migrations that ran are never changed" in lines
    assert "api.example.com may be given data up to `internal`" in lines
    text = "\n".join(lines)
    assert "docs.example.com" in text
    assert "requests may go to api.example.com (GET, POST), may hold `internal`" in lines
    assert "customers/" in text
    assert "trust" not in text
