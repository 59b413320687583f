"""A run's own keys: the signing seed and the secret of the payload salts.

They are made for one run, lie in its folder (0600) so that a held run can go on in a later process, and are
gone once the ledger is sealed: nobody can add to it then, not even its owner.
"""

from __future__ import annotations

import contextlib
import os

from interlock.evidence import SigningKey
from interlock.model.errors import IntegrityError


def make_keys(path: str) -> tuple[SigningKey, bytes]:
    """Make the keys of the run in this folder, durably; return the signing key and the salts' secret."""
    key, secret = SigningKey.generate(), os.urandom(32)
    for name, value in (("signing", key.seed), ("salts", secret)):
        descriptor = os.open(
            os.path.join(path, "keys", name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        try:
            os.write(descriptor, value)
            # a ledger that outlives a loss of power is of no use without them
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    folder = os.open(os.path.join(path, "keys"), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return key, secret


def read_keys(path: str) -> tuple[SigningKey, bytes]:
    """Read the keys of an open run. Raises: IntegrityError if they are gone or cut."""
    values = []
    for name in ("signing", "salts"):
        try:
            with open(os.path.join(path, "keys", name), "rb") as file:
                values.append(file.read(64))
        except OSError as error:
            raise IntegrityError(
                f"the run's keys cannot be read ({error.strerror}), so its ledger cannot go on",
                hint="its staged files can still be copied by hand from stage/0/upper",
            ) from error
    seed, secret = values
    if len(seed) != 32 or len(secret) != 32:
        raise IntegrityError("the run's keys are damaged, so its ledger cannot go on")
    return SigningKey.from_seed(seed), secret


def forget_keys(path: str) -> None:
    """Remove the keys of a sealed run."""
    for name in ("signing", "salts"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(path, "keys", name))
