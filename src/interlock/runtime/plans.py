"""Plan files on disk: signed with the user's key, and read back only where that key, or one that is named, signed them.

A manifest is what lets an agent act, so a file that anybody could have written is none.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.runtime.folders import state_folder

if TYPE_CHECKING:
    from interlock.evidence import SigningKey
    from interlock.model.manifest import Manifest

KEY_FILE = "plan-key"
MAX_BYTES = 32 << 20
_SEED_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan file that was read.

    Takes: `envelope`, its text; `signers`, names of the keys whose signatures hold, none where it is not signed.
    """

    path: str
    envelope: str
    manifest: Manifest
    signers: tuple[str, ...]


def user_key_path() -> str:
    """Return the file of the user's own key."""
    return os.path.join(state_folder(), KEY_FILE)


def open_key(path: str | None = None) -> SigningKey:
    """Return a signing key; the user's own, which is made once, where no file is named.

    Raises: InputError, for a file that others can read, or that holds no 32 bytes.
    """
    from interlock.evidence import SigningKey

    if path is None:
        path = user_key_path()
        _make(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            kept = os.fstat(descriptor)
            seed = os.read(descriptor, 200)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(
            f"the key `{path}` cannot be read: {error.strerror}",
            hint=f"make one: (umask 077; head -c {_SEED_BYTES} /dev/urandom > {path})",
        ) from error
    if not stat.S_ISREG(kept.st_mode) or kept.st_mode & 0o077:
        raise InputError(f"the key `{path}` can be read by others", hint=f"chmod 600 {path}")
    if len(seed) != _SEED_BYTES:
        with contextlib.suppress(ValueError):
            seed = bytes.fromhex(seed.decode("ascii").strip())
    if len(seed) != _SEED_BYTES:
        raise InputError(
            f"the key `{path}` is no seed of {_SEED_BYTES} bytes", hint="write 32 bytes, or 64 digits in hex"
        )
    return SigningKey.from_seed(seed)


def own_signer() -> str:
    """Return the name of the user's own key, `""` where none was made yet. Raises: InputError."""
    from interlock.evidence.envelopes import key_name

    return key_name(open_key().public_bytes) if os.path.lexists(user_key_path()) else ""


def _make(path: str) -> None:
    if os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, os.urandom(_SEED_BYTES))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        # The first of two that make it at once wins, and both use that one.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)


def signed(manifest: Manifest, key: SigningKey | None) -> str:
    """Return a manifest's envelope. Takes: `key`, None for one without a signature, which nothing follows."""
    from interlock.evidence.envelopes import sign_manifest
    from interlock.manifest.statement import statement

    return sign_manifest(statement(manifest), key)


def write_plan(path: str, envelope: str) -> None:
    """Write a plan file, whole or not at all. Raises: InputError."""
    draft = f"{path}.{os.getpid()}.tmp"
    try:
        with open(draft, "x", encoding="utf-8") as file:
            file.write(envelope)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise InputError(
            f"the plan cannot be written to `{path}`: {error.strerror}",
            hint="name a file in a folder that you may write to: --out FILE",
        ) from error


def read_plan(path: str) -> PlanFile:
    """Read a plan file and check it; it may be unsigned.

    Raises: InputError, where it is none, a signature does not hold, or a digest in it is wrong.
    """
    from interlock.manifest.statement import read_envelope, without_signatures
    from interlock.runtime.policies import read_text
    from interlock.verify.envelopes import check_envelope

    try:
        if os.path.getsize(path) > MAX_BYTES:
            raise InputError(
                f"the plan `{path}` is larger than {MAX_BYTES} bytes", hint="plan a smaller task"
            )
    except OSError:
        pass  # told just below
    text = read_text(path, "plan", 'make one: interlock plan "PROMPT" --toolkits … --out FILE')
    if text.lstrip().startswith("interlock:") or '"payload"' not in text[:4096]:
        raise InputError(
            f"`{path}` is no signed plan",
            hint=f"if it is a plan that you wrote: interlock plan --from {path} --out plan.json",
        )
    manifest = read_envelope(text)
    if without_signatures(text):
        return PlanFile(path=path, envelope=text, manifest=manifest, signers=())
    checked = check_envelope(text)
    if checked.problem:
        raise InputError(
            f"the plan `{path}` does not hold: {checked.problem}",
            hint="look at it (interlock plan show FILE), and make it anew; do not sign what you did not write",
        )
    return PlanFile(path=path, envelope=text, manifest=manifest, signers=checked.signers)


def plan_to_follow(path: str, trusted: tuple[str, ...] = ()) -> PlanFile:
    """Read a plan file for a run to follow.

    Takes: `trusted`, names of keys that may have signed it, beside the user's own.
    Raises: InputError, where none of these did.
    """
    found = read_plan(path)
    if not found.signers:
        raise InputError(
            f"the plan `{path}` is not signed",
            hint=f"look at it: interlock plan show {path}; then: interlock plan sign {path}",
        )
    own = own_signer()
    if not any(name in trusted or (own and name == own) for name in found.signers):
        raise InputError(
            f"the plan `{path}` is signed by {found.signers[0]}, which is not your key",
            hint=f"look at it: interlock plan show {path}; then sign it yourself (interlock plan sign {path}), or "
            "name the key: --plan-key ed25519:…",
        )
    return found
