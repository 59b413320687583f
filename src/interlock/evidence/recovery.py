"""What of an unsealed ledger can be taken up again: the longest signed prefix that still holds.

The writer's own reading of its files. It is stricter than it is clever: what a killed writer or a loss of
power cannot have left behind is damage, and damage is refused.
"""

import os
import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO

from interlock.evidence import encoding
from interlock.evidence.encoding import HEAD_SIZE_BYTES, SEGMENT_NODES, StructureTree
from interlock.evidence.keys import SigningKey
from interlock.model.errors import IntegrityError
from interlock.model.records import dataclass

_HEADER = re.compile(
    rb'\{"actor":"[^"]*","after":"([0-9a-f]{64})",(?:"bind":\{[^{}]*\},)?"body":"([0-9a-f]{64})",'
    rb'("branches":\[[0-9,]*\],"kind":"[a-z_]+","parent":(?:null|[0-9]+),"seq":([0-9]+)),"verdict":"[a-z]*"\}\n'
)
_PAYLOAD = re.compile(rb'\{"salt":"([0-9a-f]{32})","seq":([0-9]+),"value":(\{.*\})\}\n', re.DOTALL)
_SEGMENT_NAME = re.compile(r"(\d{8})\.(?:jsonl|bin)")
_UNWRITTEN = bytes(8)
"""Zeros where a signature should be: a loss of power kept the length of the file, and not its bytes."""
_HINT = "run `interlock verify` on it; a damaged ledger is not continued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """A ledger cut back to its last good signed head. `folder` is an open descriptor, the caller's now."""

    folder: int
    run_id: str
    nonce: str
    apm_hash: bytes
    open_hash: bytes
    chain: bytes
    structure: StructureTree
    signatures: int
    cut_nodes: int


class _Lines:
    """The lines of one kind of segment, with the offset up to which they were read."""

    def __init__(self, folder: int, kind: str) -> None:
        self.kind = kind
        self.folder = folder
        self.segment = -1
        self.offset = 0
        self.lines_read = 0
        self._file: BinaryIO | None = None

    def next(self, seq: int) -> bytes:
        """Return the line of a node with its LF, or empty where the file ends or breaks off.

        A file system may keep the length of what was appended, and zeros for its bytes: no line of ours has any.
        """
        if seq % SEGMENT_NODES == 0:
            self.close()
            self.segment = seq // SEGMENT_NODES
            self.offset = 0
            try:
                self._file = _open(self.folder, f"{self.kind}/{self.segment:08d}.jsonl")
            except FileNotFoundError:
                return b""
        if self._file is None:
            return b""
        line = self._file.readline(encoding.PAYLOAD_LINE_LIMIT_BYTES + 1)
        if not line.endswith(b"\n") or b"\0" in line:
            return b""
        self.offset += len(line)
        self.lines_read += 1
        return line

    def count_rest(self) -> int:
        """Return the number of whole lines that were not read, in this segment and the later ones."""
        whole = 0
        while self._file is not None:
            while line := self._file.readline(1 << 20):
                whole += line.endswith(b"\n")
            self.close()
            self.segment += 1
            try:
                self._file = _open(self.folder, f"{self.kind}/{self.segment:08d}.jsonl")
            except FileNotFoundError:
                break
        return whole

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def recover_prefix(directory: str, key: SigningKey) -> Prefix:
    """Check an unsealed ledger, cut it back to its last good signed head, and make that durable.

    Raises: IntegrityError, if it is sealed, damaged, of another key, or cannot be read.
    """
    try:
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise IntegrityError(
            f"the ledger could not be opened: {os.strerror(error.errno or 0)}",
            hint="name a run's ledger folder",
        ) from error
    try:
        return _recover(folder, key)
    except OSError as error:
        os.close(folder)
        raise IntegrityError(
            f"the ledger could not be read: {os.strerror(error.errno or 0)}",
            hint="fix the disk, then try again",
        ) from error
    except IntegrityError:
        os.close(folder)
        raise


def _recover(folder: int, key: SigningKey) -> Prefix:
    if encoding.SEAL_FILE in os.listdir(folder):
        raise IntegrityError("the ledger is sealed and cannot be continued", hint="begin a new run")
    open_body = _signed_statement(folder, encoding.OPEN_FILE, key)
    apm_body = _signed_statement(folder, encoding.APM_FILE, key)
    run_id, nonce = _opening(open_body, key, apm_body)
    apm_hash = sha256(encoding.D_APM + apm_body).digest()
    open_hash = sha256(encoding.D_OPEN + open_body).digest()
    bind = encoding.binding(run_id, nonce, apm_hash, open_hash)

    headers, payloads = _Lines(folder, "nodes"), _Lines(folder, "payloads")
    try:
        good = _last_good(folder, key, bind, headers, payloads)
        _check_note(folder, good.structure.count)
        cut_nodes = headers.lines_read - good.structure.count + headers.count_rest()
    finally:
        headers.close()
        payloads.close()
    _cut(folder, "nodes", good.structure.count, good.header_offset)
    _cut(folder, "payloads", good.structure.count, good.payload_offset)
    _cut_heads(folder, good.structure.count, good.signatures)
    return Prefix(
        folder=folder,
        run_id=run_id,
        nonce=nonce,
        apm_hash=apm_hash,
        open_hash=open_hash,
        chain=good.chain,
        structure=good.structure,
        signatures=good.signatures,
        cut_nodes=cut_nodes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Good:
    """A signed head that holds, and where the files stood there."""

    chain: bytes
    structure: StructureTree
    header_offset: int
    payload_offset: int
    signatures: int


def _last_good(folder: int, key: SigningKey, bind: str, headers: _Lines, payloads: _Lines) -> _Good:
    """Walk from head to head; stop where the files end, refuse where they contradict each other."""
    tree = StructureTree()
    chain = encoding.EMPTY_CHAIN
    good = _Good(chain=chain, structure=StructureTree(), header_offset=0, payload_offset=0, signatures=0)
    for number, (count, signature) in enumerate(_heads(folder), 1):
        if count <= tree.count:
            raise IntegrityError("the ledger's signed heads do not rise", hint=_HINT)
        while tree.count < count:
            line, payload = headers.next(tree.count), payloads.next(tree.count)
            if not line or not payload:
                # Cut off by a loss of power between two barriers: the head before this one counts.
                return good
            chain = _fold(chain, line, payload, "" if tree.count else bind, tree)
        if key.sign(encoding.head_message(count, chain)) != signature:
            raise IntegrityError(f"the signed head at {count} nodes does not hold", hint=_HINT)
        reached = StructureTree()
        reached.count, reached.roots = tree.count, list(tree.roots)
        good = _Good(
            chain=chain,
            structure=reached,
            header_offset=headers.offset,
            payload_offset=payloads.offset,
            signatures=number,
        )
    if not good.signatures:
        headers.next(0)  # so that an unsigned ledger's nodes are counted too
    return good


def _open(folder: int, name: str) -> BinaryIO:
    return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb")


def _signed_statement(folder: int, name: str, key: SigningKey) -> bytes:
    """Return a statement whose file is, byte for byte, what this key would write."""
    with _open(folder, name) as file:
        content = file.read(encoding.ENVELOPE_LIMIT_BYTES + 1)
    begin = content.find(b'{"payload":"')
    end = content.find(b'"', 12)
    try:
        body = a2b_base64(content[12:end])
        intact = begin == 0 and encoding.envelope(body, key) == content
    except (Base64Error, IntegrityError):
        intact = False
    if not intact:
        raise IntegrityError(f"`{name}` is damaged or was signed by another key", hint=_HINT)
    return body


def _opening(open_body: bytes, key: SigningKey, apm_body: bytes) -> tuple[str, str]:
    # Signed by our key, so written by us: only the version can surprise.
    import orjson

    predicate = orjson.loads(open_body)["predicate"]
    if predicate["format"] != encoding.FORMAT:
        raise IntegrityError(
            "the ledger is of another format", hint="use the version of Interlock that wrote it"
        )
    if (
        predicate["key"] != key.public_bytes.hex()
        or predicate["apm"] != sha256(encoding.D_APM + apm_body).hexdigest()
    ):
        raise IntegrityError("the opening does not belong to this manifest and key", hint=_HINT)
    return predicate["run"], predicate["nonce"]


def _heads(folder: int) -> Iterator[tuple[int, bytes]]:
    segment = 0
    while True:
        try:
            file = _open(folder, f"sigs/{segment:08d}.bin")
        except FileNotFoundError:
            return
        with file:
            while len(record := file.read(HEAD_SIZE_BYTES)) == HEAD_SIZE_BYTES:
                if not any(record[:8]) or _UNWRITTEN in record[8:]:
                    return
                yield int.from_bytes(record[:8], "big"), record[8:]
        segment += 1


def _fold(chain: bytes, line: bytes, payload: bytes, bind: str, tree: StructureTree) -> bytes:
    seq = tree.count
    parsed = _HEADER.fullmatch(line)
    number = b"%d" % seq
    if parsed is None or parsed[1] != chain.hex().encode() or parsed[4] != number:
        raise IntegrityError(f"node {seq} is damaged", hint=_HINT)
    if bind and bind.encode() not in line:
        raise IntegrityError("node 0 belongs to another run", hint=_HINT)
    body = _PAYLOAD.fullmatch(payload)
    if body is not None:
        hashed = sha256(bytes.fromhex(body[1].decode()) + body[3]).hexdigest().encode()
        intact = body[2] == number and hashed == parsed[2]
    else:
        intact = payload == b'{"removed":true,"seq":%b}\n' % number
    if not intact:
        raise IntegrityError(f"the payload of node {seq} is damaged", hint=_HINT)
    tree.add(parsed[3])
    return sha256(chain + seq.to_bytes(8, "big") + sha256(encoding.D_NODE + line[:-1]).digest()).digest()


def _check_note(folder: int, count: int) -> None:
    """Refuse a ledger that lost nodes which a barrier had made durable."""
    try:
        with _open(folder, encoding.NOTE_FILE) as file:
            lines = file.read(4096).split(b"\n")
    except FileNotFoundError:
        return
    if len(lines) < 2 or not lines[1].isdigit() or int(lines[1]) > count:
        raise IntegrityError("the ledger lost nodes that a barrier had made durable", hint=_HINT)


def _cut(folder: int, kind: str, count: int, offset: int) -> None:
    last = (count - 1) // SEGMENT_NODES if count else -1
    _drop_segments(folder, kind, last)
    if last >= 0:
        _shorten(folder, f"{kind}/{last:08d}.jsonl", offset)


def _cut_heads(folder: int, count: int, signatures: int) -> None:
    last = (count - 1) // SEGMENT_NODES if count else -1
    _drop_segments(folder, "sigs", last)
    earlier = 0
    for segment in range(last):
        earlier += os.stat(f"sigs/{segment:08d}.bin", dir_fd=folder).st_size // HEAD_SIZE_BYTES
    if last >= 0:
        _shorten(folder, f"sigs/{last:08d}.bin", (signatures - earlier) * HEAD_SIZE_BYTES)
    for name in (encoding.NOTE_FILE, encoding.SEAL_FILE):
        try:
            os.unlink(name + encoding.TEMPORARY_SUFFIX, dir_fd=folder)
        except FileNotFoundError:
            continue


def _drop_segments(folder: int, kind: str, last: int) -> None:
    inner = os.open(kind, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        for name in os.listdir(inner):
            number = _SEGMENT_NAME.fullmatch(name)
            if number is not None and int(number[1]) > last:
                os.unlink(name, dir_fd=inner)
        os.fsync(inner)
    finally:
        os.close(inner)


def _shorten(folder: int, name: str, size_bytes: int) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.ftruncate(descriptor, size_bytes)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
