"""`interlock review`: answer, from any terminal, what a living run waits for; or resolve what it did so far."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json, safe
from interlock.model.errors import WITHHELD_EXIT_STATUS, InputError

if TYPE_CHECKING:
    import argparse

    from interlock.oracle import Oracle
    from interlock.runtime.folders import RunFolder


def main(words: list[str]) -> int:
    """Run the verb; see `interlock review --help`."""
    from interlock.oracle.choose import MODELS_HELP, ORACLE_HELP

    form = parser(
        "review",
        "Answer what a run's command waits for. Where nothing waits, resolve what it did so far; of a run whose "
        "command has ended, what is held.",
        "interlock review",
        "0 all released, or left for later; 6 something was refused; 2 input, 4 integrity, 5 stuck or a conflict.",
    )
    form.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default="",
        help="a run's id, the end of one, or `last` (default: the latest whose command lives, else the latest held)",
    )
    form.add_argument("--list", action="store_true", help="say what waits, and answer nothing")
    form.add_argument(
        "--oracle",
        metavar="WHO",
        default="human",
        help=f"who answers: human (default), or as in run: {ORACLE_HELP}",
    )
    form.add_argument("--models", metavar="FILE", help=MODELS_HELP)
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.runtime import folders

    path = folders.find(arguments.run) if arguments.run else _latest()
    folder = folders.load(path)
    if folders.is_locked(path):
        return _living(arguments, folder)
    if arguments.list:
        raise InputError(
            f"the command of the run {folder.run_id} has ended, so it waits for nothing",
            hint=f"see what is staged: interlock diff {folder.run_id}",
        )
    from interlock.cli.apply import resolve_open
    from interlock.model.events import OnConflict

    return resolve_open(folder, _who(arguments), (), OnConflict.ASK, as_json=arguments.json)


def _latest() -> str:
    """Return the folder of the run that most likely is meant. Raises: InputError, if none is open."""
    from interlock.cli.runs import status_of
    from interlock.runtime import folders

    held = ""
    for run_id in sorted(folders.all_run_ids(), reverse=True):
        path = folders.find(run_id)
        if folders.is_locked(path):
            return path
        if not held and status_of(path) == "held":
            held = path
    if not held:
        raise InputError("no run is under way or held", hint="see all of them: interlock runs")
    return held


def _who(arguments: argparse.Namespace) -> Oracle:
    from interlock import oracle

    if arguments.oracle == "review":
        raise InputError("a review needs somebody who answers", hint="leave `--oracle` out, in a terminal")
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return oracle.choose(arguments.oracle, terminal=terminal, models=arguments.models)


def _note(line: str) -> None:
    print(f"interlock: {line}", file=sys.stderr)


def _living(arguments: argparse.Namespace, folder: RunFolder) -> int:
    from interlock.cli.apply import review_living, tell
    from interlock.model.events import OnConflict
    from interlock.runtime import control
    from interlock.runtime.control_fields import Fields
    from interlock.runtime.control_protocol import ProposeNow, QuestionsNow, write_request

    told = Fields(control.ask(folder, write_request(QuestionsNow()), _note), "the open questions")
    told.text("run")
    questions, parked = told.items("questions"), told.items("parked")
    told.end()
    if arguments.list:
        return _list(arguments, folder, questions, parked)
    who = _who(arguments)
    if questions:
        return _answer(arguments, folder, who, questions)
    came = review_living(folder, ProposeNow(on_conflict=OnConflict.ASK), who)
    if came is None:
        print(f"nothing was decided; all of it stays staged: interlock review {folder.run_id}")
        return 0
    return tell(came, as_json=arguments.json)


def _list(
    arguments: argparse.Namespace, folder: RunFolder, questions: list[object], parked: list[object]
) -> int:
    from interlock.runtime.proposals import read_proposal

    asked: list[dict[str, str | bool]] = [
        {
            "effect": effect.id,
            "object": effect.object,
            "reason": verdict.reason,
            **({"redactable": True} if proposal.redactions.get(effect.id, ("", False))[1] else {}),
        }
        for proposal in (read_proposal(_mapping(item)) for item in questions)
        for effect, verdict in proposal.deferred
    ]
    if arguments.json:
        print_json({"run": folder.run_id, "waiting": asked, "parked": parked})
        return 0
    for one in asked:
        print(f"waits for you: {one['effect']} {safe(str(one['object']))}: {safe(str(one['reason']))}")
    for item in parked:
        fields = _mapping(item)
        print(f"parked until the scope's end: {fields.get('effect')} {safe(str(fields.get('object', '')))}")
    if not asked:
        print(f"nothing waits for you; what is staged so far: interlock diff {folder.run_id}")
    return 0


def _answer(arguments: argparse.Namespace, folder: RunFolder, who: Oracle, questions: list[object]) -> int:
    """Put each open question to `who`, and send each complete answer at once."""
    from interlock import oracle
    from interlock.runtime import control
    from interlock.runtime.control_protocol import AnswerNow, write_request
    from interlock.runtime.proposals import read_proposal

    counts = {"release": 0, "refuse": 0}
    left = late = 0
    for item in questions:
        proposal = read_proposal(_mapping(item))
        answered = oracle.ask(who, proposal.question(folder))
        if answered.leave_open:
            left += 1
            continue
        request = AnswerNow(
            question=proposal.mark,
            oracle=answered.oracle,
            answers=answered.answers,
            fault=answered.fault,
            votes=answered.votes,
            inferences=answered.inferences,
        )
        try:
            control.ask(folder, write_request(request), _note)
        except InputError as error:
            late += 1
            _note(f"{error.message} ({error.hint})")
            continue
        for one in answered.answers:
            counts[one.decision.value] = counts.get(one.decision.value, 0) + 1
    if arguments.json:
        print_json(
            {
                "run": folder.run_id,
                "released": counts["release"],
                "refused": counts["refuse"],
                "left": left,
                "too_late": late,
            }
        )
    else:
        print(f"{counts['release']} released, {counts['refuse']} refused; the command goes on")
        if left:
            print(f"left waiting: {left}; answer later: interlock review {folder.run_id}")
    if late:
        return 2
    return WITHHELD_EXIT_STATUS if counts["refuse"] else 0


def _mapping(item: object) -> dict[str, object]:
    if not isinstance(item, dict):
        raise InputError("the open questions: one of them cannot be read")
    return item
