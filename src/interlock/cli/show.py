"""`interlock show`: what a run did, decision by decision."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe

if TYPE_CHECKING:
    from interlock.model.effects import Effect, FileChange
    from interlock.model.events import ExchangeRecorded
    from interlock.model.inferences import Inference
    from interlock.model.moves import Moved
    from interlock.model.tools import ToolCall
    from interlock.runtime.story import EffectStory, RunStory

_SHOWN_ARGUMENTS = 200
FOLD = 12
"""So many effects of one fate are listed; the rest is counted, `--all` lists it."""


def main(words: list[str]) -> int:
    """Run the verb; see `interlock show --help`."""
    form = parser(
        "show",
        "Show what a run did: what it read, what it tried, what was decided and what became of it.",
        "interlock show last",
        "0; 2 input; 4 the ledger is damaged.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument("--all", action="store_true", help="list every effect and every read")
    form.add_argument("--nodes", action="store_true", help="print the ledger's nodes, one JSON object a line")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.runtime import folders

    path = folders.find(arguments.run)
    if arguments.nodes:
        return _nodes(folders.load(path).ledger)
    from interlock.runtime.story import tell

    story = tell(path)
    if arguments.json:
        print_json(_document(story))
    else:
        _print(story, everything=arguments.all)
    return 0


def _nodes(ledger: str) -> int:
    import json

    from interlock.verify import read_nodes

    for node in read_nodes(ledger):
        print(
            json.dumps(
                {
                    "seq": node.seq,
                    "kind": node.kind,
                    "parent": node.parent,
                    "actor": node.actor,
                    "verdict": node.verdict,
                    "payload": node.payload,
                }
            )
        )
    return 0


def _print(story: RunStory, *, everything: bool) -> None:
    from interlock.runtime.plan_story import denied_lines, plan_lines
    from interlock.runtime.story import Fate

    ink = Ink(sys.stdout)
    print(f"{ink.strong('run')}       {story.folder.run_id}  ({story.phase.value})")
    if story.task is not None:
        print(f"{ink.strong('command')}   {safe(' '.join(story.task.argv))}")
        if story.task.task != " ".join(story.task.argv):
            print(f"{ink.strong('task')}      {safe(story.task.task.strip())}")
    if story.stood is not None:
        stood = story.stood
        for root in stood.roots:
            print(f"{ink.strong('staged')}    {root.name}: {safe(root.path)} ({stood.staging.value})")
        print(f"{ink.strong('policy')}    {safe(stood.policy_name)} {stood.policy_digest[:12]}")
        print(f"{ink.strong('oracle')}    {safe(stood.oracle)}")
        for line in plan_lines(story):
            print(f"{ink.strong('plan')}      {safe(line)}")
        for item in stood.degraded:
            print(ink.warn(f"degraded  {item}"))
    if story.exited is not None:
        ended = f"signal {story.exited.signal}" if story.exited.signal else f"exit {story.exited.code}"
        print(f"{ink.strong('command')}   ended: {ended}")
    from interlock.runtime.undoing import undone_line

    if line := undone_line(story.folder):
        print(f"{ink.strong('undone')}    {safe(line)}")
    for line in story.interruptions:
        print(ink.bad(f"stopped   {safe(line)}"))
    for line in _talked(story.exchanges):
        print(f"{ink.strong('model')}     {safe(line)}")
    for server, name in _altered(story):
        print(
            ink.warn(f"changed   the tool {safe(f'{server}/{name}' if server else name)} is described anew")
        )
    for line in _asked(story.inferences):
        print(f"{ink.strong('asked')}     {safe(line)}")
    unique = list(dict.fromkeys(story.reads))
    if story.lost:
        print(f"{ink.strong('read')}      not seen: {safe(story.lost)}")
    else:
        print(f"{ink.strong('read')}      {len(unique)} places")
    for place in unique if everything else ():
        print(f"          {safe(place)}")
    for traffic in story.unreadable if everything else story.unreadable[:FOLD]:
        times = f" ({traffic.count} times)" if traffic.count > 1 else ""
        print(ink.warn(f"unread    {safe(traffic.host)}:{traffic.port}: {safe(traffic.reason)}{times}"))
    for line in denied_lines(story.denied, len(story.denied) if everything else FOLD):
        print(ink.warn(f"denied    {safe(line)}"))
    if story.thrown_away:
        print(f"{ink.strong('not kept')}  {_thrown(story)}")
    for fate in Fate:
        records = story.with_fate(fate)
        if not everything:
            quiet = [record for record in records if _is_quiet(record)]
            records = [record for record in records if not _is_quiet(record)]
            if quiet:
                print(
                    f"\n{ink.strong('quiet')} ({len(quiet)})  {safe(_hosts(quiet))}: refused without asking"
                )
        if not records:
            continue
        print(f"\n{ink.strong(fate.value)} ({len(records)})")
        before = ""
        for record in records if everything else records[:FOLD]:
            by = _by(record)
            _print_effect(ink, record, f"{by.partition(' ')[0]} the same" if by and by == before else by)
            before = by
        if len(records) > FOLD and not everything:
            left = records[FOLD:]
            print(
                ink.faint(
                    f"  … {len(left)} more ({_counted(left)}): interlock show {story.folder.run_id} --all"
                )
            )


def _talked(exchanges: list[ExchangeRecorded]) -> list[str]:
    """Return one line for each model that the agent talked to, as its provider names it: how often, and the tokens."""
    groups: dict[tuple[str, str], list[ExchangeRecorded]] = {}
    for one in exchanges:
        groups.setdefault((one.provider, one.answered_as or one.model), []).append(one)
    lines = []
    for (provider, model), calls in groups.items():
        prompt = sum(one.prompt_tokens for one in calls)
        completion = sum(one.completion_tokens for one in calls)
        failed = sum(bool(one.fault) for one in calls)
        lines.append(
            f"{model or 'unnamed'} at {provider}: {len(calls)} exchange{'s' * (len(calls) != 1)},"
            f" {prompt:,} + {completion:,} tokens" + (f", {failed} without an answer" if failed else "")
        )
    return lines


def _altered(story: RunStory) -> list[tuple[str, str]]:
    """Return the tools that had more than one description, in order."""
    digests: dict[tuple[str, str], set[str]] = {}
    for listing in story.listed:
        for one in listing.tools:
            digests.setdefault((listing.server, one.name), set()).add(one.digest)
    return [tool for tool, found in digests.items() if len(found) > 1]


def _asked(inferences: list[Inference]) -> list[str]:
    """Return one line for each oracle and model: how often it was asked, the tokens and the time that it took."""
    groups: dict[tuple[str, str, str], list[Inference]] = {}
    for one in inferences:
        groups.setdefault((one.oracle, one.provider, one.model), []).append(one)
    lines = []
    for (oracle, provider, model), calls in groups.items():
        prompt = sum(one.prompt_tokens for one in calls)
        completion = sum(one.completion_tokens for one in calls)
        seconds = sum(one.elapsed_ms for one in calls) / 1000
        faults = Counter(one.fault for one in calls if one.fault)
        failed = ", ".join(f"{count} {fault}" for fault, count in faults.items())
        hashes = {one.weights_hash[:19] for one in calls if one.weights_hash}
        lines.append(
            f"{oracle}: {model} ({', '.join([provider, *sorted(hashes)])}): {len(calls)} call{'s' * (len(calls) != 1)},"
            f" {prompt:,} + {completion:,} tokens, {seconds:.1f} s"
            + (f"; failed: {failed}" if failed else "")
        )
    return lines


def _print_effect(ink: Ink, record: EffectStory, by: str) -> None:
    effect = record.effect
    print(
        f"  {effect.id:<5} {ink.decision(record.verdict.decision.value, 8)} "
        f"{effect.operation:<12} {safe(effect.object)}{_below(effect)}{_moved(record)}"
        + (ink.faint(f"  {safe(by)}") if by else "")
    )
    if effect.action is not None:
        print(f"        {safe(in_short(effect.action))}")
    for facet in effect.facets:
        print(f"        {ink.warn(facet.kind)}: {safe(facet.reason)}")
    if effect.change is not None and effect.change.parting:
        print(ink.warn(f"        {effect.change.parting}"))
    if record.verdict.decision.value != "release":
        print(ink.faint(f"        {safe(record.verdict.reason)}"))
    if record.resolved_by:
        print(ink.faint(f"        {safe(record.resolved_by)}: {safe(record.resolution)}"))
    if record.response is not None and record.response.detail:
        print(ink.faint(f"        {safe(record.response.detail)}"))


def _thrown(story: RunStory) -> str:
    names = ", ".join(f"~/{safe(name)}" for name in story.thrown)
    left = story.thrown_away - len(story.thrown)
    return f"{story.thrown_away} in HOME: {names}" + (f" and {left} more" if left else "")


def _is_quiet(record: EffectStory) -> bool:
    from interlock.model.verdicts import QUIET

    return record.exception is not None and record.exception.violated_rule == QUIET


def _hosts(records: list[EffectStory]) -> str:
    hosts = dict.fromkeys(
        record.effect.request.host for record in records if record.effect.request is not None
    )
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    return ", ".join(list(hosts)[:3]) + more


def _counted(records: list[EffectStory]) -> str:
    counts: dict[str, int] = {}
    for record in records:
        counts[record.effect.operation] = counts.get(record.effect.operation, 0) + 1
    return ", ".join(f"{count} {operation}" for operation, count in counts.items())


def _below(effect: Effect) -> str:
    """A deleted folder is one effect, whatever it held: say so."""
    from interlock.model.effects import ChangeKind, FileType

    change = effect.change
    if change is None or change.kind is not ChangeKind.DELETE or change.before is None:
        return ""
    return " with all below it" if change.before.type is FileType.DIRECTORY else ""


def _moved(record: EffectStory) -> str:
    return "" if record.moved is None else f"  {safe(record.moved.words)}"


def _by(record: EffectStory) -> str:
    """Return how an effect stands to the model's calls; nothing of what an agent keeps for itself."""
    from interlock.runtime.naming_actions import shortly

    return "" if record.tie is None else shortly(record.tie)


def _document(story: RunStory) -> dict[str, object]:
    from dataclasses import asdict

    from interlock.monitor.codec import plain
    from interlock.runtime.plan_story import plan_document

    return {
        "run": story.folder.run_id,
        "phase": story.phase.value,
        "task": story.task.task if story.task else "",
        "argv": list(story.task.argv) if story.task else [],
        "policy": story.stood.policy_digest if story.stood else "",
        "degraded": list(story.stood.degraded) if story.stood else [],
        "receipt": dict(story.stood.receipt) if story.stood else {},
        "exit_code": story.exited.code if story.exited else None,
        "exit_signal": story.exited.signal if story.exited else None,
        "interruptions": story.interruptions,
        "reads": list(dict.fromkeys(story.reads)),
        "reads_lost": story.lost,
        "thrown_away": story.thrown_away,
        "thrown": list(story.thrown),
        "nodes": story.nodes,
        "inferences": [asdict(item) for item in story.inferences],
        "plan": plan_document(story),
        "denied": [asdict(item) for item in story.denied],
        "exchanges": [asdict(item) for item in story.exchanges],
        "unreadable_traffic": [plain(item) for item in story.unreadable],
        "effects": [document(record, story) for record in story.effects.values()],
    }


def in_short(action: ToolCall) -> str:
    """Return what a lens reads a request as, in one line."""
    text = action.arguments
    return f"{action.tool} {text if len(text) <= _SHOWN_ARGUMENTS else text[: _SHOWN_ARGUMENTS - 1] + '…'}"


def document(record: EffectStory, story: RunStory) -> dict[str, object]:
    """Return one effect's story as JSON values."""
    from interlock.monitor.codec import plain

    return {
        "id": record.effect.id,
        "operation": record.effect.operation,
        "object": record.effect.object,
        **({"lens": plain(record.effect.action)} if record.effect.action is not None else {}),
        "facets": [plain(facet) for facet in record.effect.facets],
        "decision": record.verdict.decision.value,
        "reason": record.verdict.reason,
        "fate": record.fate.value,
        "resolved_by": record.resolved_by,
        "resolution": record.resolution,
        **({"votes": plain(record.votes)} if record.votes else {}),
        "node": record.node,
        "response": plain(record.response),
        "action": _action(record),
        **moved_document(record.moved),
        **outside_document(record.effect.change),
    }


def outside_document(change: FileChange | None) -> dict[str, object]:
    """Return how many names outside of the root keep the old file, nothing where there are none."""
    return {} if change is None or not change.outside_names else {"outside_names": change.outside_names}


def moved_document(moved: Moved | None) -> dict[str, object]:
    """Return one end of a file's move as JSON values, nothing where there is none."""
    if moved is None:
        return {}
    if not moved.arrived:
        return {"moved_to": str(moved.other.place)}
    return {"moved_from": str(moved.other.place), "edited": moved.edited}


def _action(record: EffectStory) -> dict[str, object] | None:
    from interlock.runtime.naming_actions import document as tied

    return None if record.tie is None else tied(record.tie)
