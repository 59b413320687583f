"""Whatever is refused of a run that moves files about: what the view still has is nowhere lost on the host."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes.staged_edits import fill
from tests.fakes.staged_examples import scratch
from tests.fakes.staged_tree import KINDS, StagedTree

from interlock.model.dependencies import unmet
from interlock.model.moves import moved_files

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: overlay mounts need root here")

FILES = ("f0", "f1", "a/f0", "a/b/f1", "a/b/deep/f2", "c/f0", "c/d/f2", "e/f1")
FOLDERS = ("", "a", "c", "e", "new", "empty")
WITH_ORIGIN = ("redirect", "plain", "index")
WITHOUT_ORIGIN = {"move-edit": "move", "rmtree": "move"}
"""What is edited after its move, or leaves a folder under another name, is known again by its origin alone."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("move", "move-edit", "move-link", "rmtree", "link", "copy")),
        st.sampled_from(FILES),
        st.sampled_from(FOLDERS),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=6,
)


def texts(top: str) -> list[str]:
    """Return the first line of each file: an edit adds to the end."""
    found = []
    for folder, _, names in os.walk(top):
        for name in names:
            path = f"{folder}/{name}"
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, encoding="ascii") as file:
                    found.append(file.readline())
    return found


def step(top: str, kind: str, path: str, folder: str, number: int) -> None:
    source, target = f"{top}/{path}", f"{top}/{folder}/m{number}"
    if kind == "rmtree":
        shutil.rmtree(os.path.dirname(source) if "/" in path else f"{top}/c", ignore_errors=True)
        return
    os.makedirs(f"{top}/{folder}", exist_ok=True)
    if not os.path.isfile(source) or os.path.islink(source) or os.path.lexists(target):
        return
    if kind == "link":
        os.link(source, target)
    elif kind == "copy":
        shutil.copy(source, target)
    else:
        os.rename(source, target)
        if kind == "move-link":
            os.symlink(target, source)
        elif kind == "move-edit":
            with open(target, "a", encoding="ascii") as file:
                file.write("more\n")


@pytest.mark.parametrize("kind", KINDS)
@given(steps=STEPS, dropped=st.sets(st.integers(0, 12), min_size=1, max_size=3))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_refused_loses_nothing_that_was_moved(
    kind: str, steps: list[tuple[str, str, str, int]], dropped: set[int]
) -> None:
    with scratch() as base:
        tree = StagedTree.make(base, kind, lambda top: fill(top, links=False))
        before = texts(tree.lower)

        def work(top: str) -> list[str]:
            for what, path, folder, number in steps:
                told = what if kind in WITH_ORIGIN else WITHOUT_ORIGIN.get(what, what)
                step(top, told, path, folder, number)
            return texts(top)

        view = set(tree.edit(work))
        changes = tree.changes()
        for index, moved in moved_files(changes).items():
            assert moved.other is not changes[index]
        chosen = frozenset(range(len(changes))) - dropped
        while missing := unmet(changes, chosen):
            chosen -= {index for index, _ in missing}
        tree.merge([changes[index] for index in sorted(chosen)])
        assert set(before) & view <= set(texts(tree.lower))
        if not dropped & set(range(len(changes))):
            assert set(texts(tree.lower)) == view
