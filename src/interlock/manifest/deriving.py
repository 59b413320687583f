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
from interlock.manifest.needs import Authorised, needs_tree, union_of
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

_NOTHING = Needs()
_NO_TEXTS: Mapping[str, str] = {}


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
    provisions: Mapping[str, str] = _NO_TEXTS,
    allow_nothing: bool = False,
) -> Manifest:
    """Return the manifest of a plan.

    Takes: `toolkits`, all that the planner was offered; `regulations` and `stop`, in the place of the plan's own;
    `runtime`, what the program that runs the tools needs itself, None where no system-call guard is wanted;
    `provisions`, digests of the regulations' texts by name, as far as they are known; `allow_nothing`, whether a plan
    may have no step at all.
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
    return changed(manifest, guards=guards_of(manifest, provisions))


def guards_of(manifest: Manifest, provisions: Mapping[str, str] = _NO_TEXTS) -> tuple[StatedGuard, ...]:
    """Return Γ: the guards of a manifest, each with its ground truth. Takes: `provisions`, as `derive` does.

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
                spec=canonical(
                    {"regulations": {name: provisions.get(name, "") for name in manifest.regulations}}
                ),
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
    """The tools that may be named: by toolkit and name, and by name where one toolkit alone has it."""

    def __init__(self, kits: tuple[Toolkit, ...]) -> None:
        self._owners: dict[str, list[tuple[ToolSpec, Toolkit]]] = {}
        for kit in kits:
            for spec in kit.tools:
                self._owners.setdefault(spec.name, []).append((spec, kit))

    def find(self, step: Step) -> Offered:
        if step.tool in OPERATIONS:
            return Offered(spec=OPERATIONS[step.tool])
        several = self._owners.get(step.tool, [])
        if len(several) > 1:
            kits = [kit.name for _, kit in several]
            raise InputError(
                f"step `{step.id}`: the tool `{step.tool}` is in several toolkits: {', '.join(kits)}",
                hint=f"name its toolkit: `{kits[0]}/{step.tool}`",
            )
        if several:
            return Offered(spec=several[0][0], toolkit=several[0][1])
        whose, _, name = step.tool.partition("/")
        for spec, kit in self._owners.get(name, ()):
            if kit.name == whose:
                return Offered(spec=spec, toolkit=kit)
        known = [f"{kit.name}/{name}" for name, each in self._owners.items() for _, kit in each]
        raise InputError(
            f"step `{step.id}`: no toolkit that was offered has the tool `{step.tool}`",
            hint=near(step.tool, [*self._owners, *known] or OPERATIONS)
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
    owned: dict[str, Needs] = {}
    for offered in found.values():
        kit, spec = offered.toolkit, offered.spec
        if kit is not None:
            owned[kit.name] = kit.needs
            owned[f"{kit.name}/{spec.name}"] = spec.needs
    parts = list(owned.items())
    for branch in branches:
        parts += [
            ("", needs_of(step.tool, step.parameters, step.id))
            for step in branch.steps
            if step.tool in OPERATIONS
        ]
    if runtime is not None:
        parts.append((f"runtime {runtime.name}", runtime.needs))
    return union_of(parts)


def _lacking(
    kits: tuple[Toolkit, ...], found: Mapping[str, Offered], authorised: Needs
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    planned = {
        (offered.toolkit.name, offered.spec.name) for offered in found.values() if offered.toolkit is not None
    }
    known = Authorised(authorised)
    listed = []
    for kit in kits:
        shared = known.lacking(kit.needs)
        for spec in kit.tools:
            if (kit.name, spec.name) not in planned:
                bare = spec.needs is _NOTHING or spec.needs == _NOTHING
                missing = shared if bare else known.lacking(_both(kit.needs, spec.needs))
                if missing:
                    listed.append((f"{kit.name}/{spec.name}", missing))
    return tuple(listed)


def _both(left: Needs, right: Needs) -> Needs:
    return Needs(
        system_calls=(*left.system_calls, *right.system_calls),
        paths=(*left.paths, *right.paths),
        hosts=(*left.hosts, *right.hosts),
    )
