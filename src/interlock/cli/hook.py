"""`interlock hook`: tell an agent of a refusal before its tool runs; put the hook in its settings."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json
from interlock.model.errors import InputError, InterlockError

if TYPE_CHECKING:
    from argparse import Namespace

_OUTSIDE = (
    "this session does not run under Interlock, so nothing holds what its tools do "
    "(start the agent by `interlock run -- …`, or take the hook out: interlock hook {agent} --undo)"
)


def main(words: list[str]) -> int:
    """Run the verb; see `interlock hook --help`."""
    form = parser(
        "hook",
        "Answer an agent's hook before its tool runs, or put the hook in its settings. The boundary holds effects "
        "with or without it.",
        "interlock hook claude --install",
        "0, also where the tool is refused (the agent reads why on stdout); 2 input.",
    )
    form.add_argument("agent", choices=("claude", "codex", "gemini"), help="whose hook it is")
    form.add_argument("--install", action="store_true", help="put the hook in the agent's settings")
    form.add_argument("--undo", action="store_true", help="take it out of them")
    form.add_argument(
        "--status", action="store_true", help="say whether it is there, and why it would be skipped"
    )
    form.add_argument(
        "--project", action="store_true", help="mean the settings of this folder, not those of the home"
    )
    form.add_argument(
        "--outside",
        choices=("deny", "pass"),
        default="deny",
        help="what to answer where the agent does not run under Interlock (default: deny)",
    )
    form.add_argument("--json", action="store_true", help="with --install, --undo or --status: print JSON")
    arguments = form.parse_args(words)
    if arguments.install + arguments.undo + arguments.status > 1:
        raise InputError("`--install`, `--undo` and `--status` are three things", hint="give one of them")
    if arguments.status:
        return _status(arguments)
    if arguments.install or arguments.undo:
        return _change(arguments)
    return _answer(arguments.agent, arguments.outside)


def _answer(agent: str, outside: str) -> int:
    """Answer on stdout. Holds: whatever goes wrong, the answer is a denial."""
    from interlock.hooks import denial

    try:
        reason = _reason(agent, outside)
    except InterlockError as error:
        reason = f"Interlock could not judge it, so it must not run: {error.message}"
    except Exception as error:  # noqa: BLE001 - an agent takes a hook that broke for a yes
        reason = f"Interlock could not judge it, so it must not run: {type(error).__name__}"
    if reason:
        print(denial(agent, reason))
    return 0


def _reason(agent: str, outside: str) -> str:
    from interlock.hooks import ask_inside, read_call
    from interlock.hooks.settings import WAIT_S
    from interlock.hooks.wire import INPUT_BYTES
    from interlock.runtime.environment import NOTICES_VARIABLE

    call = read_call(agent, sys.stdin.buffer.read(INPUT_BYTES + 1))
    if call is None:
        return ""
    if NOTICES_VARIABLE not in os.environ:
        return "" if outside == "pass" else _OUTSIDE.format(agent=agent)
    # The agent must not give up on the hook before the hook gives up: it would take that for a yes.
    refused = ask_inside(call, deadline_s=WAIT_S * 0.9)
    if refused is None:
        return ""
    limits = "; ".join(refused.constraints)
    return (
        f"{refused.rationale} (rule: {refused.violated_rule}; type {refused.type.value})"
        f"{f'. Limits: {limits}' if limits else ''}. What is allowed: {refused.allowed_objective}"
    )


def _change(arguments: Namespace) -> int:
    from interlock.hooks import settings

    agent: str = arguments.agent
    folder = os.getcwd() if arguments.project else os.path.expanduser("~")
    place = settings.place_of(agent, folder)
    try:
        with open(place, encoding="utf-8") as file:
            before = file.read()
    except FileNotFoundError:
        before = ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"`{place}` cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}",
            hint="mend the file, then try again",
        ) from error
    if arguments.install:
        program = os.path.abspath(sys.argv[0])
        own = [sys.executable, "-m", "interlock"] if program.endswith("__main__.py") else [program]
        after = settings.with_hook(agent, before, shlex.join([*own, "hook", agent]))
    else:
        after = settings.without_hook(agent, before)
    if after != before:
        _write(place, after)
    did = "nothing to do" if after == before else "the hook is in" if arguments.install else "the hook is out"
    if arguments.json:
        print_json(
            {"agent": agent, "place": place, "changed": after != before, "installed": arguments.install}
        )
    else:
        print(f"{did}: {place}")
        if arguments.install and agent == "codex":
            print("codex skips it without a word until it is trusted: open `/hooks` in codex once")
    return 0


def _write(place: str, text: str) -> None:
    """Write a file whole or not at all; settings that are empty now go."""
    place = os.path.realpath(place)
    try:
        if not text:
            os.unlink(place)
            return
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        mode = os.stat(place).st_mode & 0o777 if os.path.exists(place) else 0o600
        draft = f"{place}.interlock-{os.getpid()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, place)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise InputError(
            f"`{place}` cannot be written: {error.strerror}",
            hint="look at its owner and mode, then try again",
        ) from error


def _status(arguments: Namespace) -> int:
    from interlock.hooks.settings import state_of

    state = state_of(arguments.agent, os.path.expanduser("~"), os.getcwd())
    if arguments.json:
        print_json(
            {
                "agent": state.agent,
                "place": state.place,
                "installed": state.installed,
                "skipped": list(state.skipped),
            }
        )
        return 0
    print(f"{'in' if state.installed else 'not in'}: {state.place}")
    for why in state.skipped:
        print(f"  skipped: {why}")
    return 0
