"""What a vector is, and the edits by which honest ledgers are broken."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from nacl.signing import SigningKey
from tests.vectors.forge import Files, Forge, Item, canonical, tar
from tests.vectors.stories import small

NODES, PAYLOADS, HEADS = "nodes/00000000.jsonl", "payloads/00000000.jsonl", "sigs/00000000.bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    name: str
    why: str
    content: bytes
    verdict: str
    reason: str
    node: int | None = None
    options: dict[str, str] = field(default_factory=dict)


def honest(**changes: object) -> Forge:
    given: dict[str, object] = {"items": small(), "heads": (3, 9), **changes}
    return Forge(**given)  # type: ignore[arg-type]


def unsealed(**changes: object) -> Files:
    files = honest(**changes).files()
    files.pop("seal.dsse.json", None)
    return files


def with_item(seq: int, **changes: object) -> list[Item]:
    items = small()
    items[seq] = replace(items[seq], **changes)  # type: ignore[arg-type]
    return items


def lines(files: Files, name: str) -> list[bytes]:
    return files[name].splitlines(keepends=True)


def edited(files: Files, name: str, edit: Callable[[list[bytes]], object]) -> Files:
    """A bundle of which the lines of one file were edited by somebody without the key."""
    rows = lines(files, name)
    edit(rows)
    return {**files, name: b"".join(rows)}


def swap(first: int, second: int) -> Callable[[list[bytes]], object]:
    def edit(rows: list[bytes]) -> None:
        rows[first], rows[second] = rows[second], rows[first]

    return edit


def substitute(row: int, old: bytes, new: bytes) -> Callable[[list[bytes]], object]:
    def edit(rows: list[bytes]) -> None:
        assert old in rows[row], (old, rows[row])
        rows[row] = rows[row].replace(old, new, 1)

    return edit


def drop(row: int) -> Callable[[list[bytes]], object]:
    return lambda rows: rows.pop(row)


def flipped(content: bytes, offset: int) -> bytes:
    return content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :]


def tampered(name: str, reason: str, files: Files, node: int | None, why: str, **options: str) -> Vector:
    return Vector(
        name=name, why=why, content=tar(files), verdict="tampered", reason=reason, node=node, options=options
    )


def honest_note(count: int, **changes: object) -> bytes:
    forge = honest(**changes)
    forge.files()
    return forge.note(count)


def cosigning(note: bytes, *, shown: int = 0) -> tuple[str, str]:
    """A witness's verifier key, and a head with its cosignature. Takes: `shown`, seconds that its time is off by."""
    name, key, time_s = b"witness.example/w1", SigningKey(b"\x07" * 32), 1_790_000_000
    blob = b"\x04" + bytes(key.verify_key)
    key_id = sha256(name + b"\n" + blob).digest()[:4]
    text = note.partition(b"\n\n")[0] + b"\n"
    signature = key.sign(b"cosignature/v1\ntime %d\n" % time_s + text).signature
    line = base64.b64encode(key_id + (time_s + shown).to_bytes(8, "big") + signature)
    verifier_key = f"{name.decode()}+{key_id.hex()}+{base64.b64encode(blob).decode()}"
    return verifier_key, (note + b"\xe2\x80\x94 " + name + b" " + line + b"\n").decode()


def resigned_not(envelope: bytes, old: bytes, new: bytes) -> bytes:
    """An envelope with an edited statement and the old signature."""
    outer = json.loads(envelope)
    body = base64.b64decode(outer["payload"])
    assert old in body
    outer["payload"] = base64.b64encode(body.replace(old, new)).decode()
    return canonical(outer) + b"\n"
