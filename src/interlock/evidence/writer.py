"""The ledger of a run as it is written: append, sign, make durable, seal.

Holds: payloads reach the kernel before headers, headers before the heads that sign them, and the seal comes
last.
"""

import os
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from interlock.evidence import encoding
from interlock.evidence.encoding import SEGMENT_NODES, SIGN_EVERY, StructureTree
from interlock.evidence.keys import SigningKey
from interlock.model.errors import IntegrityError
from interlock.model.nodes import Node

if TYPE_CHECKING:
    from interlock.evidence.side_by_side import SideBySide

SECRET_SIZE_BYTES = 32
_FLUSH_BYTES = 1 << 20
_FOLDERS = ("nodes", "payloads", "sigs")


def _failed(step: str, error: OSError) -> IntegrityError:
    return IntegrityError(
        f"the ledger could not {step}: {os.strerror(error.errno or 0)}",
        hint="free space or fix the disk, then take the run up again; what was not signed is lost",
    )


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


class LedgerWriter:
    """One run's ledger, open for appending.

    Holds: after any failure of the disk nothing more is written, and no seal can be made.
    Source: KNOX §4.3; docs/formats/evidence-v1.md.
    """

    __slots__ = (
        "_apm_hash", "_beside", "_bind", "_broken", "_chain", "_durable", "_files", "_folder", "_headers", "_nonce",
        "_open_hash", "_opened_durable", "_payloads", "_pending_bytes", "_run_id", "_salts", "_sealed",
        "_segment", "_sign_segment", "_signatures", "_signed", "_structure", "cut_nodes", "key", "secret",
    )  # fmt: skip

    def __init__(
        self,
        *,
        folder: int,
        run_id: str,
        nonce: str,
        apm_hash: bytes,
        open_hash: bytes,
        key: SigningKey,
        secret: bytes,
    ) -> None:
        if len(secret) != SECRET_SIZE_BYTES:
            raise IntegrityError(
                f"a run secret has {SECRET_SIZE_BYTES} bytes",
                hint="give the secret that was kept with the run",
            )
        self.key = key
        self.secret = secret
        self._salts = encoding.Salts(secret)
        self.cut_nodes = 0
        self._folder = folder
        self._run_id = run_id
        self._nonce = nonce
        self._apm_hash = apm_hash
        self._open_hash = open_hash
        self._bind = encoding.binding(run_id, nonce, apm_hash, open_hash)
        self._chain = encoding.EMPTY_CHAIN
        self._structure = StructureTree()
        self._signed = 0
        self._durable = 0
        self._signatures = 0
        self._files: dict[str, int] = {}
        self._beside: SideBySide | None = None
        self._segment = 0
        self._sign_segment = 0
        self._headers: list[bytes] = []
        self._payloads: list[bytes] = []
        self._pending_bytes = 0
        self._opened_durable = False
        self._sealed = False
        self._broken = ""

    @classmethod
    def create(
        cls,
        directory: str,
        *,
        run_id: str,
        apm: Mapping[str, object],
        nonce: str = "",
        key: SigningKey,
        secret: bytes | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> "LedgerWriter":
        """Begin a ledger in a new or empty folder.

        Takes: `apm`, the manifest; `nonce`, what a verifier asked for; `secret`, 32 bytes that salt the
        payloads, made here if None; `facts`, what stands at the opening.
        Raises: IntegrityError, if the folder is in use, a value cannot be written, or the disk fails.
        """
        encoding.check_run_id(run_id)
        encoding.check_nonce(nonce)
        manifest = encoding.canonical(apm)
        apm_body = encoding.statement(
            "apm",
            "manifest",
            sha256(manifest).digest(),
            {"format": encoding.FORMAT, "manifest": dict(apm), "run": run_id},
        )
        apm_hash = sha256(encoding.D_APM + apm_body).digest()
        open_body = encoding.statement(
            "open",
            "apm",
            apm_hash,
            {
                "apm": apm_hash.hex(),
                "facts": dict(facts or {}),
                "format": encoding.FORMAT,
                "key": key.public_bytes.hex(),
                "level": encoding.LEVEL,
                "nonce": nonce,
                "run": run_id,
            },
        )
        apm_file = encoding.envelope(apm_body, key)
        open_file = encoding.envelope(open_body, key)
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _failed("be created", error) from error
        writer = cls(
            folder=folder,
            run_id=run_id,
            nonce=nonce,
            apm_hash=apm_hash,
            open_hash=sha256(encoding.D_OPEN + open_body).digest(),
            key=key,
            secret=os.urandom(SECRET_SIZE_BYTES) if secret is None else secret,
        )
        try:
            if os.listdir(folder):
                raise IntegrityError(
                    "the folder for the ledger is not empty",
                    hint="name a new folder, or reopen the ledger in it",
                )
            for name in _FOLDERS:
                os.mkdir(name, 0o700, dir_fd=folder)
            writer._write(encoding.APM_FILE, apm_file)
            writer._write(encoding.OPEN_FILE, open_file)
        except OSError as error:
            writer.close()
            raise _failed("be created", error) from error
        except IntegrityError:
            writer.close()
            raise
        return writer

    @classmethod
    def reopen(cls, directory: str, *, key: SigningKey, secret: bytes | None = None) -> "LedgerWriter":
        """Take up an unsealed ledger after a hold or a crash.

        Takes: `secret`, the run's; a new one is made if it was lost (later payloads are then salted anew).
        Returns: the writer; its `cut_nodes` says how many unsigned nodes were cut.
        Raises: IntegrityError, if the ledger is sealed, damaged or of another key.
        """
        from interlock.evidence.recovery import recover_prefix

        found = recover_prefix(directory, key)
        writer = cls(
            folder=found.folder,
            run_id=found.run_id,
            nonce=found.nonce,
            apm_hash=found.apm_hash,
            open_hash=found.open_hash,
            key=key,
            secret=os.urandom(SECRET_SIZE_BYTES) if secret is None else secret,
        )
        writer._chain = found.chain
        writer._structure = found.structure
        writer._signed = found.structure.count
        writer._signatures = found.signatures
        writer._segment = found.structure.count // SEGMENT_NODES
        writer._sign_segment = max(found.structure.count - 1, 0) // SEGMENT_NODES
        writer.cut_nodes = found.cut_nodes
        return writer

    @property
    def count(self) -> int:
        """Return the number of nodes, the seq of the next one."""
        return self._structure.count

    @property
    def head(self) -> bytes:
        """Return c_n, the chain's value after the newest node."""
        return self._chain

    @property
    def structure(self) -> bytes:
        """Return s_n, the structure tree's hash of the nodes so far."""
        return self._structure.root()

    def append(self, node: Node) -> None:
        """Append the next node; every 256 nodes the head is signed and handed to the kernel.

        Raises: IntegrityError, before anything is written, if the node is not the next one or holds what the
        format cannot carry; or if the disk fails.
        """
        if self._sealed or self._broken:
            raise self._unusable()
        seq = self._structure.count
        if node.seq != seq:
            raise IntegrityError(
                f"node {node.seq} is not the next one, {seq}", hint="append nodes in their order"
            )
        value = encoding.canonical(node.payload)
        place = seq.to_bytes(8, "big")
        salt = self._salts.of(place)
        payload = b'{"salt":"%b","seq":%d,"value":%b}\n' % (salt.hex().encode(), seq, value)
        if len(payload) > encoding.PAYLOAD_LINE_LIMIT_BYTES:
            raise IntegrityError(
                f"the payload of node {seq} is larger than 16 MiB", hint="record a digest instead"
            )
        structural = encoding.structural_text(node)
        line = encoding.header(
            node, self._chain, sha256(salt + value).digest(), structural, "" if seq else self._bind
        )
        # From here on nothing can be refused: memory first, then the disk.
        self._chain = sha256(self._chain + place + sha256(encoding.D_NODE + line).digest()).digest()
        self._structure.add(structural.encode("ascii"))
        self._payloads.append(payload)
        self._headers.append(line)
        self._pending_bytes += len(payload) + len(line)
        count = seq + 1
        if not count % SIGN_EVERY:
            self.sign()
        elif self._pending_bytes > _FLUSH_BYTES:
            self._flush()
        if not count % SEGMENT_NODES:
            self._next_segment()

    def sign(self) -> None:
        """Sign the head and hand all to the kernel: it survives this process, not yet a loss of power.

        Raises: IntegrityError, if the disk fails.
        """
        if self._sealed or self._broken:
            raise self._unusable()
        count = self._structure.count
        if count == self._signed:
            return
        self._flush()
        record = count.to_bytes(8, "big") + self.key.sign(encoding.head_message(count, self._chain))
        segment = (count - 1) // SEGMENT_NODES
        if segment != self._sign_segment:
            self._close_file(f"sigs/{self._sign_segment:08d}.bin", durable=True)
            self._sign_segment = segment
        self._guarded("write a signed head", f"sigs/{segment:08d}.bin", record)
        self._signed = count
        self._signatures += 1

    def harden(self) -> None:
        """Make everything so far survive a loss of power, without the note that a barrier leaves for witnesses.

        Raises: IntegrityError, if the disk fails: then nothing may leave.
        """
        self.sign()
        if not self._opened_durable:
            # A new file also needs its folder on the disk.
            self.barrier()
            return
        try:
            if self._beside is None:
                # Runs without the network have no use for it.
                from interlock.evidence.side_by_side import SideBySide

                self._beside = SideBySide()
            self._beside.sync(tuple(self._files.values()))
        except OSError as error:
            self._broken = "reach the disk"
            raise _failed("reach the disk", error) from error

    def barrier(self) -> None:
        """Make everything so far durable, signed, before something irreversible leaves.

        Raises: IntegrityError, if the disk fails: then nothing may leave.
        """
        self.sign()
        if self._durable == self._signed and self._opened_durable:
            return
        try:
            for descriptor in self._files.values():
                os.fsync(descriptor)
            if not self._opened_durable:
                for name in (*_FOLDERS, ".", ".."):
                    self._sync_path(name)
                for name in (encoding.APM_FILE, encoding.OPEN_FILE):
                    self._close_file(name, durable=False)
                self._opened_durable = True
            if self._signed:
                text = encoding.note(
                    self._run_id, self._signed, self._structure.root(), self._chain, self.key
                )
                self._replace(encoding.NOTE_FILE, text)
        except OSError as error:
            self._broken = "reach a barrier"
            raise _failed("reach a barrier", error) from error
        self._durable = self._signed

    def seal(self, outcome: str, *, facts: Mapping[str, object] | None = None) -> None:
        """Close the ledger with its seal; nothing can be appended after it.

        Takes: `facts`, what stands at the end.
        Raises: IntegrityError, if there is nothing to seal or the disk fails; then there is no seal.
        """
        if not self._structure.count:
            raise IntegrityError("an empty ledger cannot be sealed", hint="record what happened first")
        self.barrier()
        body = encoding.statement(
            "seal",
            "ledger",
            self._chain,
            {
                "apm": self._apm_hash.hex(),
                "chain": self._chain.hex(),
                "count": self._structure.count,
                "facts": dict(facts or {}),
                "format": encoding.FORMAT,
                "key": self.key.public_bytes.hex(),
                "level": encoding.LEVEL,
                "nonce": self._nonce,
                "open": self._open_hash.hex(),
                "outcome": outcome,
                "run": self._run_id,
                "signatures": self._signatures,
                "structure": self._structure.root().hex(),
            },
        )
        try:
            self._replace(encoding.SEAL_FILE, encoding.envelope(body, self.key))
            os.fsync(self._folder)
        except OSError as error:
            self._broken = "be sealed"
            raise _failed("be sealed", error) from error
        self._sealed = True

    def close(self) -> None:
        """Sign what is unsigned, and let go of the files; the ledger can be reopened if it is not sealed.

        Raises: IntegrityError, if the disk fails.
        """
        try:
            if self._folder >= 0 and not self._sealed and not self._broken:
                self.sign()
        finally:
            if self._beside is not None:
                self._beside.close()
            for descriptor in self._files.values():
                os.close(descriptor)
            self._files.clear()
            if self._folder >= 0:
                os.close(self._folder)
                self._folder = -1
            self._broken = self._broken or "be used after it was closed"

    def _unusable(self) -> IntegrityError:
        if self._sealed:
            return IntegrityError("the ledger is sealed", hint="begin a new run")
        return IntegrityError(
            f"the ledger could not {self._broken}", hint="fix the cause, then take the run up again"
        )

    def _flush(self) -> None:
        if not self._headers:
            return
        payloads = b"".join(self._payloads)
        headers = b"\n".join(self._headers) + b"\n"
        self._payloads.clear()
        self._headers.clear()
        self._pending_bytes = 0
        self._guarded("write a payload", f"payloads/{self._segment:08d}.jsonl", payloads)
        self._guarded("write a node", f"nodes/{self._segment:08d}.jsonl", headers)

    def _next_segment(self) -> None:
        # A full segment is made durable now, so that a barrier only has the open files to sync.
        for folder in ("payloads", "nodes"):
            self._close_file(f"{folder}/{self._segment:08d}.jsonl", durable=True)
        self._segment += 1

    def _guarded(self, step: str, name: str, content: bytes) -> None:
        try:
            self._write(name, content)
        except OSError as error:
            self._broken = step
            raise _failed(step, error) from error

    def _write(self, name: str, content: bytes) -> None:
        descriptor = self._files.get(name)
        if descriptor is None:
            descriptor = os.open(
                name,
                os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
                dir_fd=self._folder,
            )
            self._files[name] = descriptor
            self._opened_durable = False
        _write_all(descriptor, content)

    def _close_file(self, name: str, *, durable: bool) -> None:
        descriptor = self._files.pop(name, -1)
        if descriptor < 0:
            return
        try:
            if durable:
                os.fsync(descriptor)
        except OSError as error:
            self._broken = "finish a segment"
            raise _failed("finish a segment", error) from error
        finally:
            os.close(descriptor)

    def _replace(self, name: str, content: bytes) -> None:
        temporary = name + encoding.TEMPORARY_SUFFIX
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=self._folder)
        try:
            _write_all(descriptor, content)
            os.fsync(descriptor)
        except OSError:
            os.unlink(temporary, dir_fd=self._folder)
            raise
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _sync_path(self, name: str) -> None:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
