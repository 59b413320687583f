"""How an effect is tied to the calls that the model announced.

Source: ours (docs/correlation.md).
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from interlock.model.effects import ChangeKind, Channel, Effect, FileChange
from interlock.model.places import HOME, Place
from interlock.model.records import changed, dataclass
from interlock.model.verdicts import Check, CheckOutcome, Decision, Guard, Verdict
from interlock.policy.announced import SPAN, Announced, Moment, Under
from interlock.policy.announced_layers import entry_of, row_at
from interlock.policy.announced_names import ABOVE, folders_above, key_of
from interlock.policy.declaration import STATE_PREFIX, Policy
from interlock.policy.globs import matcher
from interlock.policy.grants import find_grant
from interlock.policy.lens import Audit, Mismatch
from interlock.policy.network import SAFE_METHODS
from interlock.policy.provenance import Knowledge


class Relation(Enum):
    """How an effect stands to the model's calls, from the closest on."""

    OWN = "own"
    """The agent program's own: its exchanges with the model, its state, its service."""
    ANNOUNCED = "announced"
    """A call that was under way names it."""
    COVERED = "covered"
    """A call that was under way may do anything, and does not name it."""
    UNKNOWN = "unknown"
    """It cannot be told which calls were under way."""
    DIFFERS = "differs"
    """What was under way says that it does something else."""
    UNANNOUNCED = "unannounced"
    """No call was under way."""


_WORSE = {relation: number for number, relation in enumerate(Relation)}
_LOOSE_PARTS = 16
"""So many parts of a path are looked for among relative names that may begin anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """How an effect is tied. Takes: `call`, the one that is meant, None for none; `why`, of UNKNOWN, in words."""

    relation: Relation
    call: Under | None = None
    why: str = ""


_OWN = Tie(relation=Relation.OWN)
_NONE = Tie(relation=Relation.UNANNOUNCED)
UNSEEN = Tie(relation=Relation.UNKNOWN, why="no exchange with a model was seen")
_OVER = Tie(relation=Relation.UNKNOWN, why="there were more exchanges with the model than are kept")
_LOST = Tie(relation=Relation.UNKNOWN, why="it was not seen when it was written")
_FLYING = Tie(relation=Relation.UNKNOWN, why="an answer of the model was still under way")


class Ties:
    """Ties effects to calls, as far as a run went. Takes: what is known of the run."""

    def __init__(self, policy: Policy, knowledge: Knowledge) -> None:
        self.policy = policy
        self._announced: Announced = knowledge.announced
        self._grants = knowledge.grants
        self._places = knowledge.places
        self._within: dict[Moment, _Within] = {}
        lens = policy.lens
        # Where one of these is asked about, the boundary holds an answer's calls until they are known here.
        self._holds = lens.defers or lens.audit is Audit.ALL
        self._home = matcher(policy.own_home, wide=False) if policy.own_home else None

    def of(self, effect: Effect) -> Tie | None:
        """Return how an effect is tied; None for one that is an announced call itself, or a tool's of no such run."""
        announced = self._announced
        if effect.tool is not None and (effect.tool.exchange or not announced.seen):
            return None
        if self._is_own(effect):
            return _OWN
        if not announced.seen:
            return UNSEEN
        if announced.over:
            return _OVER
        if effect.change is not None:
            return self._of_change(effect.change)
        return self._of_now(effect)

    def granted(self, effect: Effect) -> bool:
        """Say whether the principal released the same before: each of its steering values, so the whole of it."""
        return bool(effect.steering) and all(
            find_grant(self._grants, effect, value.role, value.text) is not None for value in effect.steering
        )

    def _is_own(self, effect: Effect) -> bool:
        """Say whether an effect is the agent program's own, and no more than data."""
        if effect.operation == "net.model":
            return True
        if effect.facets:
            return False
        if effect.change is not None:
            if effect.change.hazards:
                return False
            places = (effect.change.place, *((effect.change.source,) if effect.change.source else ()))
            return all(self._is_own_place(place) for place in places)
        request = effect.request
        return (
            request is not None
            and effect.message is None
            and request.method in SAFE_METHODS
            and any(
                rule.serves(request.port) and rule.takes(request.path)
                for rule in self.policy.own_hosts.of(request.host)
            )
        )

    def _is_own_place(self, place: Place) -> bool:
        if place.root.startswith(STATE_PREFIX):
            return True
        return place.root == HOME and self._home is not None and self._home.fullmatch(place.path) is not None

    def _of_now(self, effect: Effect) -> Tie:
        announced = self._announced
        tie = _tied(effect, announced.open, announced.lingering)
        if tie.relation in (Relation.ANNOUNCED, Relation.COVERED):
            return tie
        if announced.asked and not self._holds:
            return _FLYING
        if announced.unread:
            return Tie(
                relation=Relation.UNKNOWN, why=f"the model's last answer was not read: {announced.unread}"
            )
        return tie

    def _of_change(self, change: FileChange) -> Tie:
        tie = self._of_place(change, change.place)
        if (
            change.kind is ChangeKind.RENAME
            and change.source is not None
            and tie.relation is not Relation.ANNOUNCED
        ):
            return min(tie, self._of_place(change, change.source), key=_badness)
        return tie

    def _of_place(self, change: FileChange, place: Place) -> Tie:
        written = self._places.written_at(place)
        if written is None:
            return self._of_any_time(place)
        if not written.moments:
            return _NONE  # before the first exchange
        return max((self._at(place, moment) for moment in written.moments), key=_badness)

    def _at(self, place: Place, moment: Moment) -> Tie:
        within = self._within.get(moment)
        if within is None:
            ended = self._announced.ended
            gone = [
                (one, (at := entry_of(ended, one.number)) is not None and at <= moment[0])
                for one in self._under_way(moment)
            ]
            within = self._within[moment] = _Within(gone)
        return within.of(place)

    def _under_way(self, moment: Moment) -> Iterator[Under]:
        """Yield the calls that may have been under way then, the last that became known first."""
        announced = self._announced
        first, last = moment
        first = max(first, last - SPAN)
        found: dict[int, Under] = {}
        late: set[str] = set()

        def goes_on(one: Under) -> bool:
            ended = entry_of(announced.ended, one.number)
            return ended is None or ended > first

        for number in range(first, min(last, announced.present) + 1):
            era = row_at(announced.eras, number)
            found.update((one.number, one) for one in era.lingering)
            found.update((one.number, one) for one in era.open if goes_on(one))
            late.update(era.flying)
        for exchange in late:
            # The agent may have acted on a call before its answer was whole.
            told = entry_of(announced.told, exchange)
            if told is not None and told > last:
                era = row_at(announced.eras, told)
                found.update(
                    (one.number, one) for one in era.open if one.exchange == exchange and goes_on(one)
                )
        yield from (found[number] for number in sorted(found, reverse=True))

    def _of_any_time(self, place: Place) -> Tie:
        """Tie what nobody saw being written: a folder, what a moved folder took along."""
        announced = self._announced
        key = key_of(place)
        one = entry_of(announced.names, key) or entry_of(announced.names, key + ABOVE)
        if one is None:
            above = (entry_of(announced.names, folder) for folder in folders_above(key))
            one = next((found for found in above if found is not None and found.named.wide), None)
        if one is not None:
            return Tie(relation=Relation.ANNOUNCED, call=one)
        if announced.last_open is not None:
            return Tie(relation=Relation.COVERED, call=announced.last_open)
        return _LOST if announced.unseen else _NONE


class _Within:
    """The calls of one moment, by what they name. Takes: each with whether it had its result before."""

    def __init__(self, calls: Iterable[tuple[Under, bool]]) -> None:
        self._keys: dict[str, Under] = {}
        self._wide: dict[str, Under] = {}
        self._loose: dict[str, Under] = {}
        self._else = _NONE
        for one, ended in calls:
            named = one.named
            for table, names in (
                (self._keys, named.keys),
                (self._keys, named.above),
                (self._loose, named.loose),
            ):
                for name in names:
                    table.setdefault(name, one)
            for name in named.keys if named.wide else ():
                self._wide.setdefault(name, one)
            if named.open:
                self._else = min(self._else, Tie(relation=Relation.COVERED, call=one), key=_badness)
            elif not ended and not named.idle:
                self._else = min(self._else, Tie(relation=Relation.DIFFERS, call=one), key=_badness)

    def of(self, place: Place) -> Tie:
        """Tie what was written then at a place."""
        key = key_of(place)
        one = self._keys.get(key) or self._keys.get(key + ABOVE)
        if one is None and self._wide:
            one = next((found for folder in folders_above(key) if (found := self._wide.get(folder))), None)
        if one is None and self._loose:
            one = self._loosely(place.path)
        return self._else if one is None else Tie(relation=Relation.ANNOUNCED, call=one)

    def _loosely(self, path: str) -> Under | None:
        parts = path.split("/")
        for end in range(len(parts), 0, -1):
            for start in range(max(0, end - _LOOSE_PARTS), end):
                if (found := self._loose.get("/".join(parts[start:end]))) is not None:
                    return found
        return None


def _tied(effect: Effect, under_way: Iterable[Under], lingering: Iterable[Under]) -> Tie:
    best = _NONE
    under_way = tuple(under_way)
    for one in (*reversed(under_way), *reversed(tuple(lingering))):
        named = one.named
        if effect.request is not None and named.names_request(effect.request):
            return Tie(relation=Relation.ANNOUNCED, call=one)
        if (
            effect.channel is Channel.TOOL
            and effect.tool is not None
            and _is_tool(named.tool, effect.tool.tool)
        ):
            return Tie(relation=Relation.ANNOUNCED, call=one)
        if named.open:
            best = min(best, Tie(relation=Relation.COVERED, call=one), key=_badness)
        elif not named.idle and one in under_way:
            best = min(best, Tie(relation=Relation.DIFFERS, call=one), key=_badness)
    return best


def _is_tool(announced: str, tool: str) -> bool:
    """Say whether an announced name is a server's tool, as agents write it: `mcp__server__tool`, `server_tool`."""
    return announced == tool or announced.endswith(("__" + tool, "_" + tool, "/" + tool, "." + tool))


def _badness(tie: Tie) -> int:
    return _WORSE[tie.relation]


def with_ties(ties: Ties, effects: Sequence[Effect], verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts, a release deferred where the policy asks about how its effect is tied.

    Holds: nothing but a release changes, and only into a deferral; what the principal granted is not asked again.
    """
    return tuple(_asked(ties, effect, verdict) for effect, verdict in zip(effects, verdicts, strict=True))


def _asked(ties: Ties, effect: Effect, verdict: Verdict) -> Verdict:
    if verdict.decision is not Decision.RELEASE:
        return verdict
    key, reason = mismatch(ties.policy, ties.of(effect))
    if not key or ties.granted(effect):
        return verdict
    check = Check(guard=Guard.PROVENANCE, outcome=CheckOutcome.UNDECIDED, rules=(key,), reason=reason)
    return changed(verdict, decision=Decision.DEFER, checks=(*verdict.checks, check))


def mismatch(policy: Policy, tie: Tie | None) -> tuple[str, str]:
    """Return the key of the policy that has an effect deferred, and why in words; `""` twice for none.

    Holds: the words hold a tool's name and a call's id, nothing else that a model wrote.
    """
    lens = policy.lens
    if tie is None:
        return "", ""
    call = "" if tie.call is None else _plainly(tie.call)
    match tie.relation:
        case Relation.UNANNOUNCED if lens.unannounced is Mismatch.DEFER:
            return "lens.unannounced", "no call of the model's announced it: none was under way"
        case Relation.UNKNOWN if lens.unannounced is Mismatch.DEFER:
            return "lens.unannounced", f"no call of the model's is known to have announced it: {tie.why}"
        case Relation.DIFFERS if lens.differs is Mismatch.DEFER:
            return "lens.differs", f"the model's call {call} says that it does something else"
        case Relation.COVERED if lens.covered is Mismatch.DEFER:
            return "lens.covered", f"the model's call {call} does not name it"
        case _:
            return "", ""


_SHOWN = 64


def _plainly(call: Under) -> str:
    tool = "".join(char for char in call.named.tool if char.isalnum() or char in "_.-/")[:_SHOWN] or "?"
    call_id = "".join(char for char in call.named.call_id if char.isalnum() or char in "_.-")[:_SHOWN]
    return f"`{tool}`" + (f" ({call_id})" if call_id else "")
