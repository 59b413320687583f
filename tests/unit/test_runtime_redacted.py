"""A request as a review shows it redacted, and what the policy lets leave so where nobody is asked."""

from dataclasses import replace

import pytest
from tests.unit.test_policy_redacting import KNOWN, SECRET, effect

from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.records import changed
from interlock.monitor import State
from interlock.policy import characterise_request, load_policy
from interlock.runtime.redacted import leaves_by_policy, marked_text

POLICY = load_policy(
    """version: 1
preset: coding
network:
  hosts:
    - {host: api.test, methods: [POST], redact: true}
    - {host: api.test, methods: [PUT]}
cedar: |
  @id("no-x")
  forbid(principal, action, resource) when { context.query like "*redacted*" };
""",
    filename="runtime",
)
STATE = changed(State(), policy=POLICY, knowledge=KNOWN)


def of(body: str = "", query: str = "", **more: object) -> Effect:
    request = effect(body, query=query).request
    assert request is not None
    return characterise_request(POLICY, KNOWN, replace(request, **more), "e1")  # type: ignore[arg-type]


def test_what_would_be_cut_stands_in_marks() -> None:
    state = changed(STATE, policy=load_policy("version: 1\n", filename="p"))
    assert marked_text(state, of(f"é {SECRET} ü", f"a=1&t={SECRET}")) == (
        f"?a=1&t=[-{SECRET}-]\né [-{SECRET}-] ü"
    )
    assert marked_text(state, of(f"x {SECRET}")) == f"x [-{SECRET}-]"
    assert marked_text(state, of(query=f"t={SECRET}")) == f"?t=[-{SECRET}-]"


def test_what_cannot_leave_redacted_is_said() -> None:
    with pytest.raises(InputError, match="path"):
        marked_text(STATE, of("fine", path=f"/{SECRET}"))
    with pytest.raises(InputError, match="would be refused then"):
        marked_text(STATE, of(query=f"t={SECRET}"))


@pytest.mark.parametrize(
    ("what", "leaves"),
    [
        (of(f"x {SECRET}"), True),
        (of(f"x {SECRET}", method="PUT"), False),
        (of(f"x {SECRET}", host="other.test"), False),
        (of(f"x {SECRET}", path=f"/{SECRET}"), False),
        (of(query=f"t={SECRET}"), False),
        (of("fine"), False),
    ],
)
def test_the_policy_lets_leave_what_it_vouches_for_without_it(what: Effect, leaves: bool) -> None:
    assert leaves_by_policy(STATE, what) is leaves
