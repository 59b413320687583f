"""The undo of a closed run: its commits taken back, newest first, each whole or not at all, and a record of it.

The run's ledger is sealed and stays as it is. Beside it lies `undo.json`: what was undone and when, bound to the
seal of the ledger that it speaks of by that seal's digest, and to itself by its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from interlock import staging
from interlock.model.errors import InputError, IntegrityError
from interlock.model.phases import Phase
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.runtime import folders as runs
from interlock.runtime.folders import RunFolder
from interlock.runtime.merging_lock import workspace_lock
from interlock.runtime.story import EffectStory, Fate, RunStory, tell

if TYPE_CHECKING:
    from interlock.policy import Policy
    from interlock.runtime.sending_back import SentBack

RECORD = "undo.json"
LIMIT_BYTES = 1 << 30
"""So much disk what is kept for undos may take over all runs."""
_STAYED = frozenset({"net.read", "net.model"})
"""Requests that ask and change nothing: there is nothing of them to take back."""

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """One undo of one commit, as the record has it.

    Takes: `commit`, its number in the run; `keys`, of what was taken back; `is_whole`, whether that was the rest
    of the commit; `places`, as text.
    """

    at_ns: int
    commit: int
    keys: tuple[str, ...]
    is_whole: bool
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoReport:
    """What an undo did, or would do.

    Takes: `plans`, one a commit, newest first; `is_done`, whether the host was changed as planned; `sent`, requests
    that left and cannot be taken back; `back`, those for which the policy declares a compensation, newest first;
    `not_kept`, commits that cannot be undone: number and why; `fault`, why an older commit was not undone though a
    newer one was.
    """

    run_id: str
    plans: tuple[staging.UndoPlan, ...]
    is_done: bool
    sent: tuple[EffectStory, ...]
    not_kept: tuple[tuple[int, str], ...]
    fault: str = ""
    back: tuple[SentBack, ...] = ()


def undo(
    folder: RunFolder,
    *,
    selection: Sequence[str] = (),
    except_changed: bool = False,
    dry_run: bool = False,
    note: Note,
) -> UndoReport:
    """Take back what a closed run committed, as far as the host still is as the run left it.

    Takes: `selection`, places as text, or ids of file effects, () for all; `except_changed`, whether what is
    unchanged goes back where other things were changed since: else nothing does; `dry_run`, whether it is only said.
    Raises: InputError, where there is nothing to undo; ConflictError, MergeFailedError or StuckError from the merge.
    """
    story = _closed(folder)
    sent = tuple(
        record
        for record in story.effects.values()
        if record.effect.change is None
        and record.effect.operation not in _STAYED
        and record.fate in (Fate.SENT, Fate.UNKNOWN)
    )
    back = _back(folder, sent)
    compensated = {one.record.effect.id for one in back}
    sent = tuple(record for record in sent if record.effect.id not in compensated)
    back, selection, only_requests = _chosen(back, selection)
    is_open = any(one.is_open for one in back)
    if only_requests:
        return UndoReport(run_id=folder.run_id, plans=(), is_done=False, sent=sent, not_kept=(), back=back)
    with workspace_lock([item.lower for item in folder.folders], note):
        finish_cut_off(folder)
        done = read_record(folder)
        kept = staging.kept(folder.at(runs.UNDO))
        open_ones = [one for one in reversed(kept) if not one.why_not]
        not_kept = tuple((one.number, one.why_not) for one in kept if one.why_not and not one.is_undone)
        if not open_ones and is_open:
            return UndoReport(
                run_id=folder.run_id, plans=(), is_done=False, sent=sent, not_kept=not_kept, back=back
            )
        if not open_ones:
            raise _nothing_left(folder, kept=kept, done=done, not_kept=not_kept, sent=sent, back=back)
        places = _places(story, selection)

        def plan(one: staging.Kept, later: Sequence[staging.Kept]) -> staging.UndoPlan:
            keys = frozenset(key for past in done if past.commit == one.number for key in past.keys)
            return staging.plan_undo(
                one, done=keys, selection=places, except_changed=except_changed, later=later
            )

        plans = tuple(plan(one, open_ones[:index]) for index, one in enumerate(open_ones))
        report = UndoReport(
            run_id=folder.run_id, plans=plans, is_done=False, sent=sent, not_kept=not_kept, back=back
        )
        if not any(one.steps or one.changed for one in plans):
            if is_open:
                return report
            named = ", ".join(f"`{word}`" for word in selection)
            raise InputError(
                f"there is nothing of the run {folder.run_id} to undo" + (f" at {named}" if named else ""),
                hint=f"see what it would take back: interlock undo {folder.run_id} --dry-run",
            )
        if dry_run or (any(one.changed for one in plans) and not except_changed):
            return report
        return _perform(folder, report, open_ones, plan)


def send_back(folder: RunFolder, report: UndoReport, note: Note) -> UndoReport:
    """Send the compensations of a report that are open, each at most once; the caller holds the run's lock.

    Raises: InputError, for a secret that is not there: then nothing was sent.
    """
    from dataclasses import replace

    from interlock.runtime import sending_back

    return replace(report, back=sending_back.send_back(folder, _policy(folder), report.back, note))


def _back(folder: RunFolder, sent: Sequence[EffectStory]) -> tuple[SentBack, ...]:
    if not sent:
        return ()
    policy = _policy(folder)
    if not policy.network.compensations:
        return ()
    from interlock.runtime import sending_back

    return sending_back.look(folder, policy, sent)


def _policy(folder: RunFolder) -> Policy:
    """Return the policy under which a run was, by its ledger."""
    from interlock.runtime import history

    policy = history.read(folder.path).state.policy
    assert policy is not None  # something was sent under it
    return policy


def _chosen(
    back: tuple[SentBack, ...], selection: Sequence[str]
) -> tuple[tuple[SentBack, ...], Sequence[str], bool]:
    """Return the requests and the places that a selection names, and whether it names requests alone."""
    if not selection:
        return back, selection, False
    named = {
        word for word in selection for one in back if word in (one.record.effect.id, one.record.effect.object)
    }
    places = tuple(word for word in selection if word not in named)
    chosen = tuple(one for one in back if {one.record.effect.id, one.record.effect.object} & named)
    return chosen, places, not places


def _perform(
    folder: RunFolder,
    report: UndoReport,
    kept: Sequence[staging.Kept],
    plan: Callable[[staging.Kept, Sequence[staging.Kept]], staging.UndoPlan],
) -> UndoReport:
    from dataclasses import replace

    plans: list[staging.UndoPlan] = []
    for number, one in enumerate(kept):
        # an older one is looked at again: what the newer ones touched could not be before
        now = report.plans[0] if number == 0 else plan(one, ())
        plans.append(now)
        if now.wal is not None:
            places = [str(step.place) for step in now.steps]
            staging.perform_undo(now, folder.at(runs.UNDO), {"at_ns": str(time.time_ns()), "places": places})
            finish_cut_off(folder)
        elif now.changed:
            fault = f"commit {one.number} was not undone: `{now.changed[0].place}`: {now.changed[0].reason}"
            return replace(report, plans=tuple(plans), is_done=number > 0, fault=fault)
    return replace(report, plans=tuple(plans), is_done=True)


def finish_cut_off(folder: RunFolder) -> None:
    """Write down an undo that is done, and remove what it needs no more; end one that a crash cut off.

    Raises: StuckError, where it can be neither finished nor taken back yet; IntegrityError.
    """
    top = folder.at(runs.UNDO)
    pending = staging.pending_undo(top)
    if pending is None:
        return
    noted = pending.note
    places = noted.get("places")
    _add(
        folder,
        Undone(
            at_ns=int(str(noted.get("at_ns", "0"))),
            commit=pending.number,
            keys=pending.keys,
            is_whole=pending.is_whole,
            places=tuple(str(place) for place in places) if isinstance(places, list) else (),
        ),
    )
    (mine,) = (one for one in staging.kept(top) if one.number == pending.number)
    staging.close_undo(top, mine)


def read_record(folder: RunFolder) -> tuple[Undone, ...]:
    """Return what of a run was undone so far, oldest first.

    Raises: IntegrityError, where the record is damaged or speaks of another ledger.
    """
    try:
        with open(folder.at(RECORD), encoding="utf-8") as file:
            document = json.load(file)
        body = {key: document[key] for key in ("format", "run_id", "seal_sha256", "undone")}
        good = document["sha256"] == _digest(body) and body["seal_sha256"] == _seal_digest(folder)
        undone = tuple(
            Undone(
                at_ns=int(one["at_ns"]),
                commit=int(one["commit"]),
                keys=tuple(one["keys"]),
                is_whole=bool(one["is_whole"]),
                places=tuple(one["places"]),
            )
            for one in body["undone"]
        )
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError):
        good, undone = False, ()
    if not good:
        raise IntegrityError(
            f"the record of what was undone of the run {folder.run_id} is damaged",
            hint=f"look at it by hand: {folder.at(RECORD)}; the ledger beside it is not touched by it",
        )
    return undone


def undone_line(folder: RunFolder) -> str:
    """Say in one line when a run was undone, "" where it never was. Raises: IntegrityError."""
    undone = read_record(folder)
    if not undone:
        return ""
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(undone[-1].at_ns // 10**9))
    left = any(not one.why_not for one in staging.kept(folder.at(runs.UNDO)))
    count = sum(len(one.places) for one in undone)
    return f"{'in part, last' if left else ''} at {at}: {count} places".strip()


def room_bytes(folder: RunFolder) -> int:
    """Return how much of a run's next commit may be kept, so that all runs together stay below the limit."""
    used = sum(
        staging.kept_bytes(os.path.join(runs.runs_folder(), run_id, runs.UNDO))
        for run_id in runs.all_run_ids()
    )
    mine = staging.kept_bytes(folder.at(runs.UNDO))
    return max(1, min(LIMIT_BYTES - used, staging.KEEP_BYTES - mine))


def _closed(folder: RunFolder) -> RunStory:
    """Return the story of a run that has committed something and is closed."""
    story = tell(folder.path)
    committed = [one for one in story.effects.values() if one.fate in (Fate.COMMITTED, Fate.SENT)]
    if not folder.sealed or story.phase is not Phase.CLOSED:
        raise InputError(
            f"the run {folder.run_id} is open still: what it staged is not all on the host yet",
            hint=f"end it first: interlock apply {folder.run_id}, or interlock discard {folder.run_id}",
        )
    if not committed:
        dropped = any(one.fate is Fate.DISCARDED for one in story.effects.values())
        raise InputError(
            f"the run {folder.run_id} was discarded: it changed nothing"
            if dropped
            else f"the run {folder.run_id} committed nothing",
            hint=f"see what it did: interlock show {folder.run_id}",
        )
    return story


def _nothing_left(
    folder: RunFolder,
    *,
    kept: Sequence[staging.Kept],
    done: Sequence[Undone],
    not_kept: Sequence[tuple[int, str]],
    sent: Sequence[EffectStory],
    back: Sequence[SentBack],
) -> InputError:
    shown = f"see what it did: interlock show {folder.run_id}"
    if done and kept and not not_kept:
        return InputError(
            f"the run {folder.run_id} is undone already, {undone_line(folder)}",
            hint="an undo cannot be undone; run the command again",
        )
    if not_kept:
        why = "; ".join(f"commit {number}: {reason}" for number, reason in not_kept)
        return InputError(f"the run {folder.run_id} cannot be undone: {why}", hint=shown)
    if back and not kept and all(one.is_done for one in back) and not sent:
        return InputError(
            f"the run {folder.run_id} is undone already: what it sent was taken back", hint=shown
        )
    if back:
        why = "; ".join(f"{one.record.effect.id}: {one.why}" for one in back)
        return InputError(f"the run {folder.run_id} has nothing left to undo: {why}", hint=shown)
    if sent:
        return InputError(
            f"the run {folder.run_id} changed no file, and what it sent cannot be taken back", hint=shown
        )
    return InputError(f"the run {folder.run_id} cannot be undone: nothing was kept for it", hint=shown)


def _places(story: RunStory, selection: Sequence[str]) -> tuple[Place, ...]:
    names = sorted((item.name for item in story.folder.folders), key=len, reverse=True)
    out: list[Place] = []
    for word in selection:
        effect = story.effects.get(word)
        if effect is not None and effect.effect.change is not None:
            out.append(effect.effect.change.place)
            continue
        root = next((name for name in names if word.startswith(f"{name}:")), None)
        if root is None:
            raise InputError(
                f"`{word}` is no place in a staged folder",
                hint="name files and folders, or requests for which the policy declares a compensation",
            )
        out.append(Place(root=root, path=word[len(root) + 1 :]))
    return tuple(out)


def _add(folder: RunFolder, one: Undone) -> None:
    """Write an undo down, durably; the same one twice is one."""
    undone = read_record(folder)
    if one in undone:
        return
    body: dict[str, object] = {
        "format": 1,
        "run_id": folder.run_id,
        "seal_sha256": _seal_digest(folder),
        "undone": [
            {
                "at_ns": str(item.at_ns),
                "commit": item.commit,
                "keys": list(item.keys),
                "is_whole": item.is_whole,
                "places": list(item.places),
            }
            for item in (*undone, one)
        ],
    }
    text = json.dumps({**body, "sha256": _digest(body)}, indent=1) + "\n"
    staging.write_file(folder.at(RECORD), text.encode(), durable=True)


def _digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _seal_digest(folder: RunFolder) -> str:
    with open(folder.at("ledger", "seal.dsse.json"), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
