"""The second reading of what names a changed place: its path, a tail of it, its base name, or the folder it lies in."""

from collections.abc import Iterator

from interlock.model.effects import FileChange, Hazard
from interlock.model.places import FOLDER_PREFIX, GIT_PREFIX, HOME, WORKSPACE, Place
from interlock.model.verdicts import Derivation
from interlock.policy.derivations.facts import Facts, Fault
from interlock.policy.derivations.reading import LEAST, Reading, lower, stands_alone

_STATE = "state:"
_GIVEN = (_STATE, FOLDER_PREFIX, GIT_PREFIX)


def under_root(facts: Facts, derivation: Derivation, _kind: str) -> Fault | None:
    """It is plain data below a folder that the principal gave to the run; that it is no more the fold says."""
    change = facts.proposal
    if not isinstance(change, FileChange) or derivation.role not in ("path", "source"):
        return Fault.RULE
    place = change.place if derivation.role == "path" else change.source
    if place is None or change.hazards or derivation.form or derivation.pointer:
        return Fault.RULE
    if derivation.premises:
        return Fault.PREMISE
    if derivation.node != facts.task_node:
        return Fault.NODE
    if (derivation.start, derivation.end) != (0, 0):
        return Fault.SPAN
    given = place.root in (WORKSPACE, HOME) or place.root.startswith(_GIVEN)
    return None if given else Fault.RULE


def link_target(value: str, text: str, start: int, end: int) -> bool:
    """The target of a link as it is, whole words."""
    return _equal(text[start:end], value) and len(value.strip()) >= LEAST and stands_alone(text, start, end)


def path_tail(change: FileChange, role: str) -> Reading:
    """Return the reading by which a text names a place's path, or the end of it from some folder on."""

    def read(_value: str, text: str, start: int, end: int) -> bool:
        for parts, at_home in _paths(change, role):
            for first in range(len(parts) - 1):
                if _equal(text[start:end], "/".join(parts[first:])):
                    return _whole(text, start, end, at_home=at_home, headed=first == 0)
        return False

    return read


def base_name(change: FileChange, role: str) -> Reading:
    """Return the reading by which a text names a place's last part; which words must stand beside it the fold says."""

    def read(_value: str, text: str, start: int, end: int) -> bool:
        for parts, at_home in _paths(change, role):
            if _equal(text[start:end], parts[-1]):
                return _whole(text, start, end, at_home=at_home, headed=len(parts) == 1)
        return False

    return read


def _paths(change: FileChange, role: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the ways to write what a change touches: of a branch also what its commits hold."""
    place = change.place if role == "path" else change.source
    if place is None or any(hazard is not Hazard.OUTWARD_LINK for hazard in change.hazards):
        return
    yield _parts(place), _at_home(place)
    for one in change.brings if role == "path" else ():
        root = WORKSPACE if place.root.startswith(GIT_PREFIX) else place.root
        there = Place(root=root, path=one.path)
        yield _parts(there), _at_home(there)


def _parts(place: Place) -> list[str]:
    path = place.path
    if place.root.startswith(GIT_PREFIX):
        path = f".git/{path}" if path else ".git"
    elif place.root.startswith(_STATE):
        folder = place.root[len(_STATE) :]
        path = f"{folder}/{path}" if path else folder
    return path.split("/")


def _at_home(place: Place) -> bool:
    return place.root == HOME or place.root.startswith(_STATE)


def _equal(span: str, value: str) -> bool:
    return bool(value.strip()) and span == span.strip() and lower(span) == lower(value)


def _whole(text: str, start: int, end: int, *, at_home: bool, headed: bool) -> bool:
    if stands_alone(text, start, end):
        return True
    heads = ("~/", "$home/", "./") if at_home else ("./",)
    for head in heads if headed else ():
        if text[max(0, start - len(head)) : start].lower() == head and stands_alone(
            text, start - len(head), end
        ):
            return True
    return False
