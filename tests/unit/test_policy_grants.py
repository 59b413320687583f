"""Grants: what holds again, what the principal may change, and which questions are equal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.effects import Channel, Effect, Facet, Reach, Value
from interlock.model.events import Answer, GrantAction, GrantChanged
from interlock.model.labels import Confidentiality
from interlock.model.requests import NetRequest
from interlock.model.verdicts import Decision
from interlock.policy.grants import (
    GrantError,
    asked_once,
    find_grant,
    grants_of,
    with_change,
    with_grants,
    with_twins,
)


def effect(path: str = "/a/b", host: str = "api.test", body: str = "", name: str = "e1") -> Effect:
    url = f"https://{host}{path}"
    return Effect(
        id=name,
        channel=Channel.NET,
        operation="net.write",
        object=url,
        reach=Reach.BLOCKING,
        steering=(Value(role="host", text=host), Value(role="url", text=url)),
        carried=Confidentiality.PUBLIC,
        clearance=Confidentiality.PUBLIC,
        request=NetRequest(
            method="POST", scheme="https", host=host, port=443, path=path, body_digest=body, body_size_bytes=1
        ),
    )


def change(action: str, grant: str = "g2", below: str = "") -> GrantChanged:
    return GrantChanged(grant=grant, action=GrantAction(action), changed_at_ns="1", below=below)


def holds(grants: object, one: Effect) -> bool:
    return all(find_grant(grants, one, value.role, value.text) for value in one.steering)  # type: ignore[arg-type]


GIVEN = grants_of(effect(), 7)


def test_a_release_holds_for_the_same_and_for_nothing_else() -> None:
    assert holds(GIVEN, effect(body="other"))
    assert not holds(GIVEN, effect("/a/c"))
    assert not holds(GIVEN, effect(host="evil.test"))
    assert not holds(GIVEN, replace(effect(), operation="net.read"))


def test_what_carries_too_much_or_is_odd_grants_nothing() -> None:
    assert grants_of(replace(effect(), carried=Confidentiality.SECRET), 1) == ()
    assert grants_of(replace(effect(), facets=(Facet(kind="x", reason="y"),)), 1) == ()


def test_a_grant_that_was_taken_back_holds_no_more_until_it_is_given_again() -> None:
    revoked = with_change(GIVEN, change("revoke"))
    assert not holds(revoked, effect())
    assert len(revoked) == len(GIVEN)  # the others keep their turns
    assert holds(with_grants(revoked, grants_of(effect(), 9)), effect())


def test_widening_lets_more_paths_and_narrowing_fewer() -> None:
    wide = with_change(GIVEN, change("widen", below="/a/"))
    assert holds(wide, effect("/a/c"))
    assert not holds(wide, effect("/ab"))
    assert not holds(wide, effect("/a/../b"))
    narrow = with_change(wide, change("narrow", below="/a/x/"))
    assert holds(narrow, effect("/a/x/1"))
    assert not holds(narrow, effect("/a/c"))


@pytest.mark.parametrize(
    ("action", "grant", "below"),
    [
        ("revoke", "g9", ""),
        ("narrow", "g2", "/z/"),
        ("widen", "g2", "/z/"),
        ("widen", "g2", "a"),
        ("widen", "g2", "/../"),
        ("narrow", "g1", "/"),
        ("widen", "g1", "/"),
    ],
)
def test_what_is_no_narrower_or_wider_is_refused(action: str, grant: str, below: str) -> None:
    with pytest.raises(GrantError):
        with_change(GIVEN, change(action, grant, below))


PATHS = st.sampled_from(["/", "/a", "/a/", "/a/b", "/a/b/c", "/a/c", "/b", "/a/../b"])


@given(below=PATHS, then=PATHS, asked=PATHS)
def test_narrowing_never_lets_more(below: str, then: str, asked: str) -> None:
    try:
        wide = with_change(GIVEN, change("widen", below=below))
        narrow = with_change(wide, change("narrow", below=then))
    except GrantError:
        return
    assert holds(wide, effect(asked)) or not holds(narrow, effect(asked))


def test_equal_questions_are_asked_once_and_answered_alike() -> None:
    one, two, other = effect(body="x"), effect(body="x", name="e2"), effect(body="y", name="e3")
    standing = asked_once((one, two, other), whole=True)
    assert standing == {"e1": "e1", "e2": "e1", "e3": "e3"}
    assert asked_once((one, other), whole=False) == {"e1": "e1", "e3": "e1"}
    answer = Answer(effect_id="e1", decision=Decision.RELEASE, reason="")
    assert with_twins({"e1": answer}, standing)["e2"].decision is Decision.RELEASE
    assert "e3" not in with_twins({"e1": answer}, standing)
