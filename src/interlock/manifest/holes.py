"""Holes of a step, settled against what its tool takes and what its source's answer is trusted for."""

from interlock.manifest.pointers import ANY, steps_of
from interlock.manifest.typed import is_type
from interlock.model.errors import InputError
from interlock.model.manifest import Hole, Step
from interlock.model.records import changed
from interlock.model.toolkits import ToolSpec

_ANY_LEAF = "*"


def settled(step: Step, hole: Hole, spec: ToolSpec, source: ToolSpec | None) -> Hole:
    """Return a hole with its type, where it may stand as it does.

    Takes: `spec`, of the step's own tool; `source`, of the step that fills it, None where the agent does.
    Raises: InputError, for a free hole where the value steers, and one whose source vouches for nothing there.
    """
    field = field_of(hole.at)
    steers = type_at(spec.steers, field)
    if source is None:
        if not type_at(tuple((name, "text") for name in spec.carries), field):
            raise InputError(
                f"step `{step.id}`: `{hole.at}` steers `{step.tool}`, so the agent may not choose it freely",
                hint="write the value, or name its source: `{hole: {from: ID, at: /field}}`; what only carries data is "
                "listed below `carries` of the toolkit",
            )
        return _typed(step, hole, "text" if not hole.type else hole.type)
    trusted = trusted_type(source.output, field_of(hole.pointer))
    if not trusted:
        raise InputError(
            f"step `{step.id}`: nothing says that `{hole.pointer or 'all'}` of the answer of `{hole.step}` "
            "may be trusted",
            hint=f"if so, add to the tool `{source.name}` of its toolkit: "
            f"`output: {{{field_of(hole.pointer) or 'field'}: {hole.type or steers or 'text'}}}`",
        )
    if hole.type and steers and hole.type != steers:
        raise InputError(
            f"step `{step.id}`: `{hole.at}` of `{step.tool}` is of the type `{steers}`, not `{hole.type}`",
            hint=f"write `type: {steers}`, or leave it out",
        )
    return _typed(step, hole, hole.type or steers or trusted)


def field_of(pointer: str) -> str:
    """Return the name of the field at a pointer: `/rows/0/id` is `rows[].id`, `/0/id` is `[].id`."""
    field = ""
    for token in steps_of(pointer):
        if token == ANY or (token.isascii() and token.isdigit()):
            field += "[]"
        else:
            field += f".{token}" if field else token
    return field


def type_at(declared: tuple[tuple[str, str], ...], field: str) -> str:
    """Return the declared type of a field: its own, else of what it lies in; `""` for none."""
    known = dict(declared)
    here = field
    while True:
        if here in known:
            return known[here]
        if here.endswith("[]"):
            here = here[:-2]
        elif "." in here:
            here = here.rpartition(".")[0]
        else:
            return ""


def trusted_type(output: tuple[tuple[str, str], ...], field: str) -> str:
    """Return as what a leaf of an answer may be trusted, `""` where it may not."""
    return type_at(output, field) or dict(output).get(_ANY_LEAF, "")


def _typed(step: Step, hole: Hole, kind: str) -> Hole:
    if not is_type(kind):
        raise InputError(
            f"step `{step.id}`: `{kind}` is no type of values", hint="use text, email, id:NAME …"
        )
    return changed(hole, type=kind)
