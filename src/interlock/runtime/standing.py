"""The sandbox of a run, set up over overlays or over full copies of the folders that are staged."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from interlock import boundary
from interlock.model import events as ev
from interlock.model.errors import InputError
from interlock.model.places import HOME
from interlock.model.toolkits import Limit, Needs
from interlock.policy import Policy
from interlock.runtime import folders as runs
from interlock.runtime import network
from interlock.runtime.environment import child_environment
from interlock.runtime.kept_inside import kept_inside

if TYPE_CHECKING:
    from interlock.runtime.launch import RunRequest


def stand(
    request: RunRequest,
    path: str,
    folders: tuple[runs.StagedFolder, ...],
    prepared: network.Prepared,
    note: Callable[[str], None],
) -> tuple[boundary.Sandbox, ev.Staging, tuple[runs.StagedFolder, ...]]:
    """Set the sandbox up over overlays, or over full copies where the file system can be no layer.

    Returns: also the folders that are staged: HOME is never copied, what is written there is thrown away then.
    """
    if request.staging is not ev.Staging.COPY:
        plan = _plan(request, path, folders, prepared, copied=False)
        try:
            return boundary.start(plan, _import_the_rest), ev.Staging.OVERLAY, folders
        except boundary.OverlayError as error:
            if request.staging is ev.Staging.OVERLAY:
                raise
            note(f"{error.message}: working on a full copy, without file events")
    if any(folder.name == HOME for folder in folders):
        folders = tuple(folder for folder in folders if folder.name != HOME)
        note("HOME is not copied: what the command changes in it is thrown away")
    _copy(folders)
    plan = _plan(request, path, folders, prepared, copied=True)
    return boundary.start(plan, _import_the_rest), ev.Staging.COPY, folders


def _copy(folders: tuple[runs.StagedFolder, ...]) -> None:
    from interlock import staging

    for folder in folders:
        try:
            left_out = staging.copy_tree(folder.lower, folder.upper)
        except OSError as error:
            raise InputError(
                f"`{folder.lower}` cannot be copied: {error.strerror}",
                hint="free space for it, or choose another state folder: INTERLOCK_STATE=DIR interlock run …",
            ) from error
        if left_out:
            raise InputError(
                f"`{folder.lower}` holds what cannot be copied: {', '.join(left_out[:3])}",
                hint="make it readable, or move it out of the workspace",
            )


def _plan(
    request: RunRequest,
    path: str,
    folders: tuple[runs.StagedFolder, ...],
    prepared: network.Prepared,
    *,
    copied: bool,
) -> boundary.SandboxPlan:
    sandbox_rule = request.policy.sandbox
    kept = kept_inside()
    needs = authorised(request.plan)
    return boundary.SandboxPlan(
        argv=request.argv,
        environment=child_environment(
            request.policy,
            request.environment,
            request.working_directory,
            prepared.environment,
            kept.variables,
        ),
        working_directory=request.working_directory,
        home=request.environment.get("HOME", "/"),
        overlays=tuple(
            boundary.Overlay(
                name=folder.name,
                target=folder.lower,
                lower=folder.lower,
                upper=folder.upper,
                work=folder.work,
                observed=not copied,
                copied=copied,
                sparse=folder.name == HOME,
            )
            for folder in folders
        ),
        hidden=(*sandbox_rule.hide, runs.state_folder(), *kept.files),
        exposed=sandbox_rule.expose,
        limits=_limits(request.policy, needs),
        nested=sandbox_rule.nested,
        allow_degraded=request.allow_degraded,
        scratch=os.path.join(path, "scratch"),
        net=prepared.plan,
        placed=prepared.placed,
        authorised=needs,
    )


def authorised(plan: str) -> Needs | None:
    """Return what a signed plan authorises, None where it has no system-call guard. Raises: InputError."""
    if not plan:
        return None
    from interlock.manifest.statement import read_envelope

    manifest = read_envelope(plan)
    return manifest.authorised if manifest.authorises else None


def _limits(policy: Policy, needs: Needs | None) -> boundary.Limits:
    """A limit of 0 in the policy says nothing: the boundary's own default, or the host's, stands.

    The number of a plan's processes is bounded by the cgroup too: the kernel's own limit does not bind root.
    """
    asked, default = policy.limits, boundary.Limits()
    planned = [one.most for one in needs.limits if one.limit is Limit.PROCESSES] if needs is not None else []
    return boundary.Limits(
        processes=min([asked.processes or default.processes, *planned]),
        file_size_bytes=asked.file_size_bytes or default.file_size_bytes,
        open_files=asked.open_files or default.open_files,
        memory_bytes=asked.memory_bytes or default.memory_bytes,
        tmp_size_bytes=asked.tmp_size_bytes or default.tmp_size_bytes,
    )


def _import_the_rest() -> None:
    """Load what is needed once the sandbox stands, while it is being set up on the other processor."""
    import interlock.runtime.control
    import interlock.runtime.keys
    import interlock.runtime.performer
    import interlock.runtime.reads
    import interlock.runtime.touches
    import interlock.runtime.watching
    import interlock.staging.layers
    import interlock.staging.listing
    from interlock.runtime.label_store import is_there

    if is_there():
        import interlock.runtime.label_rows  # noqa: F401
