"""The order of a plan's steps: every id is one step's, and no step waits for itself."""

from graphlib import CycleError, TopologicalSorter

from interlock.model.errors import InputError
from interlock.model.manifest import Branch


def check_order(branches: tuple[Branch, ...]) -> None:
    """Check that each hole's source comes before it; a source may lie in another branch.

    Raises: InputError, for an id that stands twice, a source that there is not, and steps that wait for each other.
    """
    places: dict[str, tuple[int, int]] = {}
    for number, branch in enumerate(branches):
        for position, step in enumerate(branch.steps):
            if step.id in places:
                raise InputError(f"two steps have the id `{step.id}`", hint="give each step an id of its own")
            places[step.id] = (number, position)
    graph: TopologicalSorter[str] = TopologicalSorter()
    for number, branch in enumerate(branches):
        for position, step in enumerate(branch.steps):
            graph.add(step.id, *(branch.steps[position - 1].id,) if position else ())
            for hole in step.holes:
                if not hole.step:
                    continue
                source = places.get(hole.step)
                if source is None:
                    raise InputError(
                        f"step `{step.id}`: no step `{hole.step}` would ever fill its hole `{hole.at}`",
                        hint="name an earlier step: `{hole: {from: ID, at: /field}}`",
                    )
                if source[0] == number and source[1] >= position:
                    raise InputError(
                        f"step `{step.id}`: its hole `{hole.at}` waits for `{hole.step}`, "
                        "which does not come before it",
                        hint="name an earlier step, or change the order",
                    )
                graph.add(step.id, hole.step)
    if len(branches) == 1:
        return  # each source stands before what waits for it
    try:
        graph.prepare()
    except CycleError as error:
        circle = " -> ".join(f"`{name}`" for name in error.args[1][:8])
        raise InputError(
            f"steps of several branches wait for each other: {circle}", hint="let one branch come first"
        ) from error
