"""A manifest in words that a user can read before signing it: steps, tools, what the kernel lets through, and the end.

Holds: nothing of the manifest that allows something is left out; what a toolkit's author wrote is shown as a quotation.
"""

import json
import textwrap
from collections.abc import Iterator

from interlock.manifest.canonical import parse
from interlock.manifest.document import Tree
from interlock.manifest.needs import host_text
from interlock.manifest.operations import OPERATIONS
from interlock.manifest.plans import LONGEST
from interlock.manifest.pointers import steps_of
from interlock.manifest.stopping import amount_text
from interlock.model.manifest import Branch, Hole, Manifest, Mode, PlannedTool, Step, StopConditions
from interlock.model.toolkits import Access, Needs

WIDTH = 100
_PIN_CHARACTERS = 16
_EFFECTS = {
    "read": "reads",
    "egress": "asks a service outside",
    "write": "changes something of yours",
    "send": "gives something to others",
    "destroy": "destroys something",
    "credential": "uses or changes a credential",
}
_STARTS = frozenset(("execve", "execveat"))
_CONNECTS = frozenset(("socket",))
_COVERED = {"net": "request", "file": "change of a file"}
_LIMITS = {
    "processes": "processes at most",
    "open-files": "open files at most",
    "file-bytes": "bytes in a file at most",
    "memory-bytes": "bytes of memory at most",
    "cpu-seconds": "seconds of processor time at most",
}


def in_words(manifest: Manifest, *, reasons: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yield sections: a heading, and lines without line ends that may hold any other character.

    Takes: `reasons`, whether each system call, path and limit is told with its reason.
    """
    yield "the task", list(_quoted(manifest.task))
    yield "the mode", list(_wrapped(_mode(manifest)))
    for branch in manifest.branches:
        many = len(manifest.branches) > 1 or branch.name
        named = f"steps of the agent `{branch.name or 'main'}`" if many else "steps"
        yield (
            f"{named}, in this order" if manifest.mode is Mode.EXACT else f"{named}, in any order",
            list(_steps(branch)),
        )
    yield "tools that may be called, as they were described", list(_tools(manifest))
    if manifest.lacking:
        yield "offered, not planned, and in need of more than is authorised", list(_lacking(manifest))
    yield "what the kernel lets through", list(_authorised(manifest, reasons=reasons))
    yield "it ends, whatever is left, at", list(_stop(manifest.stop))
    yield "regulations", list(_regulations(manifest))


def step_line(step: Step) -> str:
    """Return a step in one line, for messages: its tool and its parameters, shortened."""
    text = f"{step.tool} {step.parameters}"
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _mode(manifest: Manifest) -> str:
    if manifest.mode is Mode.VOUCH:
        return "vouch: a step of this plan is let through unasked; anything else is decided as without a plan"
    tools = {step.tool.partition(".")[0] for branch in manifest.branches for step in branch.steps}
    covered = ["tool call", *(word for kind, word in _COVERED.items() if kind in tools)]
    return f"exact: every {_and(covered)} that is not the next step, with these parameters, is refused"


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _steps(branch: Branch) -> Iterator[str]:
    if not branch.steps:
        yield "none: nothing may be done"
    width = max((len(step.id) for step in branch.steps), default=0)
    for number, step in enumerate(branch.steps, 1):
        yield f"{number:>3}  {step.id:<{width}}  {step.tool}"
        tree: Tree = parse(step.parameters)
        holes = {hole.at: hole for hole in step.holes}
        for name, value in sorted(tree.items()):
            yield from _parameter(name, value, f"/{_token(name)}", holes, 9 + width)


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _parameter(name: str, value: Tree, at: str, holes: dict[str, Hole], indent: int) -> Iterator[str]:
    pad = " " * indent
    if at in holes:
        yield f"{pad}{name}: {_hole(holes[at])}"
        return
    if any(pointer.startswith(f"{at}/") for pointer in holes) and isinstance(value, dict | list):
        yield f"{pad}{name}:"
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from _parameter(str(key), inner, f"{at}/{_token(str(key))}", holes, indent + 2)
        return
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    lines = textwrap.wrap(
        f"{name}: {text}",
        max(30, WIDTH - indent),
        subsequent_indent="  ",
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=False,
    )
    yield from (pad + line for line in lines or [f"{name}: {text}"])


def _hole(hole: Hole) -> str:
    kind = "a text" if hole.type == "text" else f"a value of the type {hole.type}"
    length = f", at most {hole.longest:,} characters" if hole.longest != LONGEST or not hole.step else ""
    if not hole.step:
        return f"<{kind} that the agent writes{length}; it is data and steers nothing>"
    where = f"at {hole.pointer}" if hole.pointer else "whole"
    every = " (* is any one)" if "*" in steps_of(hole.pointer) else ""
    return f"<{kind} from the answer to step {hole.step}, {where}{every}{length}>"


def _tools(manifest: Manifest) -> Iterator[str]:
    if not manifest.tools:
        yield "none"
    for tool in manifest.tools:
        yield from _tool(tool)


def _tool(tool: PlannedTool) -> Iterator[str]:
    given: Tree = parse(tool.definition)
    whose = f"toolkit {tool.toolkit}" if tool.toolkit else "no toolkit's: seen at the boundary"
    effect = _EFFECTS.get(given.get("effect", ""), "does something unknown")
    yield f"{tool.name}  ({whose}; {effect}; pinned {tool.digest[:_PIN_CHARACTERS]})"
    if tool.name not in OPERATIONS:
        yield from ("     " + line for line in _quoted(given.get("description", "")))
        for name, schema in given.get("parameters", {}).get("properties", {}).items():
            if isinstance(schema, dict) and isinstance(schema.get("description"), str):
                yield from ("     " + line for line in _quoted(schema["description"], f"{name}: "))
    told = given.get("discloses")
    if told:
        data, recipient = ", ".join(told.get("data", [])), ", ".join(told.get("recipient", []))
        yield f"     gives its {data} to its {recipient}"


def _lacking(manifest: Manifest) -> Iterator[str]:
    for name, needs in manifest.lacking:
        yield from _wrapped(f"{name}: {', '.join(needs)}")


def _authorised(manifest: Manifest, *, reasons: bool) -> Iterator[str]:
    needs = manifest.authorised
    if not manifest.authorises:
        yield from _wrapped(
            "no system-call guard: the sandbox's own rules alone hold (name a runtime: --runtime NAME)"
        )
        yield from (f"{line}  [not enforced by the kernel]" for line in _with_reasons(needs))
        return
    yield from _wrapped(
        f"for the runtime {manifest.runtime} and the planned tools; everything else fails, and is recorded"
    )
    if reasons:
        yield from _with_reasons(needs)
        return
    yield from _in_short(needs)
    yield "each with its reason: interlock plan show FILE --reasons"


def _in_short(needs: Needs) -> Iterator[str]:
    """Yield what matters most first: programs, connections, and what may be changed."""
    calls = {one.name for one in needs.system_calls}
    below = {access: [one.path for one in needs.paths if one.access is access] for access in Access}
    if calls & _STARTS:
        yield from _wrapped(f"starts programs  below {' '.join(below[Access.EXECUTE]) or 'nothing'}")
    else:
        yield "starts programs  none but the command itself"
    if needs.hosts and calls & _CONNECTS:
        yield from _wrapped(f"connects  to {' '.join(map(host_text, needs.hosts))}")
    else:
        yield "connects  to nothing" + (" but services of this machine's own" if calls & _CONNECTS else "")
    yield from _wrapped(f"changes files  below {' '.join(below[Access.WRITE]) or 'nothing'}")
    yield from _wrapped(f"reads files  below {' '.join(below[Access.READ]) or 'nothing more'}")
    by_owner: dict[str, list[str]] = {}
    for call in needs.system_calls:
        by_owner.setdefault(_owners(call.reason), []).append(call.name)
    for owner in sorted(by_owner):
        yield from _wrapped(f"system calls  of {owner}: {' '.join(by_owner[owner])}")
    if not needs.system_calls:
        yield "system calls  none"
    for limit in needs.limits:
        yield from _wrapped(f"limit  {limit.most:,} {_LIMITS[limit.limit.value]}")


def _owners(reason: str) -> str:
    """Return whose a need is: what stands before the colon of each of its reasons."""
    named = [part.partition(": ")[0] for part in reason.split("; ") if ": " in part]
    return " and ".join(sorted(set(named))) or "the plan"


def _with_reasons(needs: Needs) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for call in needs.system_calls:
        by_reason.setdefault(call.reason, []).append(call.name)
    for reason in sorted(by_reason):
        yield from _wrapped(f"calls  {' '.join(by_reason[reason])}  ({reason})")
    for place in needs.paths:
        yield from _wrapped(f"{place.access.value}  {place.path}  ({place.reason})")
    for host in needs.hosts:
        yield from _wrapped(f"host  {host_text(host)}  ({host.reason})")
    for limit in needs.limits:
        yield from _wrapped(f"limit  {limit.most:,} {_LIMITS[limit.limit.value]}  ({limit.reason})")


def _stop(stop: StopConditions) -> Iterator[str]:
    if stop.turns:
        yield f"{stop.turns:,} turns of the agent's model"
    if stop.wall_ms:
        yield f"{duration_text(stop.wall_ms)} after its start"
    if stop.tokens:
        yield f"{stop.tokens:,} tokens"
    if stop.money:
        yield f"{amount_text(stop.money)} spent on the model"
    for price in stop.prices:
        yield (
            f"  a million tokens of {price.model}: {amount_text(price.prompt)} read, "
            f"{amount_text(price.completion)} written"
        )
    if stop.failures:
        yield f"{stop.failures:,} calls or requests that failed or were refused"
    if stop.memory_bytes:
        yield f"{stop.memory_bytes:,} bytes of memory, of all its processes"
    if stop.external:
        yield "your word: interlock stop RUN, or Ctrl-C"


def duration_text(milliseconds: int) -> str:
    """Return a duration in its largest whole unit."""
    for unit, size in (("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000)):
        if milliseconds % size == 0:
            count = milliseconds // size
            return f"{count:,} {unit if count > 1 else unit[:-1]}"
    return f"{milliseconds:,} milliseconds"


def _regulations(manifest: Manifest) -> Iterator[str]:
    if not manifest.regulations:
        yield "none"
        return
    yield ", ".join(manifest.regulations) + ": each of these is judged before it happens"
    discloses = {tool.name for tool in manifest.tools if parse(tool.definition).get("discloses")}  # type: ignore[attr-defined]
    found = False
    for branch in manifest.branches:
        for step in branch.steps:
            if step.tool in discloses:
                found = True
                yield f"  step {step.id}: {step.tool}"
    if not found:
        yield "  no step discloses anything"


def _quoted(text: str, before: str = "") -> Iterator[str]:
    """Yield a text of somebody's as quoted lines."""
    for line in text.splitlines() or [""]:
        yield from textwrap.wrap(
            before + line, WIDTH - 7, initial_indent="| ", subsequent_indent="| ", break_on_hyphens=False
        ) or ["|"]
        before = ""


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, subsequent_indent="       ", break_on_hyphens=False)
