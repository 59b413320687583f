"""What a body that is no text holds as text: files of an archive, objects of a pack, parts of a form.

The decision is made from recorded text alone, so what stands in bytes is written out here, within a budget. A body is
read whole where each leaf is text or belongs to a format that was followed to its end; else it may hold anything.
"""

import io
import re
import tarfile
import zipfile
import zlib

from interlock.boundary.net.inflating import inflate, inflate_sent

MAX_BYTES = 8 * 1024 * 1024
"""A longer body is not looked at."""
TEXT_BYTES = 1024 * 1024
"""What is recorded of one body."""
INFLATED_BYTES = 32 * 1024 * 1024
MEMBERS = 5_000
DEPTH = 4
_PRINTABLE = re.compile(rb"(?:[\t\n\r -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}){6,}")


class _Budget:
    """What may still be inflated, recorded and opened of one body."""

    def __init__(self) -> None:
        self.inflated = INFLATED_BYTES
        self.text = TEXT_BYTES
        self.members = MEMBERS
        self.whole = True
        self.texts: list[str] = []

    def take(self, text: str) -> None:
        """Record a text, as much of it as fits."""
        if len(text) > self.text:
            self.whole = False
            return
        self.text -= len(text)
        self.texts.append(text)


def views_of(data: bytes, content_type: str, content_encoding: str = "") -> tuple[tuple[str, ...], bool]:
    """Return the texts in a body, and whether they are all that it holds.

    Holds: bounded in time and memory, whatever the bytes are; never fails.
    """
    if len(data) > MAX_BYTES:
        return (), False
    budget = _Budget()
    if content_encoding:
        found = inflate_sent(data, content_encoding, INFLATED_BYTES)
        if found is None:
            return (), False
        data = found
    boundary = re.search(r"boundary=\"?([^\";]{1,70})", content_type)
    if boundary and content_type.lower().startswith("multipart/"):
        for part in data.split(b"--" + boundary[1].encode("latin-1", "replace")):
            head, _, body = part.partition(b"\r\n\r\n")
            budget.take(head.decode("utf-8", "replace"))
            _look(body.removesuffix(b"\r\n"), budget, DEPTH)
    else:
        _look(data, budget, DEPTH)
    return tuple(budget.texts) or ("",), budget.whole


def _look(data: bytes, budget: _Budget, depth: int) -> None:
    budget.members -= 1
    if not data:
        return
    if budget.members < 0 or depth < 0:
        budget.whole = False
        return
    if b"\0" not in data:
        try:
            budget.take(data.decode("utf-8"))
        except UnicodeDecodeError:
            pass
        else:
            return
    try:
        if data[:4] == b"PK\x03\x04":
            _zip(data, budget, depth)
        elif data[257:262] == b"ustar":
            _tar(data, budget, depth)
        elif data[:2] == b"\x1f\x8b":
            _gzip(data, budget, depth)
        elif b"PACK\0\0\0\x02" in data[:65536] or data[:8] == b"PACK\0\0\0\x03":
            _pack(data, budget)
        elif data[:8] == b"\x89PNG\r\n\x1a\n":
            _png(data, budget)
        else:
            _strings(data, budget)
            budget.whole = False
    except (ValueError, IndexError, OverflowError, OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile,
            NotImplementedError, RuntimeError, KeyError):  # fmt: skip
        budget.whole = False


def _strings(data: bytes, budget: _Budget) -> None:
    budget.take(b"\n".join(_PRINTABLE.findall(data)).decode("utf-8", "replace"))


def _gzip(data: bytes, budget: _Budget, depth: int) -> None:
    found = inflate(data, "gzip", budget.inflated)
    if found is None:
        budget.whole = False
        return
    budget.inflated -= len(found)
    _strings(data[:512], budget)  # the name and the comment in its head
    _look(found, budget, depth - 1)


def _zip(data: bytes, budget: _Budget, depth: int) -> None:
    # What stands between and around the members is looked at too: names, comments, bytes that no member owns.
    _strings(data, budget)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if member.flag_bits & 1 or member.file_size > budget.inflated:
                budget.whole = False
                continue
            with archive.open(member) as file:
                content = file.read(budget.inflated + 1)
            budget.inflated -= len(content)
            if budget.inflated < 0:
                budget.whole = False
                return
            _look(content, budget, depth - 1)


def _tar(data: bytes, budget: _Budget, depth: int) -> None:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            budget.take(f"{member.name}\n{member.linkname}\n{member.uname} {member.gname}")
            file = archive.extractfile(member) if member.isreg() else None
            if file is not None:
                _look(file.read(), budget, depth - 1)
            if budget.members < 0:
                return


def _pack(data: bytes, budget: _Budget) -> None:
    """Read the objects of a Git pack, and what stands before it (the references of a push)."""
    start = data.index(b"PACK\0\0\0")
    _strings(data[:start], budget)
    count = int.from_bytes(data[start + 8 : start + 12], "big")
    at = start + 12
    for _ in range(count):
        kind = data[at] >> 4 & 7
        while data[at] & 0x80:
            at += 1
        at += 1
        if kind == 6:
            while data[at] & 0x80:
                at += 1
            at += 1
        elif kind == 7:
            at += 20
        engine = zlib.decompressobj()
        content = engine.decompress(memoryview(data)[at:], budget.inflated + 1)
        budget.inflated -= len(content)
        budget.members -= 1
        if not engine.eof or budget.inflated < 0 or budget.members < 0:
            budget.whole = False
            return
        at = len(data) - len(engine.unused_data)
        if kind in (2, 6, 7) or b"\0" in content:
            _strings(content, budget)
            # A tree is names and digests, a delta is copies and what is new; another object is data of its own.
            budget.whole = budget.whole and kind in (2, 6, 7)
        else:
            _look(content, budget, 0)


def _png(data: bytes, budget: _Budget) -> None:
    at = 8
    pixels = bytearray()
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += 12 + size
        if kind == b"IDAT":
            pixels += content
        elif kind in (b"zTXt", b"iCCP", b"iTXt"):
            budget.whole = False
        _strings(content, budget)
        if kind == b"IEND":
            break
    if at != len(data):
        budget.whole = False
    engine = zlib.decompressobj()
    found = engine.decompress(bytes(pixels), budget.inflated + 1)
    budget.inflated -= len(found)
    if not engine.eof or engine.unused_data or budget.inflated < 0:
        budget.whole = False
    _strings(found, budget)
