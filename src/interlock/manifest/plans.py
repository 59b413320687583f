"""Plans: what a person, a model or a recorded run says that a task takes. Only `deriving` makes a manifest of one."""

import re

from interlock.manifest.canonical import canonical, parse
from interlock.manifest.document import Document, Path, Tree, read_document
from interlock.manifest.pointers import replaced, steps_of, written
from interlock.manifest.stopping import read_stop, stop_tree
from interlock.manifest.typed import MAX_LONGEST, TYPES, is_type
from interlock.model.errors import InputError
from interlock.model.manifest import Branch, Hole, Manifest, Mode, Step, StopConditions
from interlock.model.records import changed, dataclass

PLAN = "plan/1"
MAX_STEPS = 2000
MAX_BRANCHES = 64
MAX_HOLES = 64
MAX_PROMPT = 100_000
LONGEST = 65536
"""What a hole takes where it says nothing, in characters."""
KEYS = ("interlock", "prompt", "mode", "planner", "toolkits", "regulations", "stop", "steps", "branches")
STEP_KEYS = ("id", "tool", "parameters")
HOLE_KEYS = ("from", "at", "type", "longest")
UNTYPED = ""
"""The type of a hole that says none: deriving takes the parameter's own."""
_STEP = "- {id: s1, tool: send_email, parameters: {to: ann@example.com}}"
_HOLE = "{hole: {from: s1, at: /id, type: email}}"
_ID = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan as it was given.

    Takes: `steps` of its branches without digests, and with `""` as the type of a hole that says none; `toolkits`, the
    names that the plan itself asks for; `stop`, None where it says nothing.
    """

    task: str
    branches: tuple[Branch, ...]
    mode: Mode = Mode.EXACT
    planner: str = "person"
    toolkits: tuple[str, ...] = ()
    regulations: tuple[str, ...] = ()
    stop: StopConditions | None = None


def load_plan(text: str, filename: str) -> Plan:
    """Read a plan's file, YAML or JSON. Raises: InputError, with its place where it is YAML."""
    document = read_document(text, filename=filename)
    given = document.section((), KEYS, f"interlock: {PLAN}")
    if given.get("interlock") != PLAN:
        raise document.mistake(
            ("interlock",) if "interlock" in given else (),
            "it does not say that it is a plan",
            f"begin with `interlock: {PLAN}`",
        )
    if "prompt" not in given:
        raise document.mistake((), "it has no `prompt`", "add `prompt:` with the task in your words")
    if ("steps" in given) == ("branches" in given):
        raise document.mistake(
            (), "it has neither or both of `steps` and `branches`", f"write `steps:` and `{_STEP}`"
        )
    branches = (
        _branches(document)
        if "branches" in given
        else (Branch(name="", steps=_steps(document, ("steps",), "")),)
    )
    if sum(len(branch.steps) for branch in branches) > MAX_STEPS:
        raise document.mistake((), f"a plan has at most {MAX_STEPS} steps", "plan a smaller task")
    prompt = document.text(("prompt",), "prompt: pay the bill")
    if len(prompt) > MAX_PROMPT:
        raise document.mistake(("prompt",), f"a prompt of more than {MAX_PROMPT} characters", "shorten it")
    return Plan(
        task=prompt,
        branches=branches,
        mode=_mode(document) if "mode" in given else Mode.EXACT,
        planner=_planner(document) if "planner" in given else "person",
        toolkits=document.texts(("toolkits",), "toolkits: [gmail, shell]") if "toolkits" in given else (),
        regulations=document.texts(("regulations",), "regulations: [gdpr]") if "regulations" in given else (),
        stop=read_stop(document, ("stop",)) if given.get("stop") is not None else None,
    )


def plan_of(manifest: Manifest) -> Plan:
    """Return the plan that a manifest was made of."""
    return Plan(
        task=manifest.task,
        branches=tuple(
            Branch(name=branch.name, steps=tuple([changed(step, digest="") for step in branch.steps]))
            for branch in manifest.branches
        ),
        mode=manifest.mode,
        planner=manifest.planner,
        toolkits=tuple(name for name, _ in manifest.toolkits),
        regulations=manifest.regulations,
        stop=manifest.stop,
    )


def plan_tree(plan: Plan) -> dict[str, Tree]:
    """Return a plan as its file holds it."""
    tree: dict[str, Tree] = {
        "interlock": PLAN,
        "prompt": plan.task,
        "mode": plan.mode.value,
        "planner": plan.planner,
    }
    if plan.toolkits:
        tree["toolkits"] = list(plan.toolkits)
    if plan.regulations:
        tree["regulations"] = list(plan.regulations)
    if plan.stop is not None and (stop := stop_tree(plan.stop)):
        tree["stop"] = stop
    if len(plan.branches) == 1 and plan.branches[0].name == "":
        return {**tree, "steps": [step_tree(step) for step in plan.branches[0].steps]}
    return {
        **tree,
        "branches": [
            {"name": branch.name, "steps": [step_tree(step) for step in branch.steps]}
            for branch in plan.branches
        ],
    }


def step_tree(step: Step) -> dict[str, Tree]:
    """Return a step as a plan's file holds it."""
    parameters = parse(step.parameters)
    for hole in step.holes:
        told: dict[str, Tree] = {"from": hole.step, "at": hole.pointer} if hole.step else {}
        if hole.type != UNTYPED:
            told["type"] = hole.type
        if hole.longest != LONGEST:
            told["longest"] = hole.longest
        parameters = replaced(parameters, hole.at, {"hole": told})
    return {"id": step.id, "tool": step.tool, "parameters": parameters}


def _mode(document: Document) -> Mode:
    known = [mode.value for mode in Mode]
    if document.at(("mode",)) not in known:
        raise document.mistake(
            ("mode",), "no mode of a plan", f"write `mode: {known[0]}` or `mode: {known[1]}`"
        )
    return Mode(document.at(("mode",)))


def _planner(document: Document) -> str:
    text = document.text(("planner",), "planner: person")
    if len(text) > 200 or not text.isprintable():
        raise document.mistake(("planner",), "no planner's name", "write `planner: person`")
    return text


def _branches(document: Document) -> tuple[Branch, ...]:
    found: list[Branch] = []
    entries = document.entries(("branches",), "- {name: writer, steps: […]}")
    if len(entries) > MAX_BRANCHES:
        raise document.mistake(("branches",), f"more than {MAX_BRANCHES} branches", "use fewer agents")
    for path, _ in entries:
        given = document.section(path, ("name", "steps"), "- {name: writer, steps: […]}")
        name = given.get("name", "")
        if not isinstance(name, str) or (name and re.fullmatch(_ID, name) is None):
            raise document.mistake((*path, "name"), "no branch's name", "use letters, digits, `-` and `_`")
        if name in [branch.name for branch in found]:
            raise document.mistake(
                (*path, "name"), f"the branch `{name}` is there twice", "name it otherwise"
            )
        if "steps" not in given:
            raise document.mistake(path, "it has no `steps`", f"add `steps:` and `{_STEP}`")
        found.append(Branch(name=name, steps=_steps(document, (*path, "steps"), name)))
    if not found:
        raise document.mistake(
            ("branches",), "there is none", "write `steps: []` for a plan that allows nothing"
        )
    return tuple(found)


def _steps(document: Document, path: Path, branch: str) -> tuple[Step, ...]:
    entries = document.entries(path, _STEP)
    if len(entries) > MAX_STEPS:
        raise document.mistake(
            path, f"{len(entries)} steps; a plan has at most {MAX_STEPS}", "plan a smaller task"
        )
    found = []
    for number, (where, _) in enumerate(entries, 1):
        given = document.section(where, STEP_KEYS, _STEP)
        if "tool" not in given:
            raise document.mistake(where, "it names no `tool`", f"write it as in `{_STEP}`")
        name = f"{branch}.s{number}" if branch else f"s{number}"
        step_id = document.text((*where, "id"), _STEP) if "id" in given else name
        if re.fullmatch(_ID, step_id) is None:
            raise document.mistake((*where, "id"), "no step's id", "use letters, digits, `-`, `_` and `.`")
        parameters = given.get("parameters", {})
        if not isinstance(parameters, dict):
            raise document.mistake(
                (*where, "parameters"), "it must be a mapping", f"write it as in `{_STEP}`"
            )
        holes: list[Hole] = []
        bare = _without_holes(document, (*where, "parameters"), parameters, (), holes)
        if len(holes) > MAX_HOLES:
            raise document.mistake(where, f"more than {MAX_HOLES} holes", "split the step")
        try:
            text = canonical(bare)
        except InputError as error:
            raise document.mistake((*where, "parameters"), error.message, error.hint) from error
        tool = document.text((*where, "tool"), _STEP)
        if len(tool) > 200 or not tool.isprintable():
            raise document.mistake((*where, "tool"), "no tool's name", "write it as its toolkit does")
        found.append(
            Step(id=step_id, tool=tool, parameters=text, holes=tuple(sorted(holes, key=lambda one: one.at)))
        )
    return tuple(found)


def _without_holes(
    document: Document, path: Path, value: Tree, at: tuple[str, ...], holes: list[Hole]
) -> Tree:
    if isinstance(value, dict):
        if set(value) == {"hole"} and at:
            holes.append(_hole(document, (*path, "hole"), written(at)))
            return None
        return {
            key: _without_holes(document, (*path, key), inner, (*at, key), holes)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [
            _without_holes(document, (*path, index), inner, (*at, str(index)), holes)
            for index, inner in enumerate(value)
        ]
    return value


def _hole(document: Document, path: Path, at: str) -> Hole:
    given = document.section(path, HOLE_KEYS, _HOLE)
    step = document.text((*path, "from"), _HOLE) if "from" in given else ""
    pointer = document.text((*path, "at"), _HOLE, empty=True) if "at" in given else ""
    if pointer and not step:
        raise document.mistake((*path, "at"), "`at` without `from`", f"write it as in `{_HOLE}`")
    try:
        steps_of(pointer)
    except ValueError as error:
        raise document.mistake((*path, "at"), str(error), f"write it as in `{_HOLE}`") from error
    kind = document.text((*path, "type"), _HOLE) if "type" in given else UNTYPED
    if kind != UNTYPED and not is_type(kind):
        raise document.mistake(
            (*path, "type"), "no type of values", f"use one of: {', '.join(TYPES)}, id:NAME"
        )
    longest = (
        document.count((*path, "longest"), "{hole: {type: text, longest: 4000}}", most=MAX_LONGEST)
        if "longest" in given
        else LONGEST
    )
    return Hole(at=at, step=step, pointer=pointer, type=kind, longest=longest)
