"""What `interlock run` says when the command has ended: on a terminal, or as one line of JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, safe

if TYPE_CHECKING:
    from interlock.runtime.launch import RunOutcome

_ONE_BY_ONE = 6
"""So many refusals for one reason are told one by one; more are folded."""


def tell(outcome: RunOutcome, *, verbose: bool) -> None:
    """Say on stderr what was held, refused or failed; nothing at all when everything was released."""
    ink = Ink(sys.stderr)
    resolution = outcome.performer.resolution
    lines = [f"degraded: {item}" for item in outcome.degraded]
    lines += [ink.warn(safe(item)) for item in resolution.warnings]
    if outcome.interruption:
        ended = outcome.performer.ended
        why = f": {ended.why}" if ended is not None else ""
        lines.append(ink.bad(safe(f"interrupted: {outcome.interruption}{why}")))
    lines += _refused(outcome, ink)
    withheld = _withheld(outcome)
    if withheld:
        count = len(withheld)
        lines.append(
            f"{ink.bad('refused')} {count} {'request' if count == 1 else 'requests'}, and told the command why: "
            f"interlock show {outcome.run_id}"
        )
    for effect_id, url, response in resolution.sent:
        lines.append(f"sent {effect_id} {safe(url)}: {response.outcome.value}, status {response.status}")
    for place in resolution.skipped:
        lines.append(f"not merged (no regular file, folder or link): {safe(place)}")
    if resolution.thrown_away:
        count = resolution.thrown_away
        lines.append(
            f"{count} {'file' if count == 1 else 'files'} that it wrote in HOME "
            f"{'is' if count == 1 else 'are'} not kept: interlock show {outcome.run_id}"
        )
    if resolution.fault:
        lines.append(ink.bad(f"failed: {safe(resolution.fault)}"))
    if resolution.stuck:
        lines.append(ink.bad(f"stuck: {safe(resolution.stuck)}"))
    if resolution.held:
        lines.append(
            f"held: {outcome.run_id} — see it: interlock diff {outcome.run_id}; "
            f"then: interlock apply {outcome.run_id}, or: interlock discard {outcome.run_id}"
        )
    if verbose or lines:
        lines.append(
            ink.faint(
                f"run {outcome.run_id}: {resolution.committed} committed, "
                f"{len(resolution.refusals) + len(withheld)} refused; "
                f"evidence: interlock verify {outcome.run_id}"
            )
        )
    for line in lines:
        print(f"interlock: {line}", file=sys.stderr)


def _refused(outcome: RunOutcome, ink: Ink) -> list[str]:
    """Return a line for each refused change; those of one reason fold where they are many."""
    from interlock.model.verdicts import IN_PART

    by_reason: dict[str, list[str]] = {}
    for effect_id, place, exception in outcome.performer.resolution.refusals:
        some = "part of " if exception.violated_rule in IN_PART else ""
        by_reason.setdefault(exception.rationale, []).append(f"{some}{effect_id} {safe(place)}")
    lines = []
    for reason, names in by_reason.items():
        shown = names if len(names) <= _ONE_BY_ONE else names[:2]
        lines += [f"{ink.decision('refuse')} {name}: {safe(reason)}" for name in shown]
        if len(names) > len(shown):
            lines.append(f"… and {len(names) - 2} more for the same reason: interlock show {outcome.run_id}")
    return lines


def _withheld(outcome: RunOutcome) -> list[str]:
    """Return the requests that were refused, without those that nobody is to be asked about."""
    from interlock.model.verdicts import QUIET

    return [
        effect_id
        for effect_id, _url, exception in outcome.performer.resolution.turned_away
        if exception.violated_rule != QUIET
    ]


def summary(outcome: RunOutcome) -> dict[str, object]:
    """Return what a run came to, for `--json`."""
    resolution = outcome.performer.resolution
    return {
        "run": outcome.run_id,
        "folder": outcome.path,
        "exit_code": outcome.exit_code,
        "exit_signal": outcome.exit_signal,
        "phase": outcome.performer.state.phase.value,
        "committed": resolution.committed,
        "refused": [
            {
                "effect": effect_id,
                "object": place,
                "type": exception.type.value,
                "violated_rule": exception.violated_rule,
                "rationale": exception.rationale,
            }
            for effect_id, place, exception in resolution.refusals
        ],
        "requests_refused": len(_withheld(outcome)),
        "requests_quieted": len(resolution.turned_away) - len(_withheld(outcome)),
        "sent": [
            {"effect": effect_id, "url": url, "outcome": response.outcome.value, "status": response.status}
            for effect_id, url, response in resolution.sent
        ],
        "thrown_away": resolution.thrown_away,
        "held": resolution.held,
        "stuck": resolution.stuck,
        "fault": resolution.fault,
        "interruption": outcome.interruption,
        "degraded": list(outcome.degraded),
    }
