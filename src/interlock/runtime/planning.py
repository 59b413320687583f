"""Plans become manifests: a person's file, a model's answer or a recorded run, with the toolkits that they name."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from interlock.model.errors import InputError
from interlock.model.manifest import Manifest, Mode, StopConditions
from interlock.model.records import changed as with_changes
from interlock.model.records import dataclass

if TYPE_CHECKING:
    from interlock.manifest.plans import Plan
    from interlock.model.toolkits import Toolkit

DEFAULT_RUNTIME = "native"
NO_RUNTIME = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What `interlock plan` was asked for.

    Takes: one of `file`, `planner` and `recorded`; the rest in the place of what the plan itself says, None or empty
    where nothing was said.
    """

    prompt: str = ""
    file: str | None = None
    planner: str | None = None
    recorded: str | None = None
    models: str | None = None
    toolkits: tuple[str, ...] = ()
    regulations: tuple[str, ...] | None = None
    stop: StopConditions | None = None
    mode: str | None = None
    runtime: str | None = None
    allow_nothing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A manifest, and what is to be said of how it came about."""

    manifest: Manifest
    notes: tuple[str, ...] = ()


def made(wanted: Wanted) -> Planned:
    """Make the manifest that was asked for. Raises: InputError; ModelError, where the planner gives no answer."""
    notes: tuple[str, ...] = ()
    if wanted.file is not None:
        plan = _with_prompt(_from_file(wanted.file), wanted.prompt)
        kits = _toolkits(wanted, plan)
    elif wanted.planner is not None:
        if not wanted.prompt:
            raise InputError(
                "there is no prompt to plan", hint='say the task: interlock plan "PROMPT" --planner NAME'
            )
        from interlock.runtime.planning_model import planned_by

        kits = _toolkits(wanted, None)
        plan, notes = planned_by(
            wanted.planner, wanted.models, wanted.prompt, kits, mode=wanted.mode or Mode.EXACT.value
        )
    elif wanted.recorded is not None:
        from interlock.runtime.planning_recorded import recorded_plan

        plan, notes = recorded_plan(wanted.recorded, wanted.prompt)
        kits = _toolkits(wanted, plan)
    else:
        raise InputError(
            "nobody gives the plan",
            hint="write one (--from FILE), have a model plan (--planner NAME), or take what a run did (--recorded RUN)",
        )
    if wanted.mode is not None:
        plan = with_changes(plan, mode=Mode(wanted.mode))
    return Planned(manifest=_derived(plan, kits, wanted), notes=notes)


def _derived(plan: Plan, kits: tuple[Toolkit, ...], wanted: Wanted) -> Manifest:
    from interlock.manifest.deriving import derive
    from interlock.runtime.toolkits import load_runtime

    name = wanted.runtime
    named = plan.regulations if wanted.regulations is None else wanted.regulations

    def derived(runtime: Toolkit | None) -> Manifest:
        return derive(
            plan,
            kits,
            regulations=wanted.regulations,
            stop=wanted.stop,
            runtime=runtime,
            provisions=_provisions(named),
            allow_nothing=wanted.allow_nothing,
        )

    if name is None:
        manifest = derived(None)
        return derived(load_runtime(DEFAULT_RUNTIME)) if manifest.authorised.system_calls else manifest
    return derived(None if name == NO_RUNTIME else load_runtime(name))


def _provisions(names: tuple[str, ...]) -> dict[str, str]:
    """Return the digests of regulations' texts. Raises: InputError, where there is no such regulation."""
    if not names:
        return {}
    from interlock.regulations import digests

    return dict(digests(names))


def _from_file(path: str) -> Plan:
    from interlock.manifest.plans import load_plan
    from interlock.runtime.policies import read_text

    return load_plan(read_text(path, "plan", "write one: see docs/plans.md"), path)


def _with_prompt(plan: Plan, prompt: str) -> Plan:
    if prompt and prompt != plan.task:
        raise InputError(
            "the prompt is another one than the plan was written for",
            hint="leave it out, or change it in the plan",
        )
    return plan


def _toolkits(wanted: Wanted, plan: Plan | None) -> tuple[Toolkit, ...]:
    from interlock.runtime.toolkits import load_all

    return load_all(wanted.toolkits or (plan.toolkits if plan is not None else ()))


def edited(
    manifest: Manifest,
    *,
    changed: str | None,
    toolkits: tuple[str, ...],
    runtime: str | None,
    repin: bool,
    allow_nothing: bool,
) -> Manifest:
    """Let a person change a plan, and derive it anew.

    Takes: `changed`, the file of the changed plan, None to open the user's editor; `repin`, whether toolkits may be
    others than those that were pinned.
    Raises: InputError.
    """
    from interlock.manifest.plans import load_plan, plan_of

    if changed is not None:
        plan = _from_file(changed)
    else:
        text, draft = _in_editor(manifest)
        try:
            plan = load_plan(text, draft)
        except InputError as error:
            raise InputError(
                error.message,
                hint=f"{error.hint}; your text is kept: interlock plan edit FILE --from {draft}",
            ) from error
        with contextlib.suppress(OSError):
            os.unlink(draft)
    told = with_changes(plan, stop=plan.stop or StopConditions())
    if told == plan_of(manifest) and not (toolkits or runtime or repin):
        raise InputError("nothing was changed", hint="to sign it as it is: interlock plan sign FILE")
    names = toolkits or plan.toolkits
    kits = _toolkits(Wanted(toolkits=names), plan)
    if not repin:
        _check_pins(manifest, kits)
    planner = (
        manifest.planner if manifest.planner.endswith("person") else f"{manifest.planner}, then a person"
    )
    return _derived(
        with_changes(plan, planner=planner),
        kits,
        Wanted(
            runtime=runtime or manifest.runtime or NO_RUNTIME,
            allow_nothing=allow_nothing,
        ),
    )


def _check_pins(manifest: Manifest, kits: tuple[Toolkit, ...]) -> None:
    from interlock.manifest.toolkits import definition_of

    pinned = dict(manifest.toolkits)
    for kit in kits:
        if kit.digest == pinned.get(kit.name, kit.digest):
            continue
        now = {definition_of(spec) for spec in kit.tools}
        tools = [one.name for one in manifest.tools if one.toolkit == kit.name and one.definition not in now]
        raise InputError(
            f"the toolkit `{kit.name}` is not the one that was pinned"
            + (f"; it says something else of {', '.join(tools)}" if tools else ""),
            hint="look at what changed; to take it as it is now: --repin",
        )


def _in_editor(manifest: Manifest) -> tuple[str, str]:
    import shlex
    import subprocess
    import tempfile

    import yaml

    from interlock.manifest.plans import plan_of, plan_tree

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise InputError(
            "no editor is named",
            hint="set EDITOR, or change a file and give it: interlock plan edit FILE --from CHANGED",
        )
    descriptor, draft = tempfile.mkstemp(prefix="interlock-plan-", suffix=".yaml")
    with open(descriptor, "w", encoding="utf-8") as file:
        yaml.safe_dump(plan_tree(plan_of(manifest)), file, sort_keys=False, allow_unicode=True, width=100)
    try:
        status = subprocess.run([*shlex.split(editor), draft], check=False).returncode
    except (OSError, ValueError) as error:
        raise InputError(f"the editor `{editor}` cannot be started", hint="set EDITOR") from error
    if status:
        raise InputError(f"the editor ended with status {status}, so nothing is changed", hint="try again")
    with open(draft, encoding="utf-8", errors="replace") as file:
        return file.read(), draft
