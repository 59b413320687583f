"""Labels of places: what an agent writes inherits the join of what was read before, in this run and in later ones.

A read counts for a write where its opening comes before the write's close: what is opened later cannot have shaped the
bytes. Of earlier runs the label store says what is kept (`LabelsKnown`); here it only makes a place less trusted or
more sensitive than the policy's globs say.
Source: KAIROS, labels that follow data; Denning 1976 (the join); the intervals, ours (DESIGN §6).
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from interlock.model.effects import FileChange
from interlock.model.events import ActivityObserved, FileRead, LabelsKnown, PlaceLabel
from interlock.model.labels import Confidentiality, Integrity, Label
from interlock.model.places import Place
from interlock.model.records import changed, dataclass
from interlock.policy.announced import Moment, with_moment
from interlock.policy.declaration import Policy

if TYPE_CHECKING:
    from interlock.policy.sensitive_fields import Part

MAX_HELD = 32
"""So many sensitive places are named in a label; the level counts in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a place that this run wrote inherited.

    Takes: `held`, how many of `PlaceLabels.held` had been read before; `moments`, when it was written, as
    `policy.announced` tells time: empty where that was before the first exchange with a model.
    """

    label: Label
    held: int = 0
    moments: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLabels:
    """The labels of places, as the trajectory so far gives them.

    Takes: `known`, of earlier runs; `lost`, whether the store of those cannot be read; `elsewhere`, what any other
    place may hold; `written`, by this run, in layers: a later one stands before an earlier one; `held`, the sensitive
    places that were read, in order.
    Holds: a label only rises; a copy shares all that did not change, and n writes cost O(n log n) in all.
    """

    known: Mapping[Place, PlaceLabel] = field(default_factory=dict)
    lost: bool = False
    elsewhere: Confidentiality = Confidentiality.PUBLIC
    written: tuple[Mapping[Place, Written], ...] = ()
    held: tuple[Place, ...] = ()

    def level_of(self, place: Place) -> Confidentiality:
        """Return the level of what an earlier run was seen to leave there, in a field or anywhere."""
        kept = self.known.get(place)
        return kept.level if kept is not None else Confidentiality.PUBLIC

    def fields_at(self, place: Place) -> tuple[str, ...]:
        """Return the fields that alone have that level, none where all of it may have it."""
        kept = self.known.get(place)
        return kept.fields if kept is not None else ()

    def may_hold(self, place: Place) -> Confidentiality:
        """Return the level of what may be there unrecognised."""
        kept, own = self.known.get(place), self.written_at(place)
        level = self.elsewhere if own is None else max(self.elsewhere, own.label.confidentiality)
        return level if kept is None else max(level, kept.may_hold, kept.level)

    def is_agents(self, place: Place) -> bool:
        """Say whether an agent wrote there, or whether nobody knows: its own output never vouches for a value."""
        return self.lost or place in self.known or self.written_at(place) is not None

    def written_at(self, place: Place) -> Written | None:
        """Return what this run's writes there inherited, None where it wrote nothing."""
        for layer in reversed(self.written):
            if (found := layer.get(place)) is not None:
                return found
        return None

    def with_known(self, event: LabelsKnown) -> "PlaceLabels":
        """Return the labels with what the store says."""
        known = {**self.known}
        for label in event.places:
            there = known.get(label.place)
            known[label.place] = label if there is None else joined(there, label)
        return changed(
            self,
            known=known,
            lost=self.lost or bool(event.lost),
            elsewhere=max(self.elsewhere, event.elsewhere),
        )

    def with_activity(
        self,
        policy: Policy,
        activity: ActivityObserved,
        before: Label,
        after: Label,
        moment: Callable[[int], Moment] | None = None,
    ) -> "PlaceLabels":
        """Return the labels after a batch of file events.

        Takes: `before` and `after`, the join of all that was read up to the batch's begin and its end; `moment`, what
        tells when a write happened, None before the first exchange with a model.
        """
        held = self._with_held(policy, activity)
        if not activity.writes:
            return self if held is self.held else changed(self, held=held)
        joins = _Joins(policy, self, activity.reads, before, after)
        layer: dict[Place, Written] = {}
        for write in activity.writes:
            label = joins.until(write.closed)
            there = layer.get(write.place) or self.written_at(write.place)
            moments = there.moments if there is not None else ()
            layer[write.place] = Written(
                label=label if there is None else there.label.join(label),
                held=len(held),
                moments=moments if moment is None else with_moment(moments, moment(write.opened)),
            )
        return changed(self, held=held, written=_layered(self.written, layer))

    def _with_held(self, policy: Policy, activity: ActivityObserved) -> tuple[Place, ...]:
        if len(self.held) >= MAX_HELD or (policy.highest_level is Confidentiality.PUBLIC and not self.known):
            return self.held
        fresh = [
            read.place
            for read in activity.reads
            if max(policy.level_of_read(read), self.level_of(read.place)) > Confidentiality.PUBLIC
            and read.place not in self.held
        ]
        return (*self.held, *dict.fromkeys(fresh))[:MAX_HELD] if fresh else self.held

    def inherited(self, policy: Policy, change: FileChange, now: Label) -> tuple[Label, tuple[Place, ...]]:
        """Return the label that a staged change takes along when it is merged, and the sensitive places behind it.

        Takes: `now`, the join of all that was read so far: it counts where no write was seen. A rename takes along what
        its old place was, by the policy and by the store.
        """
        own = self.written_at(change.place)
        label, held = (now, len(self.held)) if own is None else (own.label, own.held)
        names = self.held[:held]
        for place in (change.place, change.source):
            if place is None:
                continue
            level = max(policy.level_of(place), self.may_hold(place)) if place == change.source else None
            if level:
                label = label.join(Label(integrity=Integrity.TRUSTED, confidentiality=level))
                names = (*names, place) if place not in names else names
        return label, names[:MAX_HELD]


NO_LABELS = PlaceLabels()


def joined(first: PlaceLabel, then: PlaceLabel) -> PlaceLabel:
    """Return the conservative end of two labels of one place."""
    from interlock.policy.sensitive_fields import combined

    level, fields = combined((first.level, first.fields), (then.level, then.fields))
    return changed(
        then,
        integrity=min(first.integrity, then.integrity),
        level=level,
        fields=fields,
        may_hold=max(first.may_hold, then.may_hold),
        held=tuple(dict.fromkeys((*first.held, *then.held)))[:MAX_HELD],
    )


def parts_of_read(policy: Policy, places: PlaceLabels, read: FileRead) -> "tuple[Part, ...]":
    """Return what of a read is sensitive, by the policy and by the store: the whole, or the leaves of some fields."""
    whole = policy.whole_level_of(read)
    declared = policy.sensitive_fields_at(read.place)
    if (kept := places.level_of(read.place)) > Confidentiality.PUBLIC:
        if fields := places.fields_at(read.place):
            declared = (*declared, (kept, fields))
        else:
            whole = max(whole, kept)
    if not declared and whole is Confidentiality.PUBLIC:
        return ()
    from interlock.policy.sensitive_fields import parts_of

    return parts_of(read, whole, declared)


def label_of_read(policy: Policy, places: PlaceLabels, read: FileRead) -> Label:
    """Return the label of what a read brought in.

    Holds: never better than what the policy's globs give the place.
    """
    level = max(policy.level_of_read(read), places.level_of(read.place), places.may_hold(read.place))
    vouches = policy.trusts_read(read) and not read.staged and not places.is_agents(read.place)
    return Label(integrity=Integrity.TRUSTED if vouches else Integrity.UNTRUSTED, confidentiality=level)


class _Joins:
    """The join of all that was read before a moment of one batch."""

    def __init__(
        self,
        policy: Policy,
        places: PlaceLabels,
        reads: tuple[FileRead, ...],
        before: Label,
        after: Label,
    ) -> None:
        self._last = max((read.opened for read in reads), default=-1)
        self._after = after
        self._opened: list[int] = []
        self._labels = [before]
        self._later = (policy, places, reads)

    def until(self, closed: int) -> Label:
        """Return the join of what was opened before this order."""
        if self._last < closed:
            return self._after
        if not self._opened:
            policy, places, reads = self._later
            label = self._labels[0]
            for read in sorted(reads, key=_opened):
                label = label.join(label_of_read(policy, places, read))
                self._opened.append(read.opened)
                self._labels.append(label)
        return self._labels[bisect_left(self._opened, closed)]


def _opened(read: FileRead) -> int:
    return read.opened


def _layered(
    layers: tuple[Mapping[Place, Written], ...], top: Mapping[Place, Written]
) -> tuple[Mapping[Place, Written], ...]:
    """Put a layer on top; two of about one size become one, so that there are never many."""
    below = list(layers)
    while below and len(below[-1]) <= 2 * len(top):
        top = {**below.pop(), **top}
    return (*below, top)
