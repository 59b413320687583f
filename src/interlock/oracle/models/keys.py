"""Keys of providers: where one lies, how it is read, and how it is kept out of every message."""

import base64
import os
import stat
from collections.abc import Iterable
from urllib.parse import quote

from interlock.model.records import dataclass
from interlock.oracle.models.client import ModelError

_SIZE_LIMIT_BYTES = 16 << 10
_PIECE = 8
_MASK = "[key]"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySource:
    """Where a key lies: in a variable of the environment, or in a file that nobody else can read.

    Holds: the key itself is in no field, so that it is in no log of this record.
    """

    env: str = ""
    file: str = ""

    def __str__(self) -> str:
        return f"env {self.env}" if self.env else f"file {self.file}"

    def read(self) -> bytes:
        """Return the key. Raises: ModelError of the kind `no-key`."""
        if self.env:
            text = os.environ.get(self.env, "")
            if not text:
                raise ModelError(
                    "no-key",
                    f"the variable `{self.env}` holds no key",
                    hint=f"export {self.env}=… where interlock is started",
                )
            return os.fsencode(text)
        return _of_file(self.file)

    def text(self) -> str:
        """Return the key as what a header can carry. Raises: ModelError of the kind `no-key`."""
        key = self.read().strip()
        if not key or not all(0x20 < byte < 0x7F for byte in key):
            raise ModelError(
                "no-key", f"the key of {self} is not one word of printable ASCII", hint="write the key alone"
            )
        return key.decode("ascii")

    def fault(self) -> str:
        """Return why the key cannot be had, `""` where it can."""
        try:
            self.text()
        except ModelError as error:
            return error.message
        return ""


def _of_file(path: str) -> bytes:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ModelError(
            "no-key",
            f"the key `{path}` cannot be read: {error.strerror}",
            hint="check the path in models.yaml",
        ) from error
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise ModelError("no-key", f"the key `{path}` is no file", hint="name a regular file")
        if found.st_mode & 0o077 or found.st_uid not in (os.geteuid(), 0):
            raise ModelError(
                "no-key",
                f"the key `{path}` is open to other users",
                hint=f"chmod 600 {path}; it must be yours",
            )
        if found.st_size > _SIZE_LIMIT_BYTES:
            raise ModelError("no-key", f"the key `{path}` is larger than a key", hint="write the key alone")
        return os.read(number, _SIZE_LIMIT_BYTES)
    finally:
        os.close(number)


def without_key(text: str, key: str) -> str:
    """Return a text with the key cut out, and every piece of it that could give it away."""
    if not key:
        return text
    forms = [key, quote(key, safe=""), base64.b64encode(key.encode()).decode()]
    size = min(_PIECE, len(key))
    pieces = {form[at : at + size] for form in forms for at in range(len(form) - size + 1)}
    hidden = bytearray(len(text))
    for at in range(len(text) - size + 1):
        if text[at : at + size] in pieces:
            hidden[at : at + size] = b"\1" * size
    out: list[str] = []
    for at, char in enumerate(text):
        if not hidden[at]:
            out.append(char)
        elif at == 0 or not hidden[at - 1]:
            out.append(_MASK)
    return "".join(out)


_inside: set[KeySource] = set()


def keep_inside(keys: Iterable[KeySource]) -> None:
    """Remember keys of the monitor's own: no command that it starts may have them."""
    _inside.update(keys)


def kept_variables() -> frozenset[str]:
    """Return the variables of the environment that stay with the monitor."""
    return frozenset(one.env for one in _inside if one.env)


def kept_files() -> tuple[str, ...]:
    """Return the files that stay with the monitor."""
    return tuple(sorted(one.file for one in _inside if one.file))
