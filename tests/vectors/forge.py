"""A third, plain writer of format 1 for vectors: it follows the format document, and forges where told to.

It shares nothing with `interlock.evidence`: an honest forgery must equal what the writer writes, to the byte.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nacl.signing import SigningKey

FORMAT = "interlock-evidence/1"
TYPE = "application/vnd.in-toto+json"
Files = dict[str, bytes]


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A node to be written; `raw` replaces the canonical payload, `patch` the honest header line."""

    kind: str
    parent: int | None
    actor: str = "monitor"
    payload: Mapping[str, object] = field(default_factory=dict)
    verdict: str = ""
    branches: tuple[int, ...] = ()
    raw: bytes | None = None
    patch: Callable[[bytes], bytes] | None = None


def merkle(leaves: Sequence[bytes]) -> bytes:
    """The RFC 6962 definition, word for word."""
    if not leaves:
        return sha(b"")
    if len(leaves) == 1:
        return sha(b"\0" + leaves[0])
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return sha(b"\1" + merkle(leaves[:half]) + merkle(leaves[half:]))


@dataclass(slots=True, kw_only=True)
class Forge:
    items: Sequence[Item]
    run: str = "run-1"
    nonce: str = ""
    seed: bytes = b"\x01" * 32
    secret: bytes = b"\x02" * 32
    apm: Mapping[str, object] = field(default_factory=lambda: {"plan": ["read", "write"]})
    heads: Sequence[int] = ()
    note_at: int | None = None
    sealed: bool = True
    outcome: str = "committed"
    format: str = FORMAT
    seal_changes: Mapping[str, object] = field(default_factory=dict)
    chains: list[bytes] = field(default_factory=list)
    leaves: list[bytes] = field(default_factory=list)

    @property
    def key(self) -> SigningKey:
        return SigningKey(self.seed)

    def envelope(
        self, kind: str, subject: str, digest: bytes, predicate: Mapping[str, object]
    ) -> tuple[bytes, bytes]:
        body = canonical(
            {
                "_type": "https://in-toto.io/Statement/v1",
                "predicate": predicate,
                "predicateType": f"urn:interlock:evidence:{kind}:1",
                "subject": [{"digest": {"sha256": digest.hex()}, "name": subject}],
            }
        )
        signed = b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE.encode(), len(body), body)
        file = canonical(
            {
                "payload": base64.b64encode(body).decode(),
                "payloadType": TYPE,
                "signatures": [
                    {
                        "keyid": sha(bytes(self.key.verify_key)).hex(),
                        "sig": base64.b64encode(self.key.sign(signed).signature).decode(),
                    }
                ],
            }
        )
        return body, file + b"\n"

    def note(self, count: int) -> bytes:
        name = f"interlock-ledger/{self.run}"
        root = base64.b64encode(merkle(self.leaves[:count])).decode()
        link = base64.b64encode(self.chains[count]).decode()
        text = f"{name}\n{count}\n{root}\nchain {link}\n".encode()
        key_id = sha(name.encode() + b"\n\x01" + bytes(self.key.verify_key))[:4]
        line = base64.b64encode(key_id + self.key.sign(text).signature).decode()
        return text + f"\n\u2014 {name} {line}\n".encode()

    def head(self, count: int) -> bytes:
        message = b"interlock/evidence/v1/head\0" + count.to_bytes(8, "big") + self.chains[count]
        return count.to_bytes(8, "big") + self.key.sign(message).signature

    def files(self) -> Files:
        public = bytes(self.key.verify_key).hex()
        apm_body, apm_file = self.envelope(
            "apm",
            "manifest",
            sha(canonical(self.apm)),
            {"format": self.format, "manifest": self.apm, "run": self.run},
        )
        apm_hash = sha(b"interlock/evidence/v1/apm\0" + apm_body)
        shared = {
            "apm": apm_hash.hex(),
            "facts": {},
            "format": self.format,
            "key": public,
            "level": "software",
            "nonce": self.nonce,
            "run": self.run,
        }
        open_body, open_file = self.envelope("open", "apm", apm_hash, shared)
        open_hash = sha(b"interlock/evidence/v1/open\0" + open_body)
        headers, payloads = b"", b""
        self.chains, self.leaves = [sha(b"")], []
        for seq, item in enumerate(self.items):
            place = seq.to_bytes(8, "big")
            salt = hmac.new(self.secret, place, "sha256").digest()[:16]
            value = canonical(item.payload) if item.raw is None else item.raw
            payloads += b'{"salt":"%b","seq":%d,"value":%b}\n' % (salt.hex().encode(), seq, value)
            fields: dict[str, object] = {
                "actor": item.actor,
                "after": self.chains[-1].hex(),
                "body": sha(salt + value).hex(),
                "branches": list(item.branches),
                "kind": item.kind,
                "parent": item.parent,
                "seq": seq,
                "verdict": item.verdict,
            }
            if seq == 0:
                fields["bind"] = {
                    "apm": apm_hash.hex(),
                    "nonce": self.nonce,
                    "open": open_hash.hex(),
                    "run": self.run,
                }
            structural = canonical({name: fields[name] for name in ("branches", "kind", "parent", "seq")})[
                1:-1
            ]
            line = canonical(fields)
            if item.patch is not None:
                line = item.patch(line)
            headers += line + b"\n"
            self.leaves.append(b"interlock/evidence/v1/structure\0" + structural)
            self.chains.append(sha(self.chains[-1] + place + sha(b"interlock/evidence/v1/node\0" + line)))
        total = len(self.items)
        heads = sorted({*self.heads, *range(256, total + 1, 256), total})
        files = {
            "apm.dsse.json": apm_file,
            "open.dsse.json": open_file,
            "nodes/00000000.jsonl": headers,
            "payloads/00000000.jsonl": payloads,
            "sigs/00000000.bin": b"".join(map(self.head, heads)),
            "heads.note": self.note(total if self.note_at is None else self.note_at),
        }
        if self.sealed:
            predicate = {
                **shared,
                "chain": self.chains[-1].hex(),
                "count": total,
                "open": open_hash.hex(),
                "outcome": self.outcome,
                "signatures": len(heads),
                "structure": merkle(self.leaves).hex(),
                **self.seal_changes,
            }
            chain = bytes.fromhex(str(predicate["chain"]))
            files["seal.dsse.json"] = self.envelope("seal", "ledger", chain, predicate)[1]
        return files


def tar_entry(name: str, content: bytes, *, type_flag: bytes = b"0", link: bytes = b"") -> bytes:
    block = bytearray(512)
    block[0 : len(name)] = name.encode()
    block[100:108] = b"0000644\0"
    block[108:124] = b"0000000\0" * 2
    block[124:136] = b"%011o\0" % len(content)
    block[136:148] = b"0" * 11 + b"\0"
    block[148:156] = b" " * 8
    block[156:157] = type_flag
    block[157 : 157 + len(link)] = link
    block[257:265] = b"ustar\x0000"
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + content + bytes(-len(content) % 512)


def tar(files: Files) -> bytes:
    return b"".join(tar_entry(name, files[name]) for name in sorted(files)) + bytes(1024)
