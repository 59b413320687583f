"""`interlock plan`: make, show, change, sign and check the plan of a task."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    import argparse

    from interlock.model.manifest import Manifest
    from interlock.runtime.plans import PlanFile

_EXAMPLE = """\
interlock plan "reply to ann" --toolkits ./mail.yaml --from steps.yaml --out plan.json
  interlock plan show plan.json
  interlock run --plan plan.json -- my-agent"""
_EXITS = "0; 2 a mistake in the plan or a toolkit, with what to change; `check`: 0 where your key signed it, else 2."


def main(words: list[str]) -> int:
    """Run the verb; see `interlock plan --help`."""
    verbs = {"show": _show, "edit": _edit, "sign": _sign, "check": _check}
    if words and words[0] in verbs:
        return verbs[words[0]](words[1:])
    return _make(words)


def _make(words: list[str]) -> int:
    from interlock.manifest.stopping import EXAMPLE
    from interlock.oracle.choose import MODELS_HELP

    form = parser(
        "plan",
        "Make the plan of a task: what may be called, in which order, and what the kernel lets through for it. "
        "`plan show FILE` says it in words; `plan edit FILE` changes it; `plan sign FILE` signs it; `plan check FILE` "
        "says whether it holds and who signed it.",
        _EXAMPLE,
        _EXITS,
    )
    form.add_argument(
        "prompt", nargs="?", metavar="PROMPT", help="the task in your words (or in the file of --from)"
    )
    form.add_argument("--task-file", metavar="FILE", help="the same, from a file")
    form.add_argument(
        "--toolkits", metavar="LIST", help="names or files, with commas; see `interlock toolkit list`"
    )
    form.add_argument("--regulations", metavar="LIST", help="names, with commas: gdpr,hipaa, or of your own")
    form.add_argument("--stop", metavar="LIST", help=f"when it ends, as in {EXAMPLE}")
    form.add_argument(
        "--price",
        metavar="MODEL=P/C",
        action="append",
        default=[],
        help="what a million tokens of prompt and completion cost, as in 'gpt-*=2.5/10' (may be given again)",
    )
    source = form.add_mutually_exclusive_group()
    source.add_argument("--from", dest="file", metavar="FILE", help="a plan that you wrote")
    source.add_argument(
        "--planner", metavar="NAME", help="a model of your file that plans; you sign what it planned"
    )
    source.add_argument(
        "--recorded", metavar="RUN", help="what an earlier run did; you sign what you want again"
    )
    form.add_argument("--models", metavar="FILE", help=MODELS_HELP)
    form.add_argument(
        "--mode",
        choices=("exact", "vouch"),
        help="exact (default): nothing else is done; vouch: nothing else is vouched for",
    )
    form.add_argument(
        "--runtime",
        metavar="NAME",
        help="what runs the tools: its own system calls are authorised too; none for no system-call guard "
        "(default: native where a planned tool names its calls, else none)",
    )
    form.add_argument("--allow-nothing", action="store_true", help="a plan without steps is meant")
    form.add_argument("--out", metavar="FILE", help="where to write it (default: show it only)")
    _add_key(form)
    form.add_argument(
        "--sign", action="store_true", help="sign what a model or a run planned without being asked"
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    return _made(form.parse_args(words))


def _add_key(form: argparse.ArgumentParser) -> None:
    form.add_argument(
        "--key", metavar="FILE", help="the key to sign with (default: your own, made at first use)"
    )


def _made(arguments: argparse.Namespace) -> int:
    from interlock.manifest.stopping import parse_price, parse_stop
    from interlock.runtime.planning import Wanted, made

    prices = tuple(parse_price(one) for one in arguments.price)
    if prices and not arguments.stop:
        raise InputError("--price without --stop", hint="say how much: --stop money=1.50")
    planned = made(
        Wanted(
            prompt=_prompt(arguments),
            file=arguments.file,
            planner=arguments.planner,
            recorded=arguments.recorded,
            models=arguments.models,
            toolkits=_listed(arguments.toolkits),
            regulations=_listed(arguments.regulations) if arguments.regulations is not None else None,
            stop=parse_stop(arguments.stop, prices) if arguments.stop else None,
            mode=arguments.mode,
            runtime=arguments.runtime,
            allow_nothing=arguments.allow_nothing,
        )
    )
    for line in planned.notes:
        print(f"interlock: {safe(line)}", file=sys.stderr)
    if not arguments.json:
        _print(planned.manifest, "")
    if not arguments.out:
        if arguments.json:
            from interlock.manifest.reading import manifest_tree

            print_json(manifest_tree(planned.manifest))
        else:
            print("interlock: nothing is written without --out FILE", file=sys.stderr)
        return 0
    own = planned.manifest.planner == "person"
    sign = own or arguments.sign or (not arguments.json and _agreed())
    return _written(planned.manifest, arguments, sign=sign)


def _agreed() -> bool:
    """Ask the user to sign what somebody else planned; where nobody can answer it is left unsigned."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print("interlock: is this what you want done? sign it [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _written(manifest: Manifest, arguments: argparse.Namespace, *, sign: bool) -> int:
    from interlock.evidence.envelopes import key_name
    from interlock.runtime.plans import open_key, signed, write_plan

    key = open_key(arguments.key) if sign else None
    write_plan(arguments.out, signed(manifest, key))
    signer = key_name(key.public_bytes) if key is not None else ""
    if arguments.json:
        print_json({"file": arguments.out, "signers": [signer] if signer else []})
    elif signer:
        print(
            f"interlock: signed by {signer}; run it: interlock run --plan {safe(arguments.out)} -- …",
            file=sys.stderr,
        )
    else:
        print(
            f"interlock: not signed yet, so nothing follows it: interlock plan sign {safe(arguments.out)}",
            file=sys.stderr,
        )
    return 0


def _prompt(arguments: argparse.Namespace) -> str:
    from interlock.runtime.policies import read_text

    if arguments.prompt is not None and arguments.task_file is not None:
        raise InputError("PROMPT and --task-file cannot both be given", hint="give one of them")
    if arguments.task_file is not None:
        return read_text(arguments.task_file, "task file", "give a text file: --task-file FILE")
    return str(arguments.prompt or "").encode("utf-8", "replace").decode("utf-8")


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _one_file(verb: str, summary: str) -> argparse.ArgumentParser:
    form = parser(f"plan {verb}", summary, f"interlock plan {verb} plan.json", _EXITS)
    form.add_argument("file", metavar="FILE", help="a plan that `interlock plan` wrote")
    form.add_argument("--json", action="store_true", help="print JSON")
    return form


def _show(words: list[str]) -> int:
    form = _one_file("show", "Say in words what a plan lets an agent do.")
    form.add_argument(
        "--reasons", action="store_true", help="each system call, path and limit with its reason"
    )
    arguments = form.parse_args(words)
    from interlock.runtime.plans import read_plan

    found = read_plan(arguments.file)
    if arguments.json:
        from interlock.manifest.reading import manifest_tree

        print_json({"signers": list(found.signers), "manifest": manifest_tree(found.manifest)})
        return 0
    _print(found.manifest, _signed_by(found), reasons=arguments.reasons)
    return 0


def _check(words: list[str]) -> int:
    form = _one_file("check", "Say whether a plan holds, and who signed it.")
    form.add_argument(
        "--plan-key",
        metavar="KEY",
        action="append",
        default=[],
        help="a key beside yours that may have signed it",
    )
    arguments = form.parse_args(words)
    from interlock.runtime.plans import plan_to_follow

    found = plan_to_follow(arguments.file, tuple(arguments.plan_key))
    steps = sum(len(branch.steps) for branch in found.manifest.branches)
    if arguments.json:
        print_json({"signers": list(found.signers), "steps": steps, "task": found.manifest.task})
    else:
        print(f"{safe(arguments.file)} holds: {steps} steps, {_signed_by(found)}")
    return 0


def _sign(words: list[str]) -> int:
    form = _one_file("sign", "Show a plan, and sign it as it is; a signature that was there is replaced.")
    _add_key(form)
    form.add_argument("--out", metavar="FILE", help="where to write it (default: the same file)")
    arguments = form.parse_args(words)
    from interlock.runtime.plans import read_plan

    found = read_plan(arguments.file)
    if not arguments.json:
        _print(found.manifest, _signed_by(found))
    arguments.out = arguments.out or arguments.file
    return _written(found.manifest, arguments, sign=True)


def _edit(words: list[str]) -> int:
    form = _one_file(
        "edit", "Change a plan in your editor (or by a file), derive it anew, show it and sign it."
    )
    _add_key(form)
    form.add_argument(
        "--from", dest="changed", metavar="FILE", help="the changed plan, instead of the editor"
    )
    form.add_argument(
        "--toolkits", metavar="LIST", help="where its toolkits are (default: those that ship, by name)"
    )
    form.add_argument("--runtime", metavar="NAME", help="another runtime (default: the same)")
    form.add_argument("--repin", action="store_true", help="take toolkits that changed since as they are now")
    form.add_argument("--allow-nothing", action="store_true", help="a plan without steps is meant")
    form.add_argument("--out", metavar="FILE", help="where to write it (default: the same file)")
    arguments = form.parse_args(words)
    from interlock.runtime.planning import edited
    from interlock.runtime.plans import read_plan

    found = read_plan(arguments.file)
    manifest = edited(
        found.manifest,
        changed=arguments.changed,
        toolkits=_listed(arguments.toolkits),
        runtime=arguments.runtime,
        repin=arguments.repin,
        allow_nothing=arguments.allow_nothing,
    )
    if not arguments.json:
        _print(manifest, "")
    arguments.out = arguments.out or arguments.file
    return _written(manifest, arguments, sign=True)


def _signed_by(found: PlanFile) -> str:
    from interlock.runtime.plans import own_signer

    if not found.signers:
        return "not signed"
    own = own_signer()
    return ", ".join(f"signed by {name}" + (" (your key)" if name == own else "") for name in found.signers)


def _print(manifest: Manifest, signed: str, *, reasons: bool = False) -> None:
    from interlock.manifest.words import in_words

    ink = Ink(sys.stdout)
    planner = "a person" if manifest.planner == "person" else manifest.planner
    print(ink.faint(f"planned by {safe(planner)}" + (f"; {safe(signed)}" if signed else "")))
    for heading, lines in in_words(manifest, reasons=reasons):
        print(ink.strong(safe(heading)))
        for line in lines:
            print(f"  {safe(line)}")
