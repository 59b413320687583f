"""The write-ahead log of one merge: every step with what it needs to be finished or taken back.

The log is one document, written once before the first visible step: a line with its version and
SHA-256, then JSON. How far a merge came is not written anywhere; each step finds that out from the
files themselves, so that no crash can make the two disagree.
"""

import hashlib
import json
import os
from collections.abc import Mapping

from interlock.model.errors import IntegrityError
from interlock.model.places import path_bytes, path_text
from interlock.model.records import dataclass

_VERSION = "interlock-wal-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which very file stood at a place when the merge was planned.

    Takes: `mode`, with the type; `digest`, over what lies below a folder that goes, else "".
    """

    ino: int
    mode: int
    uid: int
    gid: int
    size_bytes: int
    mtime_ns: int
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """A file's attributes; `xattrs` None where they are not to be touched, values in hex."""

    mode: int
    uid: int
    gid: int
    mtime_ns: int
    xattrs: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WalRoot:
    """A root of the merge: the host's folder by path and identity, and its stage folder's path."""

    name: str
    lower: str
    device: int
    ino: int
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Take what the host has at `path` (as before the merge) into the stage folder.

    Takes: `root`, position among the roots; `is_move`, whether a `Put` brings it back elsewhere.
    """

    root: int
    path: str
    slot: str
    identity: Identity
    is_move: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Put a slot at `path` (as after the merge).

    Takes: `ino`, of what is put; `replaces`, what stands there and is kept in the slot instead, if anything.
    """

    root: int
    path: str
    slot: str
    ino: int
    is_move: bool
    replaces: Identity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjust:
    """Give what is at `path` attributes.

    Takes: `ino`, 0 where the merge itself makes the file; `before`, None likewise.
    """

    root: int
    path: str
    ino: int
    after: Attributes
    before: Attributes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wal:
    """A whole merge.

    Takes: `takes`, what lies deeper first; `puts`, folders before what lies below; `adjusts`, what lies
    deeper first; `restores`, attributes that the folders around had before, used only to take back.
    """

    roots: tuple[WalRoot, ...]
    takes: tuple[Take, ...]
    puts: tuple[Put, ...]
    adjusts: tuple[Adjust, ...]
    restores: tuple[Adjust, ...]


def encode(wal: Wal) -> bytes:
    """Write a log as bytes; `decode` reads it."""
    document = {
        "roots": [
            [root.name, _out(root.lower), root.device, root.ino, _out(root.stage)] for root in wal.roots
        ],
        "takes": [
            [take.root, _out(take.path), take.slot, _identity_out(take.identity), take.is_move]
            for take in wal.takes
        ],
        "puts": [
            [put.root, _out(put.path), put.slot, put.ino, put.is_move, _identity_out(put.replaces)]
            for put in wal.puts
        ],
        "adjusts": [_adjust_out(adjust) for adjust in wal.adjusts],
        "restores": [_adjust_out(adjust) for adjust in wal.restores],
    }
    body = json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()
    return f"{_VERSION} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def decode(raw: bytes) -> Wal:
    """Read a log.

    Raises: IntegrityError, if it is not exactly what `encode` wrote.
    """
    head, _, body = raw.partition(b"\n")
    if head != f"{_VERSION} {hashlib.sha256(body).hexdigest()}".encode():
        raise IntegrityError(
            "the write-ahead log of the merge is damaged",
            hint="compare the workspace with a backup before the run is discarded",
        )
    document = json.loads(body)
    return Wal(
        roots=tuple(
            WalRoot(name=name, lower=_in(lower), device=device, ino=ino, stage=_in(stage))
            for name, lower, device, ino, stage in document["roots"]
        ),
        takes=tuple(
            Take(root=root, path=_in(path), slot=slot, identity=Identity(**identity), is_move=is_move)
            for root, path, slot, identity, is_move in document["takes"]
        ),
        puts=tuple(
            Put(
                root=root,
                path=_in(path),
                slot=slot,
                ino=ino,
                is_move=is_move,
                replaces=None if replaces is None else Identity(**replaces),
            )
            for root, path, slot, ino, is_move, replaces in document["puts"]
        ),
        adjusts=tuple(_adjust_in(*fields) for fields in document["adjusts"]),
        restores=tuple(_adjust_in(*fields) for fields in document["restores"]),
    )


def _out(path: str) -> str:
    return path_text(os.fsencode(path))


def _in(text: str) -> str:
    return os.fsdecode(path_bytes(text))


def _identity_out(identity: Identity | None) -> dict[str, object] | None:
    return None if identity is None else {name: getattr(identity, name) for name in Identity.__slots__}


def _attributes_out(attributes: Attributes | None) -> dict[str, object] | None:
    return None if attributes is None else {name: getattr(attributes, name) for name in Attributes.__slots__}


def _adjust_out(adjust: Adjust) -> list[object]:
    return [
        adjust.root,
        _out(adjust.path),
        adjust.ino,
        _attributes_out(adjust.after),
        _attributes_out(adjust.before),
    ]


def _adjust_in(
    root: int, path: str, ino: int, after: dict[str, object], before: dict[str, object] | None
) -> Adjust:
    return Adjust(
        root=root,
        path=_in(path),
        ino=ino,
        after=Attributes(**after),  # type: ignore[arg-type]
        before=None if before is None else Attributes(**before),  # type: ignore[arg-type]
    )
