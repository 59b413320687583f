"""`interlock run`: run a command on a staged copy; review, commit or discard what it did."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, safe
from interlock.model.errors import WITHHELD_EXIT_STATUS, InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from interlock.oracle import Oracle
    from interlock.policy.profiles import Profile
    from interlock.runtime.launch import RunOutcome


def _arguments(words: list[str]) -> argparse.Namespace:
    from interlock.oracle.choose import MODELS_HELP, ORACLE_HELP

    form = parser(
        "run",
        "Run a command on a staged copy of the working directory; review, commit or discard what it did.",
        "interlock run -- codex exec 'fix the failing test'",
        "the command's own; 6 if it exited 0 but effects were refused; 2 input, 3 boundary, 4 ledger,\n"
        "  5 stuck. A command ended by signal N gives 128 + N.",
    )
    form.add_argument(
        "--workspace",
        metavar="DIR",
        help="the folder to stage (default: the repository that the working directory lies in, else itself)",
    )
    form.add_argument(
        "--add-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="one more folder to stage, as the workspace is (may be given again)",
    )
    form.add_argument("--task", metavar="TEXT", help="the task in your words; what it names is vouched for")
    form.add_argument("--task-file", metavar="FILE", help="the same, from a file")
    form.add_argument(
        "--plan",
        metavar="FILE",
        help="the signed plan to follow (see `interlock plan`); its prompt is the task",
    )
    form.add_argument(
        "--plan-key",
        metavar="KEY",
        action="append",
        default=[],
        help="a key beside yours that may have signed the plan, as `interlock plan check` names it",
    )
    form.add_argument(
        "--policy",
        metavar="FILE",
        help="the policy (default: ~/.config/interlock/policy.yaml, else the preset `coding`)",
    )
    form.add_argument(
        "--profile",
        metavar="NAME",
        help="the agent's profile: a name, a file, or none (default: found by the command; "
        "see `interlock profile list`)",
    )
    form.add_argument(
        "--oracle",
        metavar="WHO",
        help=f"who resolves what was deferred: {ORACLE_HELP}",
    )
    form.add_argument("--models", metavar="FILE", help=MODELS_HELP)
    form.add_argument(
        "--answer-within",
        type=float,
        metavar="SECONDS",
        help="refuse what nobody answered by then (default: no limit)",
    )
    form.add_argument(
        "--on-conflict",
        choices=("ask", "refuse", "theirs"),
        help="where you changed a file too: ask (default where somebody can answer), refuse to merge anything "
        "(default else), or keep yours (theirs)",
    )
    form.add_argument("--hold", action="store_true", help="leave everything staged for `interlock apply`")
    form.add_argument(
        "--staging", choices=("overlay", "copy"), help="how to stage (default: overlay where it works)"
    )
    form.add_argument(
        "--allow-degraded", action="store_true", help="run though this machine cannot keep every promise"
    )
    form.add_argument(
        "--id-file", metavar="FILE", help="write the run's id there, just before the command starts"
    )
    form.add_argument("-v", "--verbose", action="store_true", help="say what was done even if all is well")
    form.add_argument("--json", action="store_true", help="say the outcome as one JSON line on stderr")
    form.add_argument("command", nargs="...", metavar="-- COMMAND…", help="the command and its arguments")
    arguments = form.parse_args(words)
    if arguments.command[:1] == ["--"]:
        arguments.command = arguments.command[1:]
    if not arguments.command:
        form.error("a command is needed, after `--`")
    return arguments


def main(words: list[str]) -> int:
    """Run the verb; see `interlock run --help`."""
    arguments = _arguments(words)
    from interlock.runtime import launch
    from interlock.runtime.policies import find_policy, with_profile
    from interlock.runtime.profiles import find_profile

    workspace = workspace_of(arguments.workspace)
    if arguments.verbose and workspace != os.path.realpath(arguments.workspace or os.getcwd()):
        print(f"interlock: the workspace is {safe(workspace)}, the repository's top folder", file=sys.stderr)
    policy = find_policy(arguments.policy, os.environ)
    if policy.home and not arguments.json:
        from interlock.runtime.home_files import hidden_globs

        for line in hidden_globs(policy.home, exposed=policy.sandbox.expose):
            print(f"interlock: {safe(line)}", file=sys.stderr)
    if arguments.profile is not None or not policy.profile:
        profile = find_profile(arguments.profile, arguments.command, os.environ, workspace)
        policy = with_profile(policy, profile, os.environ)
        if profile is not None:
            _say_profile(profile, arguments)
    plan, task = _plan(arguments)
    oracle_name, oracle = _oracle(arguments)
    from interlock.model.events import OnConflict, Staging

    request = launch.RunRequest(
        argv=tuple(arguments.command),
        workspace=workspace,
        working_directory=_working_directory(workspace),
        task=task,
        policy=policy,
        oracle_name=oracle_name,
        oracle=oracle,
        environment=dict(os.environ),
        staging=Staging(arguments.staging) if arguments.staging else None,
        allow_degraded=arguments.allow_degraded,
        added_folders=tuple(os.path.abspath(folder) for folder in arguments.add_dir),
        on_conflict=OnConflict(arguments.on_conflict or ("refuse" if oracle_name == "strict" else "ask")),
        stood=_id_writer(arguments.id_file),
        plan=plan,
    )
    outcome = launch.run(request, _note(arguments))
    from interlock.cli.run_outcome import summary, tell

    if outcome.performer.resolution.asked:
        _tell_unused(oracle)
    if arguments.json:
        import json

        print(json.dumps(summary(outcome)), file=sys.stderr)
    else:
        tell(outcome, verbose=arguments.verbose)
    return exit_status(outcome)


def _id_writer(place: str | None) -> Callable[[str], None] | None:
    """Return what writes the run's id to a file, whole or not at all."""
    if place is None:
        return None

    def write(run_id: str) -> None:
        try:
            draft = f"{place}.{run_id}"
            with open(draft, "x", encoding="ascii") as file:
                file.write(f"{run_id}\n")
            os.replace(draft, place)
        except OSError as error:
            raise InputError(
                f"the run's id cannot be written to `{place}`: {error.strerror}",
                hint="name a file in a folder that you may write to",
            ) from error

    return write


def _say_profile(profile: Profile, arguments: argparse.Namespace) -> None:
    """Name the option by which an agent asks nobody, where it would wait for answers that cannot come."""
    from interlock.runtime.profiles import lacks_unattended

    option = lacks_unattended(profile, arguments.command)
    if option and not sys.stdin.isatty() and not arguments.json:
        print(
            f"interlock: {profile.name} may wait for answers that nobody gives here: `{option}` has it ask nothing, "
            "and Interlock holds what needs you",
            file=sys.stderr,
        )
    elif arguments.verbose:
        print(f"interlock: the profile `{profile.name}` ({safe(profile.filename)})", file=sys.stderr)


def workspace_of(given: str | None) -> str:
    """Return the folder to stage: the one given, else the repository that we are in. Raises: InputError."""
    path = os.path.realpath(given or os.getcwd())
    if not os.path.isdir(path):
        raise InputError(f"the workspace `{path}` is no folder", hint="give one: --workspace DIR")
    if not os.access(path, os.R_OK | os.X_OK):
        raise InputError(
            f"the workspace `{path}` cannot be read", hint="check its permissions: ls -ld " + path
        )
    if path == "/":
        raise InputError(
            "the whole file system cannot be a workspace", hint="go into a project's folder first"
        )
    if given is not None:
        return path
    from interlock.runtime.worktrees import top_of

    return top_of(path, os.path.realpath(os.environ.get("HOME") or "/")) or path


def _working_directory(workspace: str) -> str:
    current = os.path.realpath(os.getcwd())
    inside = os.path.commonpath((current, workspace)) == workspace
    return current if inside else workspace


def task_of(arguments: argparse.Namespace) -> str:
    """Return the task that was given, `""` for none. Raises: InputError."""
    if arguments.task is not None and arguments.task_file is not None:
        raise InputError("--task and --task-file cannot both be given", hint="give one of them")
    if arguments.task_file is not None:
        try:
            with open(arguments.task_file, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"the task file `{arguments.task_file}` cannot be read: "
                + (error.strerror or "it is not UTF-8" if isinstance(error, OSError) else "it is not UTF-8"),
                hint="give a text file: --task-file FILE",
            ) from error
    return str(arguments.task or "").encode("utf-8", "replace").decode("utf-8")


def _plan(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the plan's envelope, `""` for none, and the task, which is the plan's prompt. Raises: InputError."""
    task = task_of(arguments)
    if arguments.plan is None:
        if arguments.plan_key:
            raise InputError("--plan-key without a plan", hint="name the plan: --plan FILE")
        return "", task
    from interlock.runtime.plans import plan_to_follow

    found = plan_to_follow(arguments.plan, tuple(arguments.plan_key))
    if task and task != found.manifest.task:
        raise InputError(
            "the task is another one than the plan was made for",
            hint="leave --task out: the plan's prompt is the task; or plan that task: interlock plan",
        )
    return found.envelope, found.manifest.task


def _oracle(arguments: argparse.Namespace) -> tuple[str, Oracle]:
    from interlock import oracle

    chosen = arguments.oracle or ("human" if sys.stdin.isatty() and sys.stderr.isatty() else "strict")
    if arguments.answer_within is not None and not 0 < arguments.answer_within < 1e7:
        raise InputError(
            "`--answer-within` must be a number of seconds above 0", hint="as in --answer-within 600"
        )
    who = oracle.choose(
        chosen,
        terminal=sys.stdin.isatty() and sys.stderr.isatty(),
        deadline_s=arguments.answer_within,
        models=arguments.models,
    )
    if chosen == "review" and not arguments.json:
        print("interlock: what needs you waits for: interlock review (in another terminal)", file=sys.stderr)
    return ("hold" if arguments.hold else chosen), who


def _tell_unused(who: Oracle) -> None:
    """Say which answers given ahead decided nothing: a pattern with a typo refuses in silence."""
    from interlock.oracle import AnswersFile
    from interlock.oracle.panel import Panel

    for one in who.leaves() if isinstance(who, Panel) else (who,):
        for rule in one.unused if isinstance(one, AnswersFile) else ():
            print(
                f"interlock: answers, line {rule.line}: `{safe(rule.pattern)}` matched nothing",
                file=sys.stderr,
            )


def _note(arguments: argparse.Namespace) -> Callable[[str], None]:
    from interlock.runtime.staged_roots import NOT_STAGED

    def note(line: str) -> None:
        if arguments.verbose or sys.stderr.isatty() or (NOT_STAGED in line and not arguments.json):
            print(f"interlock: {line}", file=sys.stderr)

    return note


def exit_status(outcome: RunOutcome) -> int:
    """Return the command's own status, or 6 if it exited 0 and effects were refused, or our failure's."""
    resolution = outcome.performer.resolution
    if resolution.stuck:
        return 5
    if outcome.exit_signal:
        return 128 + outcome.exit_signal
    if outcome.exit_code > 0:
        return outcome.exit_code
    if resolution.fault:
        return resolution.fault_status
    if outcome.interruption:
        return 3
    return WITHHELD_EXIT_STATUS if resolution.refusals else 0
