"""Vectors of a panel of oracles: who of it said what is a part of its answer, and nothing else can stand there."""

from collections.abc import Iterator
from dataclasses import replace

from tests.vectors.cases_models import MAKEFILE
from tests.vectors.cases_replay import given_up
from tests.vectors.edits import Vector, honest, tampered
from tests.vectors.folded import folded
from tests.vectors.forge import Item, tar

from interlock.model import events as ev
from interlock.model.verdicts import Decision
from interlock.monitor import event_from_payload

_PANEL = 'all(strict, "answers:a,b.yaml")'


def _answered() -> list[Item]:
    """A change that policy deferred; one member of the panel releases it, the other refuses."""
    told: list[ev.Event] = [event_from_payload(item.payload) for item in given_up()[:3]]
    told.append(ev.ChangesListed(changes=(MAKEFILE,), last=True))
    told.append(
        ev.OracleAnswered(
            oracle=_PANEL,
            answers=(ev.Answer(effect_id="e1", decision=Decision.REFUSE, reason="strict: nobody was asked"),),
            votes=(
                ev.Vote(by="answers:a,b.yaml", decision=Decision.RELEASE, reason="line 1", effects=("e1",)),
                ev.Vote(by="strict", decision=Decision.REFUSE, reason="nobody was asked", effects=("e1",)),
            ),
        )
    )
    told.append(ev.ScopeDiscarded())
    return folded(told)


def of_panels() -> Iterator[Vector]:
    """As it was; and with a vote that holds a field more."""
    options = {"replay": "yes"}
    items = _answered()
    yield Vector(
        name="panel",
        why="a panel of two oracles answered, with who said what",
        content=tar(honest(items=items, heads=(3,), outcome="nothing-committed").files()),
        verdict="complete",
        reason="ok",
        options=options,
    )
    seq = next(at for at, item in enumerate(items) if item.payload.get("event") == "oracle-answered")
    votes = items[seq].payload["votes"]
    assert isinstance(votes, list)
    more = [{**votes[0], "weight": 2}, *votes[1:]]
    items[seq] = replace(items[seq], payload={**items[seq].payload, "votes": more})
    files = honest(items=items, heads=(3,)).files()
    yield tampered(
        "panel-vote", "replay-mismatch", files, seq, "signed, but a vote has an unknown field", **options
    )
