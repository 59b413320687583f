"""The run's own certificate authority: what the sandbox trusts, and what no one else ever does.

Making one means importing a library that costs more than a whole start may. So authorities are made ahead, some at a
time, and a run takes one of them by renaming its file: no two runs share one. Its key lives in the taken file until
the run has read it, then in memory alone.
"""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from interlock.boundary.net.names import canonical_literal, canonical_name
from interlock.model.errors import BoundaryError
from interlock.model.records import dataclass

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from interlock.boundary.net.minting import Mint

BATCH = 32
LOW = 8
MIN_DAYS = 14
"""A run takes no authority that ends sooner."""

_DAY_SECONDS = 86_400
_MAX_CONTEXTS = 1000
_MAX_FILE = 16 * 1024
_PREFIX, _SUFFIX = "ca-", ".pem"
_TAKEN = "taken-"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityFiles:
    """A run's authority. Takes: `key_pem`, which is never shown (`repr` leaves it out) and never written."""

    certificate_pem: bytes
    key_pem: bytes

    def __repr__(self) -> str:
        return f"AuthorityFiles(certificate_pem={self.certificate_pem!r})"


def take(folder: str) -> AuthorityFiles:
    """Take an authority made ahead in `folder`, which is made if absent; only when none is left, make a batch first.

    Raises: BoundaryError, if the folder is not the user's own alone.
    """
    _open_folder(folder)
    taken = _take_one(folder)
    if taken is None:
        stock(folder, BATCH)
        taken = _take_one(folder)
    if taken is None:
        raise BoundaryError(
            f"no certificate authority can be kept in `{folder}`",
            hint="check that the disk is not full and that the clock of this machine is right",
        )
    return taken


def stock(folder: str, count: int = BATCH, *, below: int = BATCH) -> int:
    """Make authorities ahead, unless there are at least `below` already; slow the first time (about 0.1 s).

    Returns: how many were made.
    """
    _open_folder(folder)
    if sum(1 for _ in _fresh(folder)) >= below:
        return 0
    from interlock.boundary.net import minting

    for _ in range(count):
        made, ends = minting.make_authority()
        name = f"{_PREFIX}{ends}-{os.urandom(8).hex()}"
        _write(f"{folder}/.{name}", made.certificate_pem + made.key_pem)
        os.rename(f"{folder}/.{name}", f"{folder}/{name}{_SUFFIX}")  # so that none is taken half written
    return count


def _open_folder(folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError as error:
        raise BoundaryError(
            f"the folder of authorities `{folder}` cannot be used: {error.strerror}", hint="check who owns it"
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise BoundaryError(
            f"the folder of authorities `{folder}` is open to others",
            hint="remove it, or make it yours alone: chmod 700",
        )


def _fresh(folder: str) -> Iterator[str]:
    """Find the authorities that can be taken; remove what has run out or was left half way."""
    now = time.time()
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
                ends = name[len(_PREFIX) :].split("-", 1)[0]
                if ends.isdigit() and int(ends) >= now + MIN_DAYS * _DAY_SECONDS:
                    yield name
                    continue
            elif not name.startswith((_TAKEN, f".{_PREFIX}")):
                continue
            else:
                # another run may be at it just now
                try:
                    if entry.stat(follow_symlinks=False).st_ctime > now - 3600:
                        continue
                except OSError:
                    continue
            _remove(f"{folder}/{name}")


def _take_one(folder: str) -> AuthorityFiles | None:
    for name in _fresh(folder):
        mine = f"{folder}/{_TAKEN}{os.urandom(8).hex()}"
        try:
            os.rename(f"{folder}/{name}", mine)
        except OSError:
            continue  # another run was faster
        try:
            files = _read(mine)
        finally:
            _remove(mine)
        if files is not None:
            return files
    return None


def _read(path: str) -> AuthorityFiles | None:
    """Read an authority's file; None for one that is not as we write them."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        private = (
            stat.S_IMODE(found.st_mode) == 0o600 and found.st_uid == os.geteuid() and found.st_nlink == 1
        )
        if not stat.S_ISREG(found.st_mode) or not private:
            return None
        data = os.read(descriptor, _MAX_FILE)
    finally:
        os.close(descriptor)
    mark = b"-----END CERTIFICATE-----\n"
    end = data.find(mark) + len(mark)
    if end < len(mark) or not data[end:].startswith(b"-----BEGIN ") or not data.endswith(b" KEY-----\n"):
        return None
    return AuthorityFiles(certificate_pem=data[:end], key_pem=data[end:])


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


class Authority:
    """Server contexts for whatever names the sandbox asks for.

    Takes: `files`, the run's authority; `folder`, where authorities are made ahead.
    Holds: neither key is in any file.
    """

    def __init__(self, files: AuthorityFiles, folder: str) -> None:
        from interlock.boundary.net import minting

        self._mint: Mint = minting.Mint(files)
        self._folder = folder
        self._contexts: OrderedDict[tuple[str, tuple[str, ...]], tuple[ssl.SSLContext, float]] = OrderedDict()

    def refill(self) -> int:
        """Make authorities for later runs where few are left; some milliseconds, so best when a run is idle or ends."""
        return stock(self._folder, below=LOW)

    def context(self, host: str, alpn: tuple[str, ...] = ("http/1.1",)) -> ssl.SSLContext:
        """Return the server context for a canonical name or IP literal.

        Takes: `alpn`, the protocols that may be agreed on, in order.
        Raises: ValueError, if the host is neither.
        """
        key = (host, alpn)
        known = self._contexts.get(key)
        if known is not None and known[1] > time.time():
            self._contexts.move_to_end(key)
            return known[0]
        literal = canonical_literal(host)
        if host not in (literal, canonical_name(host)) or not host:
            raise ValueError("neither a canonical host name nor an IP literal")
        made = self._mint.context(host, alpn, literal=bool(literal))
        self._contexts[key] = made
        self._contexts.move_to_end(key)
        if len(self._contexts) > _MAX_CONTEXTS:
            self._contexts.popitem(last=False)
        return made[0]
