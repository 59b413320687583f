"""Check nodes: a request, which is decided alone, is written as it would be in a batch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.evidence.encoding import canonical
from interlock.model import commands as cmd
from interlock.model.verdicts import Check, CheckOutcome, Decision, Derivation, Guard, Verdict
from interlock.monitor.state import State
from interlock.monitor.writing import Writing, _checks_of_all, check_nodes

CHECKS = st.builds(
    Check,
    guard=st.sampled_from(Guard),
    outcome=st.sampled_from(CheckOutcome),
    rules=st.sampled_from([(), ("a",), ("a", "b")]),
    reason=st.sampled_from(["", "so"]),
)
DERIVATIONS = st.builds(
    Derivation,
    role=st.just("host"),
    value=st.just("x.test"),
    rule=st.just("policy-host"),
    node=st.integers(0, 3),
    start=st.integers(0, 3),
    end=st.integers(0, 3),
)
IN_TURN = {guard: turn for turn, guard in enumerate(Guard)}
VERDICTS = st.builds(
    Verdict,
    effect_id=st.just("e7"),
    decision=st.sampled_from(Decision),
    checks=st.lists(CHECKS, max_size=4).map(tuple)
    | st.lists(CHECKS, max_size=6, unique_by=lambda check: check.guard).map(
        lambda checks: tuple(sorted(checks, key=lambda check: IN_TURN[check.guard]))
    ),
    derivations=st.lists(DERIVATIONS, max_size=2).map(tuple),
)


def written(out: Writing) -> list[tuple[object, ...]]:
    nodes = [command.node for command in out.commands if isinstance(command, cmd.Append)]
    assert len(nodes) == len(out.commands)
    return [(n.seq, n.kind, n.parent, n.actor, n.verdict, canonical(n.payload)) for n in nodes]


@given(VERDICTS)
def test_one_verdict_is_written_to_the_byte_as_in_the_general_way(verdict: Verdict) -> None:
    straight, general = Writing(State(next_seq=40)), Writing(State(next_seq=40))
    assert check_nodes(straight, 39, (verdict,)) == _checks_of_all(general, 39, (verdict,))
    assert written(straight) == written(general)
