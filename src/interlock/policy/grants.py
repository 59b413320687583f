"""Grants: an oracle's release holds for the same operation, role, value and destination until the task ends.

What was granted is not asked again; of equal questions that wait at once one is asked, and its answer is that of all.
Source: KAIROS, relabelling at commit; that a repeated deferral is asked once, and the bounds of a grant, ours.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from interlock.model.effects import Channel, Effect
from interlock.model.events import Answer, GrantAction, GrantChanged
from interlock.model.records import dataclass
from interlock.policy.net_paths import climbs

MAX_GRANTS = 1_000
"""Later ones are not kept: the same is then asked again."""
HOST_ROLE, URL_ROLE = "host", "url"
WHOLE_CALL = "tool"
"""The role of a tool that is not declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An oracle's release, which holds for the same operation, role, value and destination until the task ends.

    Takes: `node`, the ledger node of the resolution; `destination`, where it goes: of a request its host, of a tool's
    call the tool and all that steers it, so that parts of two grants make no third; `below`, of a request, the folder
    of paths that it holds for, where the principal changed that: `""` for any path of a host, or for one URL alone;
    `revoked`, whether the principal took it back.
    """

    operation: str
    role: str
    value: str
    node: int
    destination: str = ""
    below: str = ""
    revoked: bool = False


class GrantError(ValueError):
    """A grant cannot be changed so. Its text says why."""


def destination_of(effect: Effect) -> str:
    """Return where an effect goes, as its grant has it."""
    if effect.request is not None:
        return effect.request.host
    if effect.tool is not None and [one.role for one in effect.steering] == [WHOLE_CALL]:
        # Of a tool that nobody declared nobody knows what steers it: all of its arguments may.
        return f"{effect.object}\n{effect.tool.arguments}"
    return "\n".join((effect.object, *sorted(f"{one.role}={one.text}" for one in effect.steering)))


def grants_of(effect: Effect, node: int) -> tuple[Grant, ...]:
    """Return what the release of an effect grants.

    Holds: nothing for an effect with a facet, nor for one that carries more than its destination may hold, nor for a
    change of a file, which is asked about once in any case.
    """
    if effect.channel not in (Channel.NET, Channel.TOOL) or effect.message is not None:
        return ()
    if effect.channel is Channel.NET and effect.request is None:
        return ()
    if effect.facets or effect.carried > effect.clearance:
        return ()
    where = destination_of(effect)
    return tuple(
        Grant(operation=effect.operation, role=value.role, value=value.text, node=node, destination=where)
        for value in effect.steering
    )


def with_grants(held: tuple[Grant, ...], added: Sequence[Grant]) -> tuple[Grant, ...]:
    """Return the grants with new ones; one that was taken back and is given anew stands at its end."""
    known = {_key(grant) for grant in held if not grant.revoked and not grant.below}
    fresh = [grant for grant in added if _key(grant) not in known]
    return (*held, *fresh) if fresh and len(held) + len(fresh) <= MAX_GRANTS else held


def _key(grant: Grant) -> tuple[str, str, str, str]:
    return grant.operation, grant.role, grant.value, grant.destination


def find_grant(
    grants: Iterable[Grant], effect: Effect, role: str, value: str, operation: str = ""
) -> Grant | None:
    """Return the first grant that holds for a steering value of an effect.

    Takes: `operation`, where it is another than the effect's own (a part of a stream is granted with its opening).
    """
    where = destination_of(effect)
    for grant in grants:
        same = grant.role == role and grant.destination in ("", where) and not grant.revoked
        if same and grant.operation == (operation or effect.operation) and _covers(grant, effect, value):
            return grant
    return None


def _covers(grant: Grant, effect: Effect, value: str) -> bool:
    request = effect.request
    if not grant.below or request is None:
        return grant.value == value
    if climbs(request.path) or not _within(request.path, grant.below):
        return False
    return grant.value == value if grant.role == HOST_ROLE else _origin(grant.value) == _origin(value)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def _origin(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _path(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2]


def grant_id(index: int) -> str:
    """Return how the principal calls a grant: by its turn."""
    return f"g{index + 1}"


def with_change(grants: tuple[Grant, ...], event: GrantChanged) -> tuple[Grant, ...]:
    """Return the grants as the principal changed one.

    Raises: GrantError, if there is no such grant, or if it is not narrower or wider then.
    """
    index = next((at for at in range(len(grants)) if grant_id(at) == event.grant), -1)
    if index < 0 or grants[index].revoked:
        raise GrantError(f"there is no grant `{event.grant}`")
    grant = grants[index]
    if event.action is GrantAction.REVOKE:
        return (*grants[:index], replace(grant, revoked=True), *grants[index + 1 :])
    if grant.role not in (HOST_ROLE, URL_ROLE) or not grant.operation.startswith("net."):
        raise GrantError(f"`{event.grant}` is no request's: it can only be taken back")
    below = event.below
    if not below.startswith("/") or climbs(below):
        raise GrantError("a folder of paths begins with `/` and holds no `..`")
    # what it holds for now: of a host all, of a URL that path alone
    now = grant.below or ("/" if grant.role == HOST_ROLE else _path(grant.value))
    narrower = event.action is GrantAction.NARROW
    inner, outer = (below, now) if narrower else (now, below)
    if (
        inner == outer
        or not _within(inner, outer)
        or (narrower and grant.role == URL_ROLE and not grant.below)
    ):
        word = "narrower" if narrower else "wider"
        raise GrantError(f"`{below}` is not {word} than `{now}`")
    return (*grants[:index], replace(grant, below=below), *grants[index + 1 :])


def question_of(effect: Effect, *, whole: bool) -> tuple[object, ...] | None:
    """Return what makes a question about an effect equal to another, None where it equals none.

    Takes: `whole`, whether what is carried counts too: where a grant holds it does not, as for what comes later.
    """
    if effect.channel not in (Channel.NET, Channel.TOOL) or effect.message is not None:
        return None
    same = (effect.operation, destination_of(effect), effect.steering, effect.facets)
    if not whole:
        return same if grants_of(effect, 0) else None
    request, tool = effect.request, effect.tool
    if request is not None:
        if request.body_size_bytes < 0:
            return None
        return (*same, request.method, request.query, request.body_digest, request.credential, request.pushes)
    return (*same, tool.arguments) if tool is not None else None


def asked_once(effects: Iterable[Effect], *, whole: bool) -> dict[str, str]:
    """Return for each effect the one whose question stands for its own: its own id, or an earlier equal one's."""
    first: dict[tuple[object, ...], str] = {}
    standing: dict[str, str] = {}
    for effect in effects:
        key = question_of(effect, whole=whole)
        standing[effect.id] = effect.id if key is None else first.setdefault(key, effect.id)
    return standing


def with_twins(answers: dict[str, Answer], standing: dict[str, str]) -> dict[str, Answer]:
    """Return the answers with those of effects for which another was asked."""
    added = {
        effect_id: replace(answers[asked], effect_id=effect_id)
        for effect_id, asked in standing.items()
        if effect_id != asked and asked in answers and effect_id not in answers
    }
    return {**answers, **added}
