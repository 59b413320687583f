"""What the command wrote in HOME and nothing keeps: counted, so that nobody looks for it in vain."""

_NAMES = 12
_CACHES = frozenset(("cache", "caches", "cacache", "logs"))
"""Names of folders, `.` and `_` before them left out, whose content nobody looks for."""


class ThrownAway:
    """Takes: `count`, the files so far, caches left out; `names`, the first of them, as paths below HOME."""

    def __init__(self) -> None:
        self.count = 0
        self.names: list[str] = []

    def take(self, path: str) -> None:
        """Take note of a file that is not kept."""
        folders = path.split("/")[:-1]
        if any(folder.lstrip("._").lower() in _CACHES for folder in folders):
            return
        self.count += 1
        if len(self.names) < _NAMES:
            self.names.append(path)
