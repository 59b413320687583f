"""Actions as steps are compared with them: a tool, and its parameters as one canonical text.

Holds: whatever an effect does has a place in its parameters, so that two effects that differ have different digests.
Source: KNOX §4.1, H(α) = H(e_j).
"""

from hashlib import sha256

from interlock.manifest.canonical import canonical, canonical_text, parse
from interlock.manifest.pointers import MISSING, replaced, value_at
from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.manifest import Hole, Step
from interlock.model.requests import NetMessage, NetRequest

UNREADABLE = ""
"""Parameters without a canonical form: no step has them."""
UNREAD_BODY = "unread"
"""The digest of a body that streams after the decision: no step has it but one with a hole there."""

FILE_PARAMETERS = ("path", "source")
NET_PARAMETERS = ("method", "scheme", "host", "port", "path", "query", "body_digest")
MESSAGE_PARAMETERS = ("host", "port", "path", "message_digest")


def action_of(effect: Effect) -> tuple[str, str]:
    """Return an effect's tool and its parameters as canonical text, `UNREADABLE` where they have none.

    Holds: total. A tool call is its name and its arguments; a change of a file its operation with `path` (and `source`
    of a rename) as places; a request its operation with `method`, `host`, `port`, `path`, and where they are there
    `query`, `body_digest` and a `scheme` that is not `https`.
    """
    if effect.tool is not None:
        return effect.tool.name, _arguments(effect.tool.arguments)
    if effect.change is not None:
        given: dict[str, object] = {"path": str(effect.change.place)}
        if effect.change.source is not None:
            given["source"] = str(effect.change.source)
        return effect.operation, _written(given)
    if effect.request is not None:
        return effect.operation, _written(_of_request(effect.request, effect.message))
    return effect.operation, _written({"object": effect.object})


def step_digest(tool: str, parameters: str, holes: tuple[Hole, ...] = ()) -> str:
    """Return the digest of a step, or of an action, which has no holes.

    Takes: `parameters`, canonical text.
    """
    listed = [
        {
            "at": hole.at,
            "longest": hole.longest,
            "pointer": hole.pointer,
            "step": hole.step,
            "type": hole.type,
        }
        for hole in sorted(holes, key=lambda hole: hole.at)
    ]
    text = f'{{"holes":{canonical(listed)},"parameters":{parameters or "null"},"tool":{canonical(tool)}}}'
    return sha256(text.encode()).hexdigest()


def bound(step: Step, values: dict[str, object]) -> str:
    """Return a step's parameters with a value in each hole, as canonical text.

    Takes: `values`, by `Hole.at`. Raises: InputError, where a hole has none.
    """
    tree = parse(step.parameters)
    for hole in step.holes:
        if hole.at not in values:
            raise InputError(
                f"the hole `{hole.at}` of the step `{step.id}` has no value",
                hint=f"the step `{hole.step}` gives it" if hole.step else "the agent gives it",
            )
        tree = replaced(tree, hole.at, values[hole.at])
    return canonical(tree)


def at_holes(step: Step, parameters: str) -> dict[str, object] | None:
    """Return what an action has where a step has its holes; None where anything else differs.

    Holds: what is returned, put back by `bound`, gives the action's own parameters.
    """
    if not step.holes:
        return {} if parameters == step.parameters and parameters != UNREADABLE else None
    if parameters == UNREADABLE:
        return None
    tree = parse(parameters)
    found: dict[str, object] = {}
    for hole in step.holes:
        value = value_at(tree, hole.at)
        if value is MISSING or value is None:
            return None
        found[hole.at] = value
        tree = replaced(tree, hole.at, None)
    return found if canonical(tree) == step.parameters else None


def _of_request(request: NetRequest, message: NetMessage | None) -> dict[str, object]:
    given: dict[str, object] = {"host": request.host, "port": request.port, "path": request.path}
    if message is not None:
        return {**given, "message_digest": message.digest}
    given["method"] = request.method
    if request.scheme != "https":
        given["scheme"] = request.scheme
    if request.query:
        given["query"] = request.query
    if request.body_size_bytes < 0:
        given["body_digest"] = UNREAD_BODY
    elif request.body_digest:
        given["body_digest"] = request.body_digest
    return given


def _arguments(text: str) -> str:
    try:
        return canonical_text(text)
    except InputError:
        return UNREADABLE


def _written(given: dict[str, object]) -> str:
    try:
        return canonical(given)
    except InputError:
        return UNREADABLE
