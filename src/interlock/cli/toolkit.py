"""`interlock toolkit`: list, show or check what tools need of the kernel, or propose it from an observed run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json
from interlock.model.errors import InputError

if TYPE_CHECKING:
    import argparse

    from interlock.boundary.confined import Confined
    from interlock.model.toolkits import Needs, Toolkit

_RUNTIMES = "runtimes/"
_FOREIGN = "injecagent/"


def main(words: list[str]) -> int:
    """Run the verb; see `interlock toolkit --help`."""
    form = parser(
        "toolkit",
        "List, show or check toolkits: what tools take, and what of the kernel they need, each entry with its reason.",
        "interlock toolkit check git -- git status; interlock toolkit record -- make test",
        "0; 2 a mistake, with its line and fix; 3 this kernel cannot; 6 `check -- CMD`: a call was refused.",
    )
    form.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "show", "check", "record"),
        help="list (the default); show NAME|FILE; check NAME|FILE [-- CMD]: look for mistakes, and run CMD under it; "
        "record -- CMD: run CMD unconfined, and propose a toolkit",
    )
    form.add_argument("words", nargs="*", metavar="NAME|FILE|-- CMD", help="which, or a command after `--`")
    form.add_argument(
        "--tool", help="check: with the needs of this tool alone, in place of all of the toolkit's"
    )
    form.add_argument(
        "--runtime", default="native", help="what programs need anyway: native, python, node or a FILE"
    )
    form.add_argument("--name", help="record: the toolkit's name; the program's own by default")
    form.add_argument("--out", metavar="FILE", help="record: write it there, and not to stdout")
    form.add_argument("--json", action="store_true", help="print JSON")
    at = words.index("--") if "--" in words else len(words)
    given = form.parse_args(words[:at])
    command = tuple(words[at + 1 :])
    match given.action:
        case "record":
            if given.words or not command:
                form.error("record takes a command after `--`")
            return _record(given, command)
        case "list":
            return _list(as_json=given.json)
        case _:
            if len(given.words) != 1 or (command and given.action == "show"):
                form.error(f"{given.action} takes one NAME or FILE")
            return _show(given) if given.action == "show" else _check(given, command)


def _kit(use: str) -> Toolkit:
    from interlock.runtime import toolkits

    if use.startswith(_RUNTIMES):
        return toolkits.load_runtime(use.removeprefix(_RUNTIMES))
    if toolkits.is_file(use):
        from interlock.manifest.toolkits import load_toolkit
        from interlock.runtime.policies import read_text

        hint = "see those that ship: interlock toolkit list"
        return load_toolkit(read_text(os.path.expanduser(use), "toolkit", hint), use)
    return toolkits.load(use)


def _list(*, as_json: bool) -> int:
    from interlock.runtime import toolkits

    names = [name for name, _ in toolkits.shipped()]
    names += [_RUNTIMES + name for name, _ in toolkits.runtimes()]
    kits = {name: _kit(name) for name in names if as_json or not name.startswith(_FOREIGN)}
    if as_json:
        print_json(
            [
                {"name": name, "description": kit.description, "tools": [one.name for one in kit.tools]}
                for name, kit in kits.items()
            ]
        )
        return 0
    foreign = [name for name in names if name.startswith(_FOREIGN)]
    width = max(map(len, kits))
    for name, kit in kits.items():
        what = _count(len(kit.tools)) if kit.tools else "runtime"
        print(f"{name:<{width}}  {what:<8}  {kit.description}")
    if foreign:
        print(f"and {len(foreign)} below {_FOREIGN}, whose tools answer with placeholders:")
        print("  " + ", ".join(name.removeprefix(_FOREIGN) for name in foreign))
    return 0


def _show(given: argparse.Namespace) -> int:
    from interlock.manifest.toolkits import toolkit_tree
    from interlock.runtime import toolkits
    from interlock.runtime.toolkit_text import text_of

    use = given.words[0]
    kit = _kit(use)
    if given.json:
        print_json({**toolkit_tree(kit), "digest": kit.digest})
        return 0
    known = dict(toolkits.shipped()) | {_RUNTIMES + name: path for name, path in toolkits.runtimes()}
    if (path := known.get(use)) is None:
        sys.stdout.write(text_of(kit, [use]))
        return 0
    with open(path, encoding="utf-8") as file:
        sys.stdout.write(file.read())
    return 0


def _check(given: argparse.Namespace, command: tuple[str, ...]) -> int:
    from interlock.runtime.toolkit_checking import absent, notes

    use = given.words[0]
    kit = _kit(use)
    found = notes(kit)
    if not command:
        missing = absent(kit)
        if given.json:
            print_json({"name": kit.name, "valid": True, "notes": list(found), "absent": list(missing)})
            return 0
        print(f"{use}: no mistake found; {_count(len(kit.tools))}, {_sum(kit.needs)}")
        for line in found:
            print(f"note: {line}")
        if missing:
            print(f"not on this machine, and left out here: {', '.join(missing)}")
        return 0
    return _try(given, kit, command)


def _count(tools: int) -> str:
    return f"{tools} tool{'s' if tools != 1 else ''}"


def _sum(needs: Needs) -> str:
    return f"{len(needs.system_calls)} system calls, {len(needs.paths)} places, {len(needs.hosts)} hosts"


def _try(given: argparse.Namespace, kit: Toolkit, command: tuple[str, ...]) -> int:
    from interlock.boundary.confined import run_command
    from interlock.runtime.toolkit_checking import needs_for, remedy, runtime_for

    runtime = given.runtime or runtime_for(command)
    tried = run_command(command, needs_for(kit, runtime, given.tool or ""))
    if given.json:
        print_json(_tried(tried))
        return 6 if tried.denials else 0
    sys.stdout.flush()
    sys.stdout.buffer.write(tried.out)
    sys.stdout.flush()
    sys.stderr.buffer.write(tried.err)
    sys.stderr.flush()
    for line in tried.degraded:
        print(f"interlock: {line}", file=sys.stderr)
    ended = f"signal {tried.signal}" if tried.signal else f"exit {tried.code}"
    for denial in tried.denials:
        about = f" ({denial.detail})" if denial.detail else ""
        times = f", {denial.count} times" if denial.count > 1 else ""
        print(
            f"refused: {denial.name}{about}{times}; {remedy(denial.name, denial.advice, given.words[0])}",
            file=sys.stderr,
        )
    if not tried.denials:
        print(f"interlock: {ended}, no call was refused", file=sys.stderr)
        if tried.code:
            print(
                "interlock: where it says `Permission denied`, a place is missing: "
                f"interlock toolkit record -- {command[0]} … names it",
                file=sys.stderr,
            )
    return 6 if tried.denials else 0


def _tried(tried: Confined) -> dict[str, object]:
    return {
        "exit": tried.code,
        "signal": tried.signal,
        "refused": [
            {"call": one.name, "about": one.detail, "count": one.count, "line": one.advice}
            for one in tried.denials
        ],
        "receipt": {str(key): str(value) for key, value in tried.receipt},
    }


def _record(given: argparse.Namespace, command: tuple[str, ...]) -> int:
    """Run the command with its output on stderr, so that stdout is the toolkit alone."""
    from interlock.boundary.recording import record
    from interlock.runtime import toolkits
    from interlock.runtime.toolkit_checking import runtime_for
    from interlock.runtime.toolkit_proposing import heading, here, toolkit_from
    from interlock.runtime.toolkit_text import text_of

    runtime = given.runtime or runtime_for(command)
    known = toolkits.load_runtime(runtime).needs
    if given.out and os.path.exists(given.out):
        raise InputError(f"`{given.out}` is there already", hint="name another file, or remove it")
    name = given.name or os.path.basename(command[0])
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        found = record(command)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    kit = toolkit_from(found, name, command, here(), known)
    text = text_of(kit, heading(found, command, runtime))
    if given.out:
        with open(given.out, "x", encoding="utf-8") as file:
            file.write(text)
        print(
            f"{given.out}: {_sum(kit.needs)}; read it, then: interlock toolkit check {given.out} -- {command[0]} …"
        )
    else:
        sys.stdout.write(text)
    return 0
