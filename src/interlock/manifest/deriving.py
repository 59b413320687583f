"""(p, C, R, stop) -> (T, Γ): a plan and the offered toolkits become the manifest, without anybody's judgement.

Holds: the same plan and the same toolkits, in any order, give the same manifest; whatever cannot be read gives none.
Source: KNOX §4.1, attested policy manifest.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise

from interlock.manifest.actions import step_digest
from interlock.manifest.canonical import canonical, parse
from interlock.manifest.document import Tree, near
from interlock.manifest.holes import settled
from interlock.manifest.needs import ascribed, lacking, needs_tree, union
from interlock.manifest.operations import OPERATIONS, needs_of
from interlock.manifest.ordering import check_order
from interlock.manifest.plans import MAX_STEPS, Plan
from interlock.manifest.schemas import misfit
from interlock.manifest.stopping import stop_tree
from interlock.manifest.toolkits import definition_of
from interlock.model.errors import InputError
from interlock.model.manifest import (
    Branch,
    Manifest,
    Mode,
    PlannedTool,
    StatedGuard,
    Step,
    StopConditions,
)
from interlock.model.records import changed, dataclass
from interlock.model.toolkits import Needs, Toolkit, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool as a step may name it. Takes: `toolkit`, None of an effect's operation."""

    spec: ToolSpec
    toolkit: Toolkit | None = None


def derive(
    plan: Plan,
    toolkits: Iterable[Toolkit],
    *,
    regulations: tuple[str, ...] | None = None,
    stop: StopConditions | None = None,
    runtime: Toolkit | None = None,
    allow_nothing: bool = False,
) -> Manifest:
    """Return the manifest of a plan.

    Takes: `toolkits`, all that the planner was offered; `regulations` and `stop`, in the place of the plan's own;
    `runtime`, what the program that runs the tools needs itself, None where no system-call guard is wanted;
    `allow_nothing`, whether a plan may have no step at all.
    Raises: InputError, with what to change: an unknown tool, parameters that its schema does not allow, a hole that
    nothing can fill, ids that stand twice, steps that wait for each other, too many of them, or none.
    """
    kits = _sorted(toolkits)
    count = sum(len(branch.steps) for branch in plan.branches)
    if count > MAX_STEPS:
        raise InputError(f"{count} steps; a plan has at most {MAX_STEPS}", hint="plan a smaller task")
    if not count and not allow_nothing:
        raise InputError(
            "the plan has no steps, so it authorises nothing" + _effect_of_nothing(plan.mode),
            hint="add steps, or say that it is meant: --allow-nothing",
        )
    check_order(plan.branches)
    index = _Index(kits)
    found = {step.tool: index.find(step) for branch in plan.branches for step in branch.steps}
    steps = {step.id: step for branch in plan.branches for step in branch.steps}
    branches = tuple(
        Branch(name=branch.name, steps=tuple([_step(step, found, steps) for step in branch.steps]))
        for branch in plan.branches
    )
    tools = tuple(
        PlannedTool(
            name=name,
            toolkit=_whose(found[name]),
            digest=sha256(definition.encode()).hexdigest(),
            definition=definition,
        )
        for name, definition in sorted((name, definition_of(found[name].spec)) for name in found)
    )
    authorised = _authorised(found, branches, runtime)
    if runtime is not None and not authorised.system_calls and not allow_nothing:
        raise InputError(
            f"neither the tools nor the runtime `{runtime.name}` authorise a system call, so nothing could run",
            hint="name them below `needs:` of the toolkit, or say that it is meant: --allow-nothing",
        )
    manifest = Manifest(
        task=plan.task,
        mode=plan.mode,
        planner=plan.planner,
        branches=branches,
        tools=tools,
        toolkits=tuple([(kit.name, kit.digest) for kit in kits]),
        runtime=runtime.name if runtime is not None else "",
        authorised=authorised,
        authorises=runtime is not None,
        lacking=_lacking(kits, found, authorised),
        regulations=tuple(sorted(set(plan.regulations if regulations is None else regulations))),
        stop=stop if stop is not None else plan.stop or StopConditions(),
    )
    return changed(manifest, guards=guards_of(manifest))


def guards_of(manifest: Manifest) -> tuple[StatedGuard, ...]:
    """Return Γ: the guards of a manifest, each with its ground truth.

    Source: KNOX, appendix A.
    """
    found = [
        StatedGuard(
            name="trajectory",
            scope="tool",
            predicate="tool, parameters and position are those of the expected step"
            if manifest.mode is Mode.EXACT
            else "an action that equals an unused step of its branch is vouched for",
            spec=canonical(
                {
                    "mode": manifest.mode.value,
                    "branches": {
                        branch.name: [step.digest for step in branch.steps] for branch in manifest.branches
                    },
                }
            ),
        )
    ]
    if manifest.authorises:
        found.append(
            StatedGuard(
                name="syscall",
                scope="syscall",
                predicate="every system call, path, host and limit is in Auth",
                spec=canonical(needs_tree(manifest.authorised)),
            )
        )
    if manifest.regulations:
        found.append(
            StatedGuard(
                name="regulation",
                scope="disclosure",
                predicate="the disclosure's five-part tuple is permitted",
                spec=canonical({"regulations": list(manifest.regulations)}),
            )
        )
    found.append(
        StatedGuard(
            name="stop",
            scope="continuation",
            predicate="no condition has come about, and nobody has stopped it",
            spec=canonical(
                {**stop_tree(manifest.stop), **({"external": True} if manifest.stop.external else {})}
            ),
        )
    )
    return tuple(found)


class _Index:
    """The tools that may be named, by toolkit and name, and by name where one toolkit alone has it."""

    def __init__(self, kits: tuple[Toolkit, ...]) -> None:
        self._found: dict[str, Offered] = {name: Offered(spec=spec) for name, spec in OPERATIONS.items()}
        self._several: dict[str, list[str]] = {}
        owners: dict[str, list[str]] = {}
        for kit in kits:
            for spec in kit.tools:
                self._found[f"{kit.name}/{spec.name}"] = Offered(spec=spec, toolkit=kit)
                owners.setdefault(spec.name, []).append(kit.name)
        for kit in kits:
            for spec in kit.tools:
                if len(owners[spec.name]) > 1:
                    self._several[spec.name] = owners[spec.name]
                elif spec.name not in self._found:
                    self._found[spec.name] = Offered(spec=spec, toolkit=kit)

    def find(self, step: Step) -> Offered:
        offered = self._found.get(step.tool)
        if offered is not None:
            return offered
        if several := self._several.get(step.tool):
            raise InputError(
                f"step `{step.id}`: the tool `{step.tool}` is in several toolkits: {', '.join(several)}",
                hint=f"name its toolkit: `{several[0]}/{step.tool}`",
            )
        raise InputError(
            f"step `{step.id}`: no toolkit that was offered has the tool `{step.tool}`",
            hint=near(step.tool, [name for name in self._found if name not in OPERATIONS] or OPERATIONS)
            + "; toolkits are named by --toolkits",
        )


def _sorted(toolkits: Iterable[Toolkit]) -> tuple[Toolkit, ...]:
    kits = sorted(toolkits, key=lambda kit: kit.name)
    for before, after in pairwise(kits):
        if before.name == after.name:
            raise InputError(f"the toolkit `{after.name}` is given twice", hint="keep one of them")
    return tuple(kits)


def _effect_of_nothing(mode: Mode) -> str:
    return (
        ": every tool call would be refused" if mode is Mode.EXACT else ": nothing would be vouched for by it"
    )


def _step(step: Step, found: Mapping[str, Offered], steps: Mapping[str, Step]) -> Step:
    spec = found[step.tool].spec
    wrong = misfit(parse(step.parameters), _schema(spec.parameters), [hole.at for hole in step.holes])
    if wrong:
        raise InputError(
            f"step `{step.id}`: the parameters do not fit the tool `{step.tool}`: {wrong}",
            hint=f"see what it takes: interlock toolkit show {_whose(found[step.tool])}",
        )
    holes = tuple(
        settled(step, hole, spec, found[steps[hole.step].tool].spec if hole.step else None)
        for hole in step.holes
    )
    return changed(step, holes=holes, digest=step_digest(step.tool, step.parameters, holes))


@lru_cache(maxsize=1024)
def _schema(text: str) -> Tree:
    return parse(text)


def _whose(offered: Offered) -> str:
    return offered.toolkit.name if offered.toolkit is not None else ""


def _authorised(found: Mapping[str, Offered], branches: tuple[Branch, ...], runtime: Toolkit | None) -> Needs:
    parts = []
    for name in sorted(found):
        kit, spec = found[name].toolkit, found[name].spec
        if kit is not None:
            parts += [ascribed(kit.needs, kit.name), ascribed(spec.needs, f"{kit.name}/{spec.name}")]
    for branch in branches:
        parts += [
            needs_of(step.tool, step.parameters, step.id) for step in branch.steps if step.tool in OPERATIONS
        ]
    if runtime is not None:
        parts.append(ascribed(runtime.needs, f"runtime {runtime.name}"))
    return union(parts)


def _lacking(
    kits: tuple[Toolkit, ...], found: Mapping[str, Offered], authorised: Needs
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    planned = {
        (offered.toolkit.name, offered.spec.name) for offered in found.values() if offered.toolkit is not None
    }
    listed = []
    for kit in kits:
        for spec in kit.tools:
            if (kit.name, spec.name) not in planned:
                missing = lacking(union((kit.needs, spec.needs)), authorised)
                if missing:
                    listed.append((f"{kit.name}/{spec.name}", missing))
    return tuple(listed)
