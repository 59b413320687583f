"""The command line: one file per verb. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

VERBS = {
    "run": "run a command on a staged copy; review, commit or discard what it did",
    "plan": "say what a task may do, sign it, and look at it before anything runs",
    "toolkit": "list, show or check what tools need of the kernel, or propose it from a run",
    "mcp": "guard an MCP server: its tools' calls are decided before it sees them",
    "acp": "run an editor's agent so, and ask in the editor what needs you",
    "gateway": "audit any agent's model traffic, as its base URL",
    "runs": "list runs and what became of them",
    "show": "show what a run did, decision by decision",
    "diff": "show what an open run has staged",
    "why": "say why an effect was released, held or refused",
    "grants": "list what was granted in a run, or change it",
    "labels": "show what earlier runs left in places, or forget it",
    "notices": "say what was refused and why, inside a run or of one",
    "review": "answer what a run waits for, or resolve what it did so far",
    "apply": "commit what an open run has staged",
    "discard": "drop what an open run has staged",
    "stop": "end a run's command and leave what it did for later",
    "undo": "take back what a closed run committed",
    "recover": "finish or roll back what a crash cut off in a commit",
    "verify": "check a run's evidence, offline",
    "witness": "give a run's newest signed head to somebody else to keep",
    "disclose": "write a run's evidence as one file, whole or in part",
    "shred": "take payloads out of a run's evidence for good",
    "report": "say what runs did and were kept from, for people who check it",
    "policy": "make, check or show a policy",
    "lens": "list, show or test what tells requests apart as actions of a service",
    "oracle": "see how an oracle judges cases of which the right answer is known",
    "profile": "list, show or check the profiles of agents, or propose one",
    "hook": "tell an agent of a refusal before its tool runs, by its own hooks",
    "models": "list the models that an oracle may ask, or check one",
    "doctor": "say what this machine can enforce",
    "bench": "measure a policy on tasks and attacks, with a played agent",
    "demo": "see all of it on a small example",
}


def usage() -> str:
    """Return the text of `interlock --help`."""
    width = max(map(len, VERBS))
    lines = [
        "usage: interlock VERB [options]",
        "",
        "Run an LLM agent, unmodified, on a staged copy: what cannot be vouched for is held.",
        "",
        *(f"  {verb:<{width}}  {summary}" for verb, summary in VERBS.items()),
        "",
        "example: interlock run -- codex exec 'fix the failing test'",
        "more:    interlock VERB --help",
    ]
    return "\n".join(lines)


def entry() -> NoReturn:
    """Run the command line as a process of its own.

    The interpreter is not taken down object by object: that costs a run more than its gate does, and nothing
    waits for it (files are closed, the ledger is sealed, what was printed is flushed).
    """
    status = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Returns: the exit status: the command's own for `run`, else 0, or by error class (docs/errors.md):
    input 2, boundary 3, integrity 4, stuck 5, effects refused 6, bug 70.
    """
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage(), file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        from interlock import __version__

        print(f"interlock {__version__}")
        return 0
    if words[0] not in VERBS:
        print(f"interlock: there is no verb `{words[0]}`\n\n{usage()}", file=sys.stderr)
        return 2
    from interlock.model.errors import InterlockError

    if not os.environ.get("HOME") or "SUDO_UID" in os.environ:
        from interlock.runtime.surroundings import settle

        if (line := settle(os.environ)) and words[0] == "run":
            print(f"interlock: {line}", file=sys.stderr)
    verb = import_module(f"interlock.cli.{words[0]}")
    try:
        status: int = verb.main(words[1:])
        sys.stdout.flush()
    except InterlockError as error:
        from interlock.cli.output import tell_error

        return tell_error(error, as_json="--json" in words)
    except BrokenPipeError:
        # The reader of our output went away (`interlock show … | head`): not an error of ours.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    return status
