"""What was read until now is learnt before anything leaves: it counts for what leaves now."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from interlock.model import events as ev
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.runtime.reads import sensitive_places

if TYPE_CHECKING:
    from interlock.runtime.performer import Performer

_READS_AT_ONCE = 256


class Sees(Protocol):
    """Who sees what the command reads and writes: its sandbox, or nobody."""

    def catch_up(self) -> None:
        """Tell what was read and written until now."""
        ...


class CatchingUp:
    """Has the core learn what the command read. Takes: `feed`, which takes an event and tells a lost ledger."""

    def __init__(self, performer: Performer, sandbox: Sees, feed: Callable[[ev.Event], None]) -> None:
        self._performer = performer
        self._sandbox = sandbox
        self._feed = feed
        self._may_list = True

    def catch_up(self) -> None:
        """Learn what was read until now."""
        self._sandbox.catch_up()
        knowledge = self._performer.state.knowledge
        if knowledge is None or knowledge.places.lost:
            return  # nothing that could be listed makes up for a damaged label store
        policy = self._performer.state.policy
        if policy is not None and policy.detects:
            return  # what lies anywhere may have been found sensitive: no listing of places tells all of it
        if knowledge.lost_level > Confidentiality.PUBLIC and self._may_list:
            self._list_sensitive()

    def _list_sensitive(self) -> None:
        """Without file events any sensitive place may have been read: record them all, so that their values are known.

        What cannot be listed in time keeps its level present in everything that leaves.
        """
        policy, knowledge = self._performer.state.policy, self._performer.state.knowledge
        assert policy is not None
        assert knowledge is not None
        places = knowledge.places

        def level_of(place: Place) -> Confidentiality:
            return max(policy.level_of(place), places.level_of(place))

        reads = sensitive_places(self._performer.folder.folders, level_of, policy.sandbox.expose)
        if reads is None:
            self._may_list = False
            return
        for start in range(0, len(reads), _READS_AT_ONCE):
            self._feed(ev.ActivityObserved(reads=reads[start : start + _READS_AT_ONCE], writes=()))
        self._feed(ev.ActivityLost(reason="no file events: what is sensitive counts as read", listed=True))
