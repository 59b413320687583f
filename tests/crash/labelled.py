"""Whatever a crash leaves, what the agent wrote has its label: the store is durable before the merge."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from hashlib import sha256

from tests.crash.held_run import HeldRun

from interlock.model.labels import Integrity
from interlock.runtime.label_rows import DamagedError, read_rows

_OURS = ".interlock"
"""How names begin that a merge gives to what is not yet in its place."""


class Labelled:
    """Compares a held run's workspace with its label store. Takes: `run`, its disk mounted as it was held."""

    def __init__(self, run: HeldRun) -> None:
        self._run = run
        self._users = {digest for _path, digest in _digests(run.workspace)}

    def merged(self) -> list[tuple[str, str]]:
        """Return path and digest of each file whose bytes are the agent's."""
        return [one for one in _digests(self._run.workspace) if one[1] not in self._users]

    def faults(self) -> list[str]:
        """Return which of these have no label, or a better one than they should."""
        merged = self.merged()
        if not merged:
            return []
        with tempfile.TemporaryDirectory() as copy:
            # A copy: what SQLite rolls back at a reading is left to the product.
            store = os.path.join(self._run.top, "state", "labels")
            if not os.path.isdir(store):
                return [f"{len(merged)} merged files, and no label store"]
            shutil.copytree(store, f"{copy}/labels")
            try:
                lost, rows = read_rows(
                    f"{copy}/labels/places.sqlite", self._run.workspace, whole=True, everything=True
                )
            except DamagedError as error:
                return [f"{len(merged)} merged files, and the label store is damaged: {error}"]
        if lost:
            return [f"the label store forgot: {lost}"]
        known = {(row.path, row.digest) for row in rows if row.integrity is Integrity.UNTRUSTED}
        return [f"no label for {path}" for path, digest in merged if (path, digest) not in known]


def _digests(top: str) -> Iterator[tuple[str, str]]:
    for folder, _folders, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            if not name.startswith(_OURS) and not os.path.islink(path):
                with open(path, "rb") as file:
                    yield path, sha256(file.read()).hexdigest()
