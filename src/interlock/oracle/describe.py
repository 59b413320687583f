"""How one deferred effect reads: its row, its reasons, its diff. Every text leaves here safe to show."""

from collections.abc import Callable

from interlock.model.effects import Effect, FileChange, FileStamp, FileType, Hazard
from interlock.model.errors import InterlockError
from interlock.model.verdicts import CheckOutcome
from interlock.oracle.listing import Item
from interlock.oracle.shown import shown

_HAZARDS = {
    Hazard.SET_ID: "runs with its owner's rights, whoever starts it",
    Hazard.DEVICE: "opens a device of this machine",
    Hazard.FIFO: "a pipe: whoever opens it may wait for ever",
    Hazard.SOCKET: "a socket, no file",
    Hazard.OUTWARD_LINK: "a link that leads out of its root",
    Hazard.OUTWARD_HARD_LINK: "the same file as one outside its root",
    Hazard.FILE_CAPABILITY: "runs with capabilities of its own",
}
_OUTCOMES = {
    CheckOutcome.PASS: "passes",
    CheckOutcome.BLOCK: "blocks",
    CheckOutcome.UNDECIDED: "cannot vouch",
}
_DIFF_LINES = 20_000


def action(effect: Effect) -> str:
    """Return what the effect does, shortly: `create` for `file.create`."""
    return shown(effect.operation.removeprefix("file."))


def reasons(item: Item) -> list[str]:
    """Return the few lines that say what the effect is and why it waits, each safe to show."""
    effect = item.effect
    lines = []
    change = effect.change
    if change is not None:
        lines.extend(_outline(change))
        lines.extend(f"{hazard.value}: {_HAZARDS[hazard]}" for hazard in change.hazards)
    lines.extend(f"{facet.kind}: {facet.reason}" for facet in effect.facets)
    lines.append("waits: " + (item.verdict.reason or "nothing vouches for it"))
    return [shown(line) for line in lines]


def explanation(item: Item) -> list[str]:
    """Return everything known of why the effect waits, each line safe to show."""
    effect = item.effect
    lines = [f"{item.number}  {effect.operation} {effect.object}  (effect {effect.id})"]
    change = effect.change
    if change is not None:
        if change.source is not None:
            lines.append(f"  from: {change.source}")
        lines.append(f"  before: {_stamp(change.before)}")
        lines.append(f"  after: {_stamp(change.after)}")
        lines.extend(f"  {hazard.value}: {_HAZARDS[hazard]}" for hazard in change.hazards)
    lines.extend(f"  {facet.kind}: {facet.reason}" for facet in effect.facets)
    lines.extend(f"  depends on {value.role}: {value.text}" for value in effect.steering)
    if effect.carried > effect.clearance:
        carried, clearance = effect.carried.name.lower(), effect.clearance.name.lower()
        lines.append(f"  carries {carried} data to a place cleared for {clearance}")
    for check in item.verdict.checks:
        rules = f" [{', '.join(check.rules)}]" if check.rules else ""
        lines.append(f"  {check.guard.value} {_OUTCOMES[check.outcome]}{rules}: {check.reason}")
    if not item.verdict.checks:
        lines.append("  no guard vouched for it")
    return [shown(line) for line in lines]


def diff_lines(item: Item, diff: Callable[[Effect], str]) -> list[str]:
    """Return the effect's diff, each line safe to show; one line that says so where none can be made."""
    try:
        text = diff(item.effect)
    except InterlockError as error:
        return [shown(f"(no diff: {error.message})")]
    except Exception as error:  # noqa: BLE001  (a diff that breaks must not end the review)
        return [f"(no diff: {type(error).__name__})"]
    # Only a line feed ends a line: what else Python takes for one is the agent's text, and is escaped.
    lines = text.removesuffix("\n").split("\n", _DIFF_LINES)
    rest = lines[_DIFF_LINES:]
    out = [shown(line) for line in lines[:_DIFF_LINES]]
    if rest:
        out.append(f"(and {rest[0].count(chr(10)) + 1:,} more lines)")
    return out if text else ["(no difference in text)"]


def _outline(change: FileChange) -> list[str]:
    lines = []
    if change.source is not None:
        lines.append(f"from {change.source}")
    after = change.after
    if after is None:
        return lines
    if after.type is FileType.SYMLINK:
        lines.append(f"link to {after.link_target}")
    elif after.type is not FileType.FILE:
        lines.append(after.type.value)
    elif after.mode & 0o111 and not (change.before is not None and change.before.mode & 0o111):
        lines.append(f"becomes executable (mode {after.mode:o})")
    return lines


def _stamp(stamp: FileStamp | None) -> str:
    if stamp is None:
        return "nothing"
    if stamp.type is FileType.SYMLINK:
        return f"link to {stamp.link_target}"
    text = f"{stamp.type.value}, mode {stamp.mode:o}, owner {stamp.uid}:{stamp.gid}"
    if stamp.type is FileType.FILE:
        text += f", {stamp.size_bytes:,} bytes"
        if stamp.digest:
            text += f", sha256 {stamp.digest[:16]}"
    return text
