"""The files of a bundle, and the bundle as one file, in plain lines: docs/formats/evidence-v1.md §2."""

import re

from spec.canonical_json import Broken


def _entry(name: str, size: int) -> bytes:
    head = bytearray(512)
    head[: len(name)] = name.encode()
    for at, text in ((100, "0000644\0"), (108, "0000000\0"), (116, "0000000\0"), (124, f"{size:011o}\0"),
                     (136, "00000000000\0"), (148, "        "), (156, "0"), (257, "ustar\x0000")):  # fmt: skip
        head[at : at + len(text)] = text.encode()
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    return bytes(head)


def files_of(archive: bytes) -> dict[str, bytes]:
    """Read a bundle as one file."""
    found: dict[str, bytes] = {}
    at = 0
    while at + 512 <= len(archive) and any(archive[at : at + 512]):
        head = archive[at : at + 512]
        name = head[:100].rstrip(b"\0").decode("ascii", "replace")
        size_text = head[124:135].decode("ascii", "replace")
        if not re.fullmatch("[0-7]{11}", size_text) or _entry(name, int(size_text, 8)) != head:
            raise Broken("archive")
        size = int(size_text, 8)
        content = archive[at + 512 : at + 512 + size]
        padding = archive[at + 512 + size : at + 512 + size + -size % 512]
        if (
            len(content) != size
            or len(padding) != -size % 512
            or any(padding)
            or (found and name <= max(found))
        ):
            raise Broken("archive")
        found[name] = content
        at += 512 + size + -size % 512
    if not found or archive[at:] != bytes(1024):
        raise Broken("archive")
    return found


def check_files(files: dict[str, bytes]) -> int:
    """Check which files there are; return the number of segments."""
    for name, data in files.items():
        leftover = name in ("heads.note.tmp", "seal.dsse.json.tmp") and "seal.dsse.json" not in files
        plain = name in ("apm.dsse.json", "open.dsse.json", "heads.note", "seal.dsse.json")
        if not (leftover or plain or re.fullmatch(r"(nodes|payloads)/\d{8}\.jsonl|sigs/\d{8}\.bin", name)):
            raise Broken("file-extra")
        most = 16 * 2**20 if name.endswith(".dsse.json") else 4096 if name == "heads.note" else None
        if most is not None and len(data) > most:
            raise Broken("file-size")
    if not {"apm.dsse.json", "open.dsse.json"} <= files.keys():
        raise Broken("file-missing")
    most = 0
    for kind in ("nodes", "payloads", "sigs"):
        numbers = sorted(int(name.partition("/")[2][:8]) for name in files if name.startswith(kind + "/"))
        if numbers != list(range(len(numbers))):
            raise Broken("file-missing")
        most = max(most, len(numbers))
    return most
