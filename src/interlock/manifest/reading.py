"""A manifest as text and back: one canonical JSON object, in which every key is there and none is unknown."""

from interlock.manifest.actions import step_digest
from interlock.manifest.canonical import canonical, digest, parse
from interlock.manifest.document import Document, Path, Tree
from interlock.manifest.needs import needs_tree, read_needs
from interlock.manifest.typed import MAX_LONGEST, is_type
from interlock.model.errors import InputError
from interlock.model.manifest import (
    Branch,
    Hole,
    Manifest,
    Mode,
    PlannedTool,
    Price,
    StatedGuard,
    Step,
    StopConditions,
)
from interlock.model.records import changed

FORMAT = "manifest/1"
MAX_LENGTH = 16_000_000
_KEYS = (
    "interlock",
    "task",
    "mode",
    "planner",
    "branches",
    "tools",
    "toolkits",
    "runtime",
    "authorised",
    "authorises",
    "lacking",
    "regulations",
    "stop",
    "guards",
)
_HINT = "make it anew: interlock plan"
_COUNTS = ("turns", "wall_ms", "tokens", "money", "failures", "memory_bytes")


def write_manifest(manifest: Manifest) -> str:
    """Return a manifest's canonical JSON; what stands in `Manifest.text` is no part of it."""
    return canonical(manifest_tree(manifest))


def manifest_tree(manifest: Manifest) -> dict[str, Tree]:
    """Return a manifest as JSON values."""
    return {
        "interlock": FORMAT,
        "task": manifest.task,
        "mode": manifest.mode.value,
        "planner": manifest.planner,
        "branches": [
            {"name": branch.name, "steps": [_step_tree(step) for step in branch.steps]}
            for branch in manifest.branches
        ],
        "tools": [
            {
                "name": one.name,
                "toolkit": one.toolkit,
                "digest": one.digest,
                "definition": parse(one.definition),
            }
            for one in manifest.tools
        ],
        "toolkits": [{"name": name, "digest": told} for name, told in manifest.toolkits],
        "runtime": manifest.runtime,
        "authorised": needs_tree(manifest.authorised),
        "authorises": manifest.authorises,
        "lacking": [{"tool": tool, "needs": list(needs)} for tool, needs in manifest.lacking],
        "regulations": list(manifest.regulations),
        "stop": {
            **{key: getattr(manifest.stop, key) for key in _COUNTS},
            "prices": [
                {"model": one.model, "prompt": one.prompt, "completion": one.completion}
                for one in manifest.stop.prices
            ],
            "external": manifest.stop.external,
        },
        "guards": [
            {"name": one.name, "scope": one.scope, "predicate": one.predicate, "spec": parse(one.spec)}
            for one in manifest.guards
        ],
    }


def load_manifest(text: str) -> Manifest:
    """Read a manifest's text.

    Holds: writing it gives the canonical form of the same text, which `Manifest.text` has; each digest in it is that of
    what it stands for. Raises: InputError.
    """
    if len(text) > MAX_LENGTH:
        raise InputError(f"the manifest is longer than {MAX_LENGTH} characters", hint=_HINT)
    values = parse(text)
    if not isinstance(values, dict):
        raise InputError("the manifest is no JSON object", hint=_HINT)
    manifest = _read(Document(filename="manifest", values=values))
    return changed(manifest, text=canonical(values))


def _read(document: Document) -> Manifest:
    given = _whole(document, (), _KEYS)
    if given["interlock"] != FORMAT:
        raise document.mistake(("interlock",), f"it is not of the form `{FORMAT}`", _HINT)
    if given["mode"] not in [mode.value for mode in Mode]:
        raise document.mistake(("mode",), "no mode", _HINT)
    branches = tuple(_branch(document, path) for path, _ in document.entries(("branches",), _HINT))
    if len({branch.name for branch in branches}) != len(branches):
        raise document.mistake(("branches",), "a branch is there twice", _HINT)
    steps = [step for branch in branches for step in branch.steps]
    if len({step.id for step in steps}) != len(steps):
        raise document.mistake(("branches",), "a step's id is there twice", _HINT)
    tools = tuple(_tool(document, path) for path, _ in document.entries(("tools",), _HINT))
    if {step.tool for step in steps} != {one.name for one in tools}:
        raise document.mistake(("tools",), "they are not the tools of the steps", _HINT)
    return Manifest(
        task=document.text(("task",), _HINT),
        mode=Mode(given["mode"]),
        planner=document.text(("planner",), _HINT),
        branches=branches,
        tools=tools,
        toolkits=tuple(
            (document.text((*path, "name"), _HINT), _digest(document, (*path, "digest")))
            for path, _ in document.entries(("toolkits",), _HINT)
            if _whole(document, path, ("name", "digest"))
        ),
        runtime=document.text(("runtime",), _HINT, empty=True),
        authorised=read_needs(document, ("authorised",)),
        authorises=document.flag(("authorises",), _HINT),
        lacking=tuple(
            (document.text((*path, "tool"), _HINT), document.texts((*path, "needs"), _HINT))
            for path, _ in document.entries(("lacking",), _HINT)
            if _whole(document, path, ("tool", "needs"))
        ),
        regulations=document.texts(("regulations",), _HINT),
        stop=_stop(document),
        guards=tuple(_guard(document, path) for path, _ in document.entries(("guards",), _HINT)),
    )


def _whole(document: Document, path: Path, keys: tuple[str, ...]) -> dict[str, Tree]:
    given = document.section(path, keys, _HINT)
    for key in keys:
        if key not in given:
            raise document.mistake(path, f"it has no `{key}`", _HINT)
    return given


def _digest(document: Document, path: Path) -> str:
    text = document.text(path, _HINT)
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise document.mistake(path, "no digest", _HINT)
    return text


def _step_tree(step: Step) -> dict[str, Tree]:
    return {
        "id": step.id,
        "tool": step.tool,
        "parameters": parse(step.parameters),
        "holes": [
            {
                "at": hole.at,
                "step": hole.step,
                "pointer": hole.pointer,
                "type": hole.type,
                "longest": hole.longest,
            }
            for hole in step.holes
        ],
        "digest": step.digest,
    }


def _branch(document: Document, path: Path) -> Branch:
    _whole(document, path, ("name", "steps"))
    return Branch(
        name=document.text((*path, "name"), _HINT, empty=True),
        steps=tuple(_step(document, where) for where, _ in document.entries((*path, "steps"), _HINT)),
    )


def _step(document: Document, path: Path) -> Step:
    given = _whole(document, path, ("id", "tool", "parameters", "holes", "digest"))
    if not isinstance(given["parameters"], dict):
        raise document.mistake((*path, "parameters"), "it must be an object", _HINT)
    holes = tuple(_hole(document, where) for where, _ in document.entries((*path, "holes"), _HINT))
    step = Step(
        id=document.text((*path, "id"), _HINT),
        tool=document.text((*path, "tool"), _HINT),
        parameters=document.json((*path, "parameters")),
        holes=holes,
        digest=_digest(document, (*path, "digest")),
    )
    if step.digest != step_digest(step.tool, step.parameters, step.holes):
        raise document.mistake((*path, "digest"), f"it is not the digest of the step `{step.id}`", _HINT)
    return step


def _hole(document: Document, path: Path) -> Hole:
    _whole(document, path, ("at", "step", "pointer", "type", "longest"))
    kind = document.text((*path, "type"), _HINT)
    if not is_type(kind):
        raise document.mistake((*path, "type"), "no type of values", _HINT)
    return Hole(
        at=document.text((*path, "at"), _HINT),
        step=document.text((*path, "step"), _HINT, empty=True),
        pointer=document.text((*path, "pointer"), _HINT, empty=True),
        type=kind,
        longest=document.count((*path, "longest"), _HINT, most=MAX_LONGEST),
    )


def _tool(document: Document, path: Path) -> PlannedTool:
    given = _whole(document, path, ("name", "toolkit", "digest", "definition"))
    tool = PlannedTool(
        name=document.text((*path, "name"), _HINT),
        toolkit=document.text((*path, "toolkit"), _HINT, empty=True),
        digest=_digest(document, (*path, "digest")),
        definition=document.json((*path, "definition")),
    )
    if not isinstance(given["definition"], dict) or tool.digest != digest(given["definition"]):
        raise document.mistake((*path, "digest"), f"it is not the digest of the tool `{tool.name}`", _HINT)
    return tool


def _stop(document: Document) -> StopConditions:
    _whole(document, ("stop",), (*_COUNTS, "prices", "external"))
    counts = {key: document.count(("stop", key), _HINT, least=0) for key in _COUNTS}
    prices = []
    for path, _ in document.entries(("stop", "prices"), _HINT):
        _whole(document, path, ("model", "prompt", "completion"))
        prices.append(
            Price(
                model=document.text((*path, "model"), _HINT),
                prompt=document.count((*path, "prompt"), _HINT, least=0),
                completion=document.count((*path, "completion"), _HINT, least=0),
            )
        )
    return StopConditions(
        turns=counts["turns"],
        wall_ms=counts["wall_ms"],
        tokens=counts["tokens"],
        money=counts["money"],
        failures=counts["failures"],
        memory_bytes=counts["memory_bytes"],
        prices=tuple(prices),
        external=document.flag(("stop", "external"), _HINT),
    )


def _guard(document: Document, path: Path) -> StatedGuard:
    _whole(document, path, ("name", "scope", "predicate", "spec"))
    return StatedGuard(
        name=document.text((*path, "name"), _HINT),
        scope=document.text((*path, "scope"), _HINT),
        predicate=document.text((*path, "predicate"), _HINT),
        spec=document.json((*path, "spec")),
    )
