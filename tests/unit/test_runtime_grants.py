"""Another terminal changes a grant: the words between both ends, and what the living monitor makes of them."""

from __future__ import annotations

import json

import pytest

from interlock.model.errors import InputError
from interlock.model.events import GrantAction
from interlock.runtime.control_protocol import GrantNow, read_request, write_request


def line(fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@pytest.mark.parametrize("below", ["", "/docs/"])
@pytest.mark.parametrize("action", list(GrantAction))
def test_a_change_is_read_as_it_was_written(action: GrantAction, below: str) -> None:
    request = GrantNow(grant="g1", action=action, below=below)
    assert read_request(line(write_request(request))) == request


@pytest.mark.parametrize(
    "more", [{"action": "drop"}, {"grant": 1}, {"below": 1}, {"until": "x"}, {"action": None}]
)
def test_what_is_no_change_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(InputError):
        read_request(line({"v": 1, "verb": "grant", "grant": "g1", "action": "revoke", **more}))
