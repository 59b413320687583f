"""`interlock why`: why an effect was released, held or refused."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.runtime.reasons import Reasons
    from interlock.runtime.story import EffectStory, RunStory

_VOTES = {"release": "releases", "refuse": "refuses", "defer": "does not decide"}


def main(words: list[str]) -> int:
    """Run the verb; see `interlock why --help`."""
    form = parser(
        "why",
        "Say why an effect was released, held or refused: every check, its rule and its reason.",
        "interlock why last e3        # or a path: interlock why last .git/hooks/pre-commit",
        "0; 2 no such effect; 4 the ledger is damaged.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument("effect", metavar="EFFECT", help="an effect's id (e3), its path or its URL")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.runtime import folders
    from interlock.runtime.reasons import reasons_for
    from interlock.runtime.story import tell

    story = tell(folders.find(arguments.run))
    record = _find(story, arguments.effect)
    reasons = reasons_for(story.folder, record)
    if arguments.json:
        from interlock.cli.show import document
        from interlock.monitor.codec import plain

        print_json(
            {
                **document(record, story),
                "verdict": plain(record.verdict),
                "chain": list(reasons.chain),
                "change": plain(reasons.change) if reasons.change is not None else None,
            }
        )
        return 0
    _print(record, reasons)
    return 0


def _find(story: RunStory, wanted: str) -> EffectStory:
    if wanted in story.effects:
        return story.effects[wanted]
    from interlock.cli.diff import select

    try:
        place = select(story.folder, [wanted])[0]
    except InputError:
        place = wanted
    for record in story.effects.values():
        if record.effect.object == place:
            return record
    raise InputError(
        f"the run has no effect `{wanted}`", hint=f"list them: interlock show {story.folder.run_id} --all"
    )


def _print(record: EffectStory, reasons: Reasons) -> None:
    ink = Ink(sys.stdout)
    effect, verdict = record.effect, record.verdict
    print(
        f"{ink.strong(effect.id)} {effect.operation} {safe(effect.object)}: {ink.decision(record.fate.value)}"
    )
    if record.tie is not None:
        from interlock.runtime.naming_actions import in_words

        for line in in_words(record.tie):
            print(f"  {safe(line)}")
    if record.moved is not None:
        print(f"  {safe(record.moved.words)}")
    if effect.action is not None:
        from interlock.cli.show import in_short

        print(f"  a lens reads it as {safe(in_short(effect.action))}")
    for facet in effect.facets:
        print(f"  it is {facet.kind}: {safe(facet.reason)}")
    change = effect.change
    if change is not None:
        for hazard in change.hazards:
            print(f"  hazard: {hazard.value}")
        if change.parting:
            print(f"  {change.parting}")
    print(f"  the policy: {ink.decision(verdict.decision.value)}")
    for check in verdict.checks:
        rules = f" [{', '.join(check.rules)}]" if check.rules else ""
        print(f"    {check.guard.value:<10} {check.outcome.value:<9}{safe(rules)} {safe(check.reason)}")
    for line in reasons.chain:
        print(f"    {safe(line)}")
    if (smallest := reasons.change) is not None:
        print(f"  the smallest change that would have vouched for it ({safe(smallest.why)}):")
        title = {"task": "in the task: ", "labels": "", "policy": ""}[smallest.kind]
        for line in smallest.text.rstrip("\n").split("\n"):
            print(f"    {title}{safe(line)}")
    if record.resolved_by:
        print(f"  {safe(record.resolved_by)}: {safe(record.resolution)}")
        for vote in record.votes:
            said = _VOTES[vote.decision.value]
            print(f"    {safe(vote.by)} {said}: {safe(vote.reason)}")
    response = record.response
    if response is not None:
        print(f"  answer: {response.outcome.value}, status {response.status}, {response.size_bytes:,} bytes")
        if response.detail:
            print(f"    {safe(response.detail)}")
    exception = record.exception
    if exception is not None:
        print(f"  told to the agent: {safe(exception.rationale)}")
        if exception.allowed_objective:
            print(f"  it may: {safe(exception.allowed_objective)}")
    print(ink.faint(f"  recorded at node {record.node}"))
