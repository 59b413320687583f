"""Which calls of the model's were under way when: kept by the fold, so that an effect can be tied to one.

Time is told in *eras*: one begins whenever an exchange with a model is asked, a call becomes known, or a call has its
result. A request happens in the present era. A write is told later, so it happened in one of several: it had not been
seen when the last era began of which all file events were read, and has been seen now.
A call is under way from its exchange's question (the agent may act before the answer has ended) until the question that
brings its result; where the calls of an answer are held until they are known, from the era in which they are known.
Source: ours (docs/correlation.md).
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from interlock.model.actions import AnnouncedCall
from interlock.model.activity import ActivityObserved
from interlock.model.places import Root
from interlock.model.records import changed, dataclass
from interlock.policy.announced_layers import Rows, Table, appended, row_at, with_entries

if TYPE_CHECKING:
    from interlock.policy.announced_names import Named

MAX_OPEN = 256
"""So many calls are under way at once, and so many linger; of more the oldest are left out."""
MAX_ASKED = 256
"""So many exchanges are under way at once; of more the oldest are taken as ended."""
MAX_ERAS = 200_000
MAX_NAMES = 1_000_000
"""Of all calls together; a call that comes when there are more may do anything."""
MAX_FOLDERS = 6
MAX_MOMENTS = 8
"""So many times of writes are kept of a place; of more the two oldest are taken as one."""
SPAN = 256
"""So many eras a write is looked for in; where it may be older, only the last of them count."""

Moment = tuple[int, int]
"""The first and the last era in which something may have happened."""


def with_moment(moments: tuple[Moment, ...], added: Moment) -> tuple[Moment, ...]:
    """Return the times of a place's writes with one more."""
    if moments and moments[-1] == added:
        return moments
    if len(moments) < MAX_MOMENTS:
        return (*moments, added)
    return ((moments[0][0], moments[1][1]), *moments[2:], added)


def _went(folders: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    """Return where shells went, the last at the end."""
    if not now:
        return folders
    return (*(folder for folder in folders if folder not in now), *now)[-MAX_FOLDERS:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """A call under way.

    Takes: `number`, from 0 in the order in which they became known; `since`, its first era; `effect_id`, of a call that
    is an effect of its own.
    """

    number: int
    named: "Named"
    exchange: str
    since: int
    effect_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """What held from one moment to the next.

    Takes: `mark`, the last order of file events that was seen before it; `whole`, whether all file events until then
    were read; `open`, the calls under way; `lingering`, calls that had their result and may go on; `flying`, exchanges
    that were asked and whose calls are not known yet.
    """

    mark: int = 0
    whole: bool = True
    open: tuple[Under, ...] = ()
    lingering: tuple[Under, ...] = ()
    flying: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """The calls of a run, as far as it went.

    Takes: `open` and `lingering`, as in an `Era`; `asked`, exchanges under way, each with its era; `told`, in which era
    an exchange's calls became known; `ended`, in which era a call had its result; `names`, of all calls, by key, the
    last that names it; `order`, the last order of file events; `folders`, where shells went; `unread`, why the calls of
    the last answer are not all known; `unseen`, whether file events were lost; `over`, whether there were more eras
    than are kept; `last_open`, the last call that might do anything.
    Holds: a copy shares all that did not change.
    """

    roots: tuple[Root, ...] = ()
    eras: Rows[Era] = ((Era(),),)
    present: int = 0
    open: tuple[Under, ...] = ()
    lingering: tuple[Under, ...] = ()
    count: int = 0
    kept: int = 0
    order: int = 0
    seen: bool = False
    asked: tuple[tuple[str, int], ...] = ()
    told: Table[str, int] = ()
    ended: Table[int, int] = ()
    names: Table[str, Under] = ()
    folders: tuple[str, ...] = ()
    unread: str = ""
    unseen: bool = False
    over: bool = False
    last_open: Under | None = None

    @classmethod
    def started(cls, roots: tuple[Root, ...]) -> "Announced":
        """Return what is known when the boundary stands."""
        return cls(roots=roots)

    def moment_of(self) -> Callable[[int], Moment]:
        """Return what tells when a write happened that is seen now, from the order of its opening."""
        known: list[tuple[int, Moment]] = []
        era = self.present

        def moment(opened: int) -> Moment:
            nonlocal era
            for mark, found in known:
                if mark < opened:
                    return found
            while era > 0 and self.present - era < SPAN:
                here = row_at(self.eras, era)
                era -= 1
                if here.whole:
                    known.append((here.mark, (era + 1, self.present)))
                    if here.mark < opened:
                        return known[-1][1]
            return era, self.present

        return moment

    def with_activity(self, activity: ActivityObserved) -> "Announced":
        """Return what is known after file events: their order alone."""
        last = max(
            activity.reads[-1].closed if activity.reads else 0,
            activity.writes[-1].closed if activity.writes else 0,
        )
        return changed(self, order=last) if last > self.order else self

    def with_unseen(self) -> "Announced":
        """Return what is known where file events were lost."""
        return self if self.unseen else changed(self, unseen=True)

    def with_asked(self, exchange: str) -> "Announced":
        """Return what is known when an exchange with a model has left: all file events until then were read."""
        asked = (*self.asked, (exchange, self.present + 1))[-MAX_ASKED:]
        return changed(self, asked=asked, seen=True)._next(whole=True)

    def with_answered(self, exchange: str) -> "Announced":
        """Return what is known when an exchange has ended."""
        left = tuple([one for one in self.asked if one[0] != exchange])
        return changed(self, asked=left) if len(left) != len(self.asked) else self

    def with_told(
        self, exchange: str, calls: Iterable[AnnouncedCall], results: Iterable[str], note: str = ""
    ) -> "Announced":
        """Return what is known when an answer was read: its calls, and whose results its question brought."""
        era = next((era for known, era in self.asked if known == exchange), self.present)
        closing = set(results)
        closed = [one for one in self.open if one.named.call_id in closing and not one.effect_id]
        held = {(one.exchange, one.named.call_id) for one in self.open if one.effect_id}
        after = self._closed(closed, era)
        for call in calls:
            if (exchange, call.call_id) not in held:
                after = after._opened(call, exchange, era)
        told = with_entries(self.told, {exchange: self.present + 1})
        return changed(after, told=told, unread=note)._next()

    def with_call(self, call: AnnouncedCall, exchange: str, effect_id: str) -> "Announced":
        """Return what is known when a call that was held has been let through."""
        return self._opened(call, exchange, self.present + 1, effect_id)._next()

    def with_result(self, effect_id: str) -> "Announced":
        """Return what is known when such a call has its result."""
        closed = [one for one in self.open if one.effect_id == effect_id]
        return self._closed(closed, self.present + 1)._next() if closed else self

    def _opened(self, call: AnnouncedCall, exchange: str, era: int, effect_id: str = "") -> "Announced":
        from interlock.policy.announced_names import Naming, name_call

        named = name_call(Naming.of(self.roots), call, self.folders, full=self.kept > MAX_NAMES)
        one = Under(number=self.count, named=named, exchange=exchange, since=era, effect_id=effect_id)
        return changed(
            self,
            open=(*self.open, one)[-MAX_OPEN:],
            count=self.count + 1,
            kept=self.kept + len(named.keys) + len(named.above) + len(named.loose),
            names=with_entries(self.names, dict.fromkeys((*named.above, *named.keys), one)),
            folders=_went(self.folders, named.folders),
            last_open=one if named.open else self.last_open,
        )

    def _closed(self, closed: Iterable[Under], era: int) -> "Announced":
        gone = {one.number for one in closed}
        if not gone:
            return self
        # What yields goes on until the next call has its result, unless that one waits for it.
        polls = any(one.named.polls for one in self.open)
        stays = [one for one in self.lingering if one.named.lingers or polls]
        stays += [one for one in self.open if one.number in gone and (one.named.lingers or one.named.yields)]
        return changed(
            self,
            open=tuple([one for one in self.open if one.number not in gone]),
            lingering=tuple(stays[-MAX_OPEN:]),
            ended=with_entries(self.ended, dict.fromkeys(gone, era)),
        )

    def _next(self, *, whole: bool = False) -> "Announced":
        """Begin an era."""
        if self.present >= MAX_ERAS:
            return self if self.over else changed(self, over=True)
        era = Era(
            mark=self.order,
            whole=whole,
            open=self.open,
            lingering=self.lingering,
            flying=tuple([known for known, _ in self.asked]),
        )
        return changed(self, eras=appended(self.eras, era), present=self.present + 1)
