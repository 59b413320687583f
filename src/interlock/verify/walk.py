"""The walk along the chain: lines become nodes only if grammar, sequence, link and payload hash hold.

Source: KNOX §4.4, step 2; docs/formats/evidence-v1.md §4.
"""

import re
from binascii import hexlify, unhexlify
from collections.abc import Callable
from hashlib import sha256
from typing import BinaryIO, cast

import orjson

from interlock.verify.report import Flaw
from interlock.verify.source import Bundle
from interlock.verify.statements import Opening, diagnose, holds_fraction

SEGMENT_NODES = 65_536
BATCH_NODES = 256
HEADER_LIMIT_BYTES = 64 << 10
PAYLOAD_LIMIT_BYTES = 16 << 20
EMPTY_CHAIN = sha256(b"").digest()

_NUMBER = rb"(?:0|[1-9][0-9]{0,15})"
_BEFORE = rb'\{"actor":"([ !#-\[\]-~]{1,256})","after":"([0-9a-f]{64})",'
_AFTER = (
    rb'"body":"([0-9a-f]{64})",("branches":\[((?:%b(?:,%b){0,4095})?)\],"kind":"([a-z_]{1,32})","parent":(null|%b),"seq":(%b)),'
    rb'"verdict":"(|release|refuse|defer)"\}\n'
) % ((_NUMBER,) * 4)
_HEADER = re.compile(_BEFORE + _AFTER)
_FIRST = re.compile(_BEFORE + rb'("bind":\{[^{}]{1,512}\},)' + _AFTER)
_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


Header = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]
"""A header's fields as the line has them.

In order: actor, after, body, structural text, branches, kind, parent, seq, verdict.
"""

HeadCheck = Callable[[bytes], bool]
"""Whether the signed head at the batch's end holds over this chain value."""


class Walk:
    """A bundle's nodes in order.

    Holds: `chain` is c_n of the first `count` nodes, each of which passed every check of this file.
    """

    def __init__(self, bundle: Bundle, opening: Opening) -> None:
        self.count = 0
        self.chain = EMPTY_CHAIN
        self.removed = 0
        self.read_bytes = 0
        self._bundle = bundle
        self._bind = (
            f'"bind":{{"apm":"{opening.apm_hash}","nonce":"{opening.nonce}","open":"{opening.open_hash}",'
            f'"run":"{opening.run_id}"}},'
        ).encode("ascii")
        self._nodes: BinaryIO | None = None
        self._payloads: BinaryIO | None = None

    def close(self) -> None:
        """Close the segments that are open."""
        for file in (self._nodes, self._payloads):
            if file is not None:
                file.close()

    def advance(
        self, size: int, head_holds: HeadCheck | None = None, *, keep: bool = False
    ) -> tuple[list[Header], list[dict[str, object] | None]]:
        """Check and return the next `size` nodes, and if wanted their payloads, None where one was taken out.

        Takes: `size`, at most up to the next multiple of 256; `head_holds`, for saying which node broke the
        chain; `keep`, whether the payloads are wanted.
        Raises: Flaw, with the node.
        """
        first = self.count
        if first % SEGMENT_NODES == 0:
            self._enter_segment(first // SEGMENT_NODES)
        lines = self._lines(size)
        headers = self._headers(first, lines, head_holds)
        bodies = self._bodies(first, headers, keep)
        if len(lines) < size:
            raise Flaw("truncation", "signed nodes are missing from here on", node=first + len(lines))
        self.count = first + size
        return headers, bodies

    def next_link(self) -> bytes:
        """Return what the line after the checked ones says of the chain, or empty if there is none."""
        if self._nodes is None:
            return b""
        if self.count % SEGMENT_NODES == 0:
            return b""  # it lies in the next segment: a rare loss of precision, not of the verdict
        parsed = _HEADER.fullmatch(self._nodes.readline(HEADER_LIMIT_BYTES))
        return parsed[2] if parsed else b""

    def _enter_segment(self, segment: int) -> None:
        self.close()
        self._nodes = self._payloads = None
        names = (f"nodes/{segment:08d}.jsonl", f"payloads/{segment:08d}.jsonl")
        for name in names:
            if name not in self._bundle.sizes:
                raise Flaw("truncation", f"`{name}` is missing", node=self.count)
        self._nodes, self._payloads = self._bundle.open(names[0]), self._bundle.open(names[1])

    def _lines(self, size: int) -> list[bytes]:
        assert self._nodes is not None
        readline = self._nodes.readline
        lines = [line for _ in range(size) if (line := readline(HEADER_LIMIT_BYTES))]
        if lines and len(lines[-1]) < HEADER_LIMIT_BYTES and not lines[-1].endswith(b"\n"):
            lines.pop()  # broken off: what is missing decides, not what is left of it
        return lines

    def _headers(self, first: int, lines: list[bytes], head_holds: HeadCheck | None) -> list[Header]:
        chain = self.chain
        link = hexlify(chain)
        headers: list[Header] = []
        fullmatch = _HEADER.fullmatch
        measured = 0
        for seq, line in enumerate(lines, first):
            parsed = fullmatch(line)
            header = cast("Header", parsed.groups()) if parsed and seq else self._odd_header(seq, line)
            if header[7] != b"%d" % seq:
                raise Flaw("sequence", "the sequence number is not the next one", node=seq)
            if header[1] != link:
                culprit = self._culprit(seq, first, lines, head_holds)
                raise Flaw("chain", "the node is not the one that the chain was folded over", node=culprit)
            measurement = sha256(b"interlock/evidence/v1/node\0" + line[:-1]).digest()
            chain = sha256(chain + seq.to_bytes(8, "big") + measurement).digest()
            link = hexlify(chain)
            headers.append(header)
            measured += len(line)
        self.chain = chain
        self.read_bytes += measured
        return headers

    def _odd_header(self, seq: int, line: bytes) -> Header:
        """Read node 0, which alone carries the binding, or say what is wrong with a line."""
        parsed = _FIRST.fullmatch(line) if seq == 0 else None
        if parsed is None:
            reason = diagnose(line.removesuffix(b"\n"))
            if seq == 0 and _HEADER.fullmatch(line):
                reason = "binding"
            raise Flaw(reason, "the header is not of the form that the format gives it", node=seq)
        if parsed[3] != self._bind:
            raise Flaw("binding", "node 0 belongs to another opening", node=0)
        fields = parsed.groups()
        return cast("Header", (*fields[:2], *fields[3:]))

    def _culprit(self, seq: int, first: int, lines: list[bytes], head_holds: HeadCheck | None) -> int:
        """Say whether the node with the wrong link was changed, or the one before it.

        The chain is folded on from the link that the line itself carries: if what follows agrees, the line is
        as it was.
        """
        parsed = _HEADER.fullmatch(lines[seq - first])
        if seq == 0 or parsed is None:
            return seq
        measurement = sha256(b"interlock/evidence/v1/node\0" + lines[seq - first][:-1]).digest()
        resumed = sha256(bytes.fromhex(parsed[2].decode()) + seq.to_bytes(8, "big") + measurement).digest()
        if seq - first + 1 < len(lines):
            following = _HEADER.fullmatch(lines[seq - first + 1])
            agrees = following is not None and following[2] == resumed.hex().encode()
        else:
            agrees = head_holds is not None and head_holds(resumed)
        return seq - 1 if agrees else seq

    def _bodies(self, first: int, headers: list[Header], keep: bool) -> list[dict[str, object] | None]:
        assert self._payloads is not None
        readline = self._payloads.readline
        loads, dumps = orjson.loads, orjson.dumps
        bodies: list[dict[str, object] | None] = []
        measured = 0
        for seq, (_, _, body, _, _, _, _, number, _) in enumerate(headers, first):
            line = readline(PAYLOAD_LIMIT_BYTES + 1)
            measured += len(line)
            salt = line[9:41]
            prefix = b'{"salt":"%b","seq":%b,"value":' % (salt, number)
            if not (line.startswith(prefix) and line.endswith(b"}\n")):
                if line != b'{"removed":true,"seq":%b}\n' % number:
                    raise self._bad_payload(line, seq)
                self.removed += 1
                bodies.append(None)
                continue
            value = line[len(prefix) : -2]
            try:
                raw = unhexlify(salt)
                decoded = loads(value)
                again = dumps(decoded, option=_SORTED)
            except (ValueError, TypeError):
                raise self._bad_payload(line, seq) from None
            if hexlify(sha256(raw + value).digest()) != body or hexlify(raw) != salt:
                raise Flaw("payload", "the payload is not the one that the header names", node=seq)
            if again != value or type(decoded) is not dict:
                raise self._bad_payload(line, seq)
            if holds_fraction(decoded.values()):
                raise Flaw("payload-value", "the payload holds a number that is not whole", node=seq)
            if keep:
                bodies.append(decoded)
        self.read_bytes += measured
        return bodies

    def _bad_payload(self, line: bytes, seq: int) -> Flaw:
        if not line:
            return Flaw("truncation", "the payload's line is missing", node=seq)
        reason = diagnose(line.removesuffix(b"\n"))
        if reason == "header":
            reason = "payload-line"
        return Flaw(reason, "the payload's line is not of the form that the format gives it", node=seq)
