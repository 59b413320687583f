"""Which changes cannot stand without which others: the way back of `model.dependencies`."""

from collections.abc import Iterable, Sequence

from interlock.model.dependencies import requirements
from interlock.model.effects import FileChange


def with_dependents(changes: Sequence[FileChange], chosen: Iterable[int]) -> frozenset[int]:
    """Return the positions given and those of every change that needs one of them, directly or not."""
    needed_by: dict[int, list[int]] = {}
    for index, needs in enumerate(requirements(changes)):
        for need in needs:
            needed_by.setdefault(need, []).append(index)
    found: set[int] = set()
    todo = list(chosen)
    while todo:
        index = todo.pop()
        if index not in found:
            found.add(index)
            todo.extend(needed_by.get(index, ()))
    return frozenset(found)
