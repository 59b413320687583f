"""How one deferred effect reads: its row, its reasons, its diff. Every text leaves here safe to show."""

from collections.abc import Callable, Sequence

from interlock.model.effects import Effect, FileChange, FileStamp, FileType, Hazard, HostEdit
from interlock.model.errors import InterlockError
from interlock.model.requests import Credential, NetMessage, NetRequest
from interlock.model.verdicts import CheckOutcome
from interlock.oracle.listing import Item
from interlock.oracle.question import ShownHunk
from interlock.oracle.shown import shown

_HAZARDS = {
    Hazard.SET_ID: "runs with its owner's rights, whoever starts it",
    Hazard.DEVICE: "opens a device of this machine",
    Hazard.FIFO: "a pipe: whoever opens it may wait for ever",
    Hazard.SOCKET: "a socket, no file",
    Hazard.OUTWARD_LINK: "a link that leads out of its root",
    Hazard.FILE_CAPABILITY: "runs with capabilities of its own",
}
_OUTCOMES = {
    CheckOutcome.PASS: "passes",
    CheckOutcome.BLOCK: "blocks",
    CheckOutcome.UNDECIDED: "cannot vouch",
}
_CREDENTIALS = {
    Credential.BOUND: "with the key that the policy binds to this host",
    Credential.OWN: "with a key that the command holds",
    Credential.FOREIGN: "with another key than the one that belongs to this host",
}
_HOST_EDITS = {
    HostEdit.EDITED: "conflict: the host changed it too",
    HostEdit.APPEARED: "conflict: the host made it too",
    HostEdit.GONE: "conflict: the host removed it",
    HostEdit.UNCERTAIN: "conflict: the host may have changed it too",
}
_DIFF_LINES = 20_000


def action(effect: Effect) -> str:
    """Return what the effect does, shortly: `create` for `file.create`, `POST` for a request."""
    if effect.request is not None:
        named = f" {effect.action.tool}" if effect.action is not None else ""
        return shown(f"{effect.request.method}{named}")
    if effect.tool is not None:
        return shown(effect.tool.name)
    return shown(effect.operation.removeprefix("file.").removeprefix("net."))


def reasons(item: Item) -> list[str]:
    """Return the few lines that say what the effect is and why it waits, each safe to show."""
    effect = item.effect
    lines = []
    change = effect.change
    if change is not None:
        if change.host_edit is not None:
            lines.append(_HOST_EDITS[change.host_edit])
        if item.moved:
            lines.append(item.moved)
        lines.extend(_outline(change))
        if change.parting:
            lines.append(change.parting)
        lines.extend(f"{hazard.value}: {_HAZARDS[hazard]}" for hazard in change.hazards)
    lines.extend(_sent(effect.request, effect.message))
    lines.extend(f"{facet.kind}: {facet.reason}" for facet in effect.facets)
    if item.tie:
        lines.append(item.tie)
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
        if item.moved:
            lines.append(f"  {item.moved}")
        if change.host_edit is not None:
            lines.append(f"  {_HOST_EDITS[change.host_edit]}")
            lines.append(f"  the agent began from: {_stamp(change.base)}")
        lines.append(f"  before: {_stamp(change.before)}")
        lines.append(f"  after: {_stamp(change.after)}")
        if change.parting:
            lines.append(f"  {change.parting}")
        lines.extend(f"  {hazard.value}: {_HAZARDS[hazard]}" for hazard in change.hazards)
    lines.extend(f"  {line}" for line in _sent(effect.request, effect.message))
    if effect.request is not None:
        lines.extend(f"  {name}: {value}" for name, value in effect.request.headers)
    call = effect.tool or effect.action
    if call is not None:
        lines.append(f"  arguments: {call.arguments}")
    lines.extend(f"  {facet.kind}: {facet.reason}" for facet in effect.facets)
    lines.extend(f"  depends on {value.role}: {value.text}" for value in effect.steering)
    if item.tie:
        lines.append(f"  {item.tie}")
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
    return _text_lines(text)


def merged_lines(item: Item, merged: Callable[[Effect], str]) -> tuple[list[str], bool]:
    """Return what the merge of a conflict makes on the host, or why it cannot be, and whether it is clean."""
    try:
        return _text_lines(merged(item.effect)), True
    except InterlockError as error:
        why = error.message
    except Exception as error:  # noqa: BLE001  (a merge that breaks must not end the review)
        why = f"no merge: {type(error).__name__}"
    return [shown(why), "only the host's version can stay now"], False


def redacted_lines(item: Item, redacted: Callable[[Effect], str]) -> tuple[list[str], bool]:
    """Return a request as it would leave redacted, or why it cannot be, and whether it can."""
    try:
        return _text_lines(redacted(item.effect)), True
    except InterlockError as error:
        return [shown(f"(it cannot be redacted: {error.message})")], False
    except Exception as error:  # noqa: BLE001  (a redaction that breaks must not end the review)
        return [f"(it cannot be redacted: {type(error).__name__})"], False


def hunks_of(item: Item, hunks: Callable[[Effect], Sequence[ShownHunk]]) -> tuple[Sequence[ShownHunk], str]:
    """Return the effect's hunks that can be released alone, or none and why."""
    try:
        found = hunks(item.effect)
    except InterlockError as error:
        return (), shown(error.message)
    except Exception as error:  # noqa: BLE001  (hunks that break must not end the review)
        return (), f"no hunks: {type(error).__name__}"
    return found, "" if found else "it has no hunks: accept it whole, or refuse it"


def hunk_lines(hunk: ShownHunk) -> list[str]:
    """Return a hunk's lines, each safe to show."""
    out = [shown(line) for line in hunk.lines[:_DIFF_LINES]]
    if len(hunk.lines) > _DIFF_LINES:
        out.append(f"(and {len(hunk.lines) - _DIFF_LINES:,} more lines)")
    return out


def hunk_heading(item: Item, hunk: ShownHunk) -> str:
    """Return a hunk's first line: its number, where it is, and how much it changes."""
    return shown(f"{item.number}.{hunk.number}  {hunk.header}  +{hunk.added} -{hunk.removed}")


def _text_lines(text: str) -> list[str]:
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


def _sent(request: NetRequest | None, message: NetMessage | None) -> list[str]:
    """Say what leaves with a request or a message: how much, and whose key."""
    if message is not None:
        return [f"{message.size_bytes:,} bytes into the stream of {message.stream}"]
    if request is None:
        return []
    lines = []
    if request.protocol == "opaque":
        lines.append("bytes that cannot be read pass both ways")
    elif request.body_size_bytes < 0:
        lines.append("a body that goes on after this")
    elif request.body_size_bytes:
        unread = "" if request.body_text is not None else ", no text"
        lines.append(f"{request.body_size_bytes:,} bytes of body{unread}")
    if request.credential is not Credential.NONE:
        lines.append(_CREDENTIALS[request.credential])
    if request.address and request.address != request.host:
        lines.append(f"at the address {request.address}, which the command chose")
    return lines


def _stamp(stamp: FileStamp | None) -> str:
    if stamp is None:
        return "nothing"
    if stamp.type is FileType.SYMLINK:
        return f"link to {stamp.link_target}"
    text = f"{stamp.type.value}, mode {stamp.mode:o}, owner {stamp.uid}:{stamp.gid}"
    if stamp.type is FileType.FILE:
        text += f", {stamp.size_bytes:,} bytes"
        if stamp.digest and not stamp.digest.startswith("stat:"):
            text += f", sha256 {stamp.digest[:16]}"
    return text
