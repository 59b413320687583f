"""The system-call guard's static part: an action that needs what the manifest does not authorise is refused.

The kernel enforces the same Auth once more (`boundary`); here the agent is told what was missing, and the ledger has it
even where the action would have been done by somebody else (a server of tools).
Source: KNOX §4.2, the guard Γ_sys; DESIGN §5, guard 3.
"""

from interlock.model.effects import Channel, Effect
from interlock.model.manifest import Manifest
from interlock.model.places import HOME, Place, path_bytes
from interlock.model.toolkits import Access, HostNeed
from interlock.model.verdicts import Guard
from interlock.policy.globs import GlobError, matcher
from interlock.policy.guarding import Guarded, blocked, passed

RULE = "authorised"
_MODEL = "net.model"
"""The agent's own model: without it there is no agent."""
_LENS_PREFIX = "mcp__"
_INSTEAD = "go on with the task by what its plan needs, and say in your answer what you left out"
_KEPT = "what the task's plan does not need is not authorised, and the kernel holds it back too"


def authorised(manifest: Manifest, effect: Effect) -> Guarded | None:
    """Return what the guard says of an effect, None where it does not cover it.

    Holds: it covers calls of tools that the planner was offered, all requests but those to the agent's own model, and
    all changes of files.
    """
    if effect.channel is Channel.TOOL and effect.tool is not None:
        return _call(manifest, effect.tool.name)
    if effect.request is not None and effect.operation != _MODEL:
        return _request(manifest, effect.request.host, effect.request.port)
    if effect.change is not None:
        return _change(manifest, (effect.change.place, effect.change.source))
    return None


def _call(manifest: Manifest, name: str) -> Guarded | None:
    names = _names(name)
    if any(one.name in names for one in manifest.tools):
        return passed(Guard.SYSCALL, RULE, "a tool of the plan, whose needs are authorised")
    missing = {words for listed, words in manifest.lacking if listed in names or _bare(listed) in names}
    if not missing:
        return None
    # A bare name that several toolkits have is refused for what any of them needs.
    needed = sorted({one for words in missing for one in words})
    return _blocked(
        f"the tool `{name}` is not planned and needs what is not authorised: {_few(needed)}",
        "a plan that uses the tool authorises what its toolkit says it needs",
    )


def _names(name: str) -> frozenset[str]:
    """Return the names that a call's tool may have in a plan; a lens announces `mcp__SERVER__TOOL`."""
    if not name.startswith(_LENS_PREFIX):
        return frozenset((name,))
    server, _, tool = name.removeprefix(_LENS_PREFIX).partition("__")
    return frozenset((name, f"{server}/{tool}"))


def _bare(listed: str) -> str:
    return listed.rsplit("/", 1)[-1]


def _request(manifest: Manifest, host: str, port: int) -> Guarded:
    if any(_reaches(need, host, port) for need in manifest.authorised.hosts):
        return passed(Guard.SYSCALL, RULE, f"the host `{host}` is authorised")
    return _blocked(
        f"no tool of the plan needs the host `{host}:{port}`",
        f'a toolkit authorises it by `needs: {{hosts: [{{host: {host}, port: {port}, reason: "why"}}]}}`',
    )


def _reaches(need: HostNeed, host: str, port: int) -> bool:
    if need.port not in (0, port):
        return False
    try:
        return matcher((need.host,), wide=False).fullmatch(host) is not None
    except GlobError:
        return need.host == host


def _change(manifest: Manifest, places: tuple[Place | None, ...]) -> Guarded:
    written = [one.path for one in manifest.authorised.paths if one.access is Access.WRITE]
    for place in places:
        if place is not None and not any(_below(path, place) for path in written):
            need = _as_need(place)
            return _blocked(
                f"no tool of the plan needs to write to `{place}`",
                f'a toolkit authorises it by `needs: {{paths: [{{path: "{need}", access: write, reason: "why"}}]}}`',
            )
    return passed(Guard.SYSCALL, RULE, "a place that a tool of the plan needs to write to")


def _as_need(place: Place) -> str:
    # Other folders that are staged are meant by the workspace's word too.
    root = "{home}" if place.root == HOME else "{workspace}"
    return f"{root}/{place.path}" if place.path else root


def _below(path: str, place: Place) -> bool:
    """Return whether a need's path is a place or above it. Holds: compared as bytes, part by part."""
    try:
        at = path_bytes(place.path)
    except ValueError:
        return False
    root = b"{home}" if place.root == HOME else b"{workspace}"
    wanted = path.encode("utf-8", "surrogateescape").rstrip(b"/").split(b"/")
    given = [root, *(part for part in at.split(b"/") if part)]
    return wanted == [b""] or given[: len(wanted)] == wanted


def _blocked(reason: str, advice: str) -> Guarded:
    return blocked(Guard.SYSCALL, RULE, f"{reason}; {advice}", constraints=(_KEPT,), instead=_INSTEAD)


def _few(words: list[str]) -> str:
    return ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")
