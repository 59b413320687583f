"""What the command sees in place of a secret: the same in each run of a user, so that an agent asks of a key once."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping

from interlock.policy import Policy
from interlock.runtime.folders import state_folder

KEY_FILE = "placeholder-key"
"""Below the state folder: what placeholders are derived from; without it nothing of a secret can be told from one."""
_KEY_BYTES = 32


def placeholders_of(policy: Policy, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the placeholder of each secret of a policy, by the secret's name.

    Holds: another value of the secret has another placeholder; where the key cannot be kept they are new each time.
    """
    declared = policy.network.secrets
    if not declared:
        return {}
    key = _key(os.path.join(state_folder(), KEY_FILE))
    made = {}
    for one in declared:
        value = f"{one.name}\0{environment.get(one.variable, '')}".encode("utf-8", "surrogateescape")
        made[one.name] = f"interlock-{one.name}-{hmac.digest(key, value, hashlib.sha256)[:12].hex()}"
    return made


def _key(path: str) -> bytes:
    fresh = secrets.token_bytes(_KEY_BYTES)
    for _ in range(2):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            found = file.read(_KEY_BYTES + 1)
            return found if len(found) == _KEY_BYTES else fresh
        with contextlib.suppress(OSError):
            _place(path, fresh)
    return fresh


def _place(path: str, key: bytes) -> None:
    """Put a whole key there at once; where another start was quicker its key stands."""
    draft = f"{path}.{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, key)
        os.link(draft, path)
    finally:
        os.close(descriptor)
        os.unlink(draft)
