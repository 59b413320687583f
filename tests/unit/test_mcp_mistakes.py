"""A mistake in how a server is to be guarded is told before anything of it is passed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.mcp_pair import Pair

from interlock.mcp.child import environment_of
from interlock.model.errors import InputError, PolicyError
from interlock.policy import load_policy
from interlock.policy.mcp import McpServer


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"server": "a/b"}, InputError),
        ({"server": ""}, InputError),
        ({"oracle": "human"}, InputError),
        ({"oracle": "review"}, InputError),
        ({"oracle": "nobody"}, InputError),
        ({"policy": "version: 1\nmcp: {mail: {annotation: believed}}\n"}, PolicyError),
        ({"policy": "version: 1\nmcp: {mail: {annotations: true}}\n"}, PolicyError),
        ({"policy": "version: 1\nmcp: {'a/b': {}}\n"}, PolicyError),
        ({"policy": "version: 1\nmcp: {mail: {environment: ['A B']}}\n"}, PolicyError),
        ({"policy": "version: 1\nmcp: [mail]\n"}, PolicyError),
    ],
)
def test_a_mistake_is_told_before_anything_is_passed(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Pair(**options)


def test_a_policy_names_what_a_server_gets_of_the_environment() -> None:
    policy = load_policy(
        "version: 1\nmcp: {mail: {environment: [MAIL_*]}, git: {annotations: believed}}\n", filename="p"
    )
    assert policy.mcp == (
        McpServer(name="mail", environment=("MAIL_*",)),
        McpServer(name="git", believed=True),
    )
    given = {"PATH": "/bin", "LC_ALL": "C", "MAIL_TOKEN": "x", "AWS_SECRET": "y", "INTERLOCK_STATE": "z"}
    assert environment_of(given, policy.mcp[0]) == {"PATH": "/bin", "LC_ALL": "C", "MAIL_TOKEN": "x"}
    assert "AWS_SECRET" in environment_of(given, policy.mcp[1])
    assert "INTERLOCK_STATE" not in environment_of(given, None)
