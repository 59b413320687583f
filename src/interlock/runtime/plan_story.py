"""A run with a plan told in lines: how far it went in each branch, and which system calls the kernel denied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from interlock.policy.trajectory_progress import is_file

if TYPE_CHECKING:
    from interlock.model.events import CallDenied
    from interlock.model.manifest import Branch, Manifest
    from interlock.runtime.story import RunStory

MOST_DENIED = 12


def plan_lines(story: RunStory) -> list[str]:
    """Return what is told of the plan, one line a branch; none for a run without one."""
    manifest = story.manifest
    if manifest is None:
        return []
    count = sum(len(branch.steps) for branch in manifest.branches)
    head = f"{manifest.mode.value}, {count} steps by {manifest.planner}"
    lines = [f"{head}; {_branch(branch, story.taken)}" for branch in manifest.branches[:1]] or [head]
    lines += [_branch(branch, story.taken) for branch in manifest.branches[1:]]
    return lines + _stop_lines(story)


def _stop_lines(story: RunStory) -> list[str]:
    """Return on one line how much of what a stop condition counts was used; nothing where none counts."""
    from interlock.manifest.stopping import amount_text

    stops = story.stops
    if stops is None:
        return []
    limits = stops.limits
    counts = [
        (max((count for _branch, count in stops.turns), default=0), limits.turns, "turns"),
        (stops.tokens, limits.tokens, "tokens"),
        (max((count for _branch, count in stops.failures), default=0), limits.failures, "failures"),
    ]
    parts = [f"{count:,} of {limit:,} {name}" for count, limit, name in counts if limit]
    if limits.money:
        parts.append(f"{amount_text(stops.cost // 1_000_000)} of {amount_text(limits.money)} money")
    if limits.wall_ms:
        parts.append(f"at most {limits.wall_ms / 1000:,.0f} s")
    if limits.memory_bytes:
        parts.append(f"at most {limits.memory_bytes:,} bytes")
    return [f"stops after: {', '.join(parts)}"] if parts else []


def denied_lines(denied: Iterable[CallDenied], most: int = MOST_DENIED) -> list[str]:
    """Return what is told of denied system calls, the same ones together, each with the line that a toolkit lacks."""
    counts: dict[tuple[str, str, str], int] = {}
    for one in denied:
        key = (one.name, one.detail, one.advice)
        counts[key] = counts.get(key, 0) + one.count
    lines = []
    for (name, detail, advice), count in list(counts.items())[:most]:
        what = f"{name} ({detail})" if detail else name
        times = f", {count} times" if count > 1 else ""
        lines.append(f"{what}{times}" + (f"; a toolkit would say: {advice}" if advice else ""))
    left = len(counts) - most
    return [*lines, f"… {left} more"] if left > 0 else lines


def plan_document(story: RunStory) -> dict[str, object] | None:
    """Return what is told of the plan as JSON values."""
    manifest = story.manifest
    if manifest is None:
        return None
    return {
        "mode": manifest.mode.value,
        "planner": manifest.planner,
        "steps": [
            {"id": step.id, "branch": branch.name, "tool": step.tool, "taken": step.id in story.taken}
            for branch in manifest.branches
            for step in branch.steps
        ],
        "left": {branch.name: _left(manifest, branch, story.taken) for branch in manifest.branches},
    }


def _left(manifest: Manifest, branch: Branch, taken: frozenset[str]) -> list[str]:
    return [step.id for step in branch.steps if step.id not in taken]


def _branch(branch: Branch, taken: frozenset[str]) -> str:
    done = sum(step.id in taken for step in branch.steps)
    named = f"branch {branch.name}: " if branch.name else ""
    following = next((step for step in branch.steps if step.id not in taken and not is_file(step)), None)
    then = f", next {following.tool} (step {following.id})" if following is not None else ""
    return f"{named}{done} of {len(branch.steps)} done{then}"
