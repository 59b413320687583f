"""A fake of the kernel's configfs-tsm, strict in what the kernel is strict in. It is no hardware and signs nothing."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field

Hook = Callable[["FakeTsm", str], None]


def failing(number: int) -> OSError:
    return OSError(number, "fake")


@dataclass
class FakeTsm:
    """Takes: `answer`, the report to 64 bytes; `fails`, a call by its name with the errno that it gives once each;
    `between`, what happens after a question was written (another process's write)."""

    answer: Callable[[bytes], bytes]
    provider: str = "tdx_guest\n"
    auxiliary: bytes | None = None
    fails: list[tuple[str, int]] = field(default_factory=list)
    between: Hook | None = None
    folders: dict[str, dict[str, object]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.fails and self.fails[0][0] == name:
            raise failing(self.fails.pop(0)[1])

    def mkdir(self, path: str) -> None:
        self._call("mkdir")
        if path in self.folders:
            raise failing(errno.EEXIST)
        self.folders[path] = {"generation": 0, "asked": None}

    def write(self, path: str, data: bytes) -> None:
        self._call("write")
        folder, _, name = path.rpartition("/")
        if name != "inblob" or len(data) != 64:
            raise failing(errno.EINVAL)
        held = self.folders[folder]
        held["asked"] = data
        held["generation"] = int(str(held["generation"])) + 1
        if self.between is not None:
            self.between(self, folder)

    def read(self, path: str) -> bytes:
        self._call("read")
        folder, _, name = path.rpartition("/")
        held = self.folders[folder]
        match name:
            case "generation":
                return f"{held['generation']}\n".encode()
            case "provider":
                return self.provider.encode()
            case "auxblob" if self.auxiliary is not None:
                return self.auxiliary
            case "outblob" if isinstance(held["asked"], bytes):
                return self.answer(held["asked"])
            case "outblob":
                raise failing(errno.EINVAL)
        raise failing(errno.ENOENT)

    def rmdir(self, path: str) -> None:
        self.calls.append("rmdir")
        del self.folders[path]
