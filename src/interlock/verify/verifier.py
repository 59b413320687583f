"""The verification of a bundle, offline: the steps of KNOX §4.4 in order.

Source: docs/formats/evidence-v1.md §6.
"""

from collections.abc import Callable, Iterator, Sequence

from interlock.model.errors import InterlockError
from interlock.verify.cosignatures import Witnesses, WitnessKey
from interlock.verify.inferences import Inferences
from interlock.verify.plans import Plans
from interlock.verify.reader import iterate
from interlock.verify.report import (
    STEPS,
    BundleVerdict,
    CheckResult,
    CheckStatus,
    Flaw,
    Report,
    WitnessedHead,
)
from interlock.verify.source import Bundle, unreadable
from interlock.verify.statements import (
    Opening,
    Seal,
    note_holds,
    read_note,
    read_opening,
    read_seal,
    verify_signature,
)
from interlock.verify.topology import Topology
from interlock.verify.walk import BATCH_NODES, SEGMENT_NODES, Walk

_HEAD_SIZE_BYTES = 72


class _Run:
    """One verification under way; what it learned stands in its fields, whatever stops it."""

    def __init__(
        self,
        expected_nonce: str,
        expected_key: str,
        witness: Sequence[WitnessedHead],
        witness_keys: Sequence[WitnessKey],
        plan_key: str,
    ) -> None:
        self.expected_nonce = expected_nonce
        self.expected_key = expected_key
        self.plan_key = plan_key
        self.witness = witness
        self.witnesses = Witnesses(witness_keys)
        self.opening: Opening | None = None
        self.seal: Seal | None = None
        self.passed: set[int] = set()
        self.nodes = 0
        self.removed = 0
        self.tail_bytes = 0
        self.inferences = Inferences()
        self.plans = Plans()
        self.not_here = {3: "no-inference-evidence", 6: "not-asked"}

    def evidence(self, bundle: Bundle) -> tuple[Opening, WitnessedHead | None]:
        """Step 1: envelopes, seal against opening, what the verifier expected, the head note."""
        self.opening = opening = read_opening(bundle)
        if self.expected_key and self.expected_key != opening.key.hex():
            raise Flaw("key", "the bundle is signed by another key than the expected one")
        if self.expected_nonce and self.expected_nonce != opening.nonce:
            raise Flaw("nonce", "the bundle answers another nonce than the expected one")
        if "seal.dsse.json" in bundle.sizes:
            self.seal = read_seal(bundle, opening)
        note = None
        if "heads.note" in bundle.sizes:
            note = read_note(bundle.read("heads.note"))
            if not note_holds(note, opening):
                raise Flaw("head-note", "the head note is not signed by the run's key")
        if self.seal is not None and (note is None or note.count != self.seal.count):
            raise Flaw("head-note", "the head note is not the sealed head's")
        return opening, note

    def chain(
        self, bundle: Bundle, walk: Walk, opening: Opening, note: WitnessedHead | None, topology: Topology
    ) -> None:
        """Step 2: walk the chain from signed head to signed head; the topology is gathered on the way."""
        known = sorted(self.witness, key=lambda head: head.count)
        heads = 0
        for count, signature in _signed_heads(bundle):
            if count <= walk.count:
                raise Flaw("signature-order", "the signed heads do not rise", node=walk.count)
            if count > (walk.count // BATCH_NODES + 1) * BATCH_NODES:
                raise Flaw(
                    "signature-missing", "a signed head that must be there is missing", node=walk.count
                )
            head_holds = _head_check(opening.key, count, signature)
            first = walk.count
            headers, bodies = walk.advance(count - first, head_holds, keep=True)
            if not head_holds(walk.chain):
                raise self._unsigned(walk, note)
            self.inferences.add(first, headers, bodies)
            self.plans.add(first, headers, bodies)
            topology.add(headers)
            self.nodes, self.removed = walk.count, walk.removed
            heads += 1
            if note is not None and note.count == count:
                self._compare_note(note, walk, topology)
                note = None
            while known and known[0].count <= count:
                self._compare_witness(known.pop(0), walk, opening)
        if note is not None:
            raise Flaw(
                "rollback" if note.count > walk.count else "head-note",
                "the head note names a head that the ledger does not have",
            )
        if known:
            raise Flaw("rollback", "a witnessed head lies beyond the ledger's end")
        owed = self.witnesses.owed()
        if owed is not None:
            raise owed
        whole = sum(size for name, size in bundle.sizes.items() if name.startswith(("nodes/", "payloads/")))
        torn = sum(bundle.sizes[name] for name in bundle.segments("sigs/")) - heads * _HEAD_SIZE_BYTES
        self.tail_bytes = whole - walk.read_bytes + torn
        if self.seal is not None:
            self._compare_seal(self.seal, walk, heads)
        # A run that is still being written grows while it is read.
        self.tail_bytes = max(self.tail_bytes, 0)

    def _unsigned(self, walk: Walk, note: WitnessedHead | None) -> Flaw:
        """Say whether a head's signature was changed, or the last node that it signs."""
        last = walk.count - 1
        link = walk.chain.hex()
        told = walk.next_link().decode()
        if self.seal is not None and self.seal.count == walk.count:
            told = self.seal.chain
        elif note is not None and note.count == walk.count:
            told = note.chain.hex()
        if told and told != link:
            return Flaw("chain", "the node is not the one that the chain was folded over", node=last)
        return Flaw("signature", "the signed head after this node does not hold", node=last)

    def _compare_note(self, note: WitnessedHead, walk: Walk, topology: Topology) -> None:
        if note.chain != walk.chain or note.structure != topology.root():
            # Both are signed by the run's key: two heads of one length.
            raise Flaw("equivocation", "the head note and the ledger tell two stories", node=walk.count - 1)

    def _compare_witness(self, head: WitnessedHead, walk: Walk, opening: Opening) -> None:
        if not note_holds(head, opening):
            raise Flaw("witness", "a witnessed head is not of this run, or not signed by its key")
        if head.count < walk.count:
            raise Flaw("equivocation", "a witnessed head was signed, and the ledger does not have it")
        if head.chain != walk.chain:
            raise Flaw(
                "equivocation", "a witnessed head and the ledger tell two stories", node=walk.count - 1
            )
        self.witnesses.saw(head)

    def _compare_seal(self, seal: Seal, walk: Walk, heads: int) -> None:
        if walk.count < seal.count:
            raise Flaw("truncation", "sealed nodes are missing from here on", node=walk.count)
        if walk.count > seal.count:
            raise Flaw("seal-count", "there are more nodes than were sealed", node=seal.count)
        if walk.chain.hex() != seal.chain:
            raise Flaw("seal-chain", "the sealed head is another one")
        if heads != seal.signatures:
            raise Flaw("signature-missing", "signed heads are missing")
        if self.tail_bytes:
            raise Flaw("tail", "there are bytes after the sealed end", node=walk.count)

    def shape(self, topology: Topology) -> None:
        """Steps 4 and 5: the first fault of meaning, then what a seal may not leave open, then s_N."""
        if topology.fault is not None:
            raise topology.fault
        if self.seal is None:
            return
        if topology.root().hex() != self.seal.structure:
            raise Flaw("structure-root", "the sealed structure root is another one")
        owed = topology.owed()
        if owed is not None:
            raise owed

    def manifest(self, opening: Opening) -> None:
        """Step 7: the plan in the ledger is the one that was signed before anything ran."""
        why = self.plans.check(opening.plan, self.plan_key)
        if why:
            self.not_here[7] = why
        else:
            self.passed.add(7)

    def report(self, verdict: BundleVerdict, reason: str, detail: str, node: int | None, step: int) -> Report:
        """Return the report; `step` is the one that failed, 0 if none did."""
        checks = []
        for number, name in STEPS:
            if number == step:
                status, why = CheckStatus.FAIL, reason
            elif number in self.passed:
                status, why = CheckStatus.PASS, ""
            else:
                status, why = (
                    CheckStatus.NOT_CHECKED,
                    self.not_here.get(number, "not-reached" if step else "no-seal"),
                )
            checks.append(CheckResult(step=number, name=name, status=status, reason=why))
        return Report(
            verdict=verdict,
            node=node,
            reason=reason,
            detail=detail,
            checks=tuple(checks),
            nodes=self.nodes,
            run_id=self.opening.run_id if self.opening else "",
            public_key=self.opening.key.hex() if self.opening else "",
            level=self.opening.level if self.opening else "",
            outcome=self.seal.outcome if self.seal else "",
            removed=self.removed,
            tail_bytes=self.tail_bytes,
            signers=self.plans.signers,
            kernel=self.plans.kernel,
            witnessed=self.witnesses.found(),
        )


def _head_check(key: bytes, count: int, signature: bytes) -> Callable[[bytes], bool]:
    prefix = b"interlock/evidence/v1/head\0" + count.to_bytes(8, "big")
    return lambda chain: verify_signature(key, prefix + chain, signature)


def _signed_heads(bundle: Bundle) -> Iterator[tuple[int, bytes]]:
    for segment, name in enumerate(bundle.segments("sigs/")):
        with bundle.open(name) as file:
            while len(record := file.read(_HEAD_SIZE_BYTES)) == _HEAD_SIZE_BYTES:
                count = int.from_bytes(record[:8], "big")
                if not count:
                    # Appended, and lost with the power: the length was kept, the bytes are zeros. What follows is
                    # no evidence, as if it were cut off.
                    return
                if (count - 1) // SEGMENT_NODES != segment:
                    raise Flaw("signature-order", "a signed head lies in another segment's file")
                yield count, record[8:]


def verify_path(
    path: str,
    *,
    expected_nonce: str = "",
    expected_key: str = "",
    witness: Sequence[WitnessedHead] = (),
    replay: bool = False,
    plan_key: str = "",
    witness_keys: Sequence[WitnessKey] = (),
) -> Report:
    """Verify a ledger folder or a packed ledger, offline.

    Takes: `expected_nonce` and `expected_key` (hex), compared if given; `witness`, heads kept elsewhere
    (`read_witness`); `replay`, whether to recompute every verdict (step 6), once all else holds; `plan_key`, the key
    that must have signed the plan that the run followed; `witness_keys`, of witnesses each of which must have cosigned
    a head in `witness`.
    Returns: the report; nothing that a bundle holds makes this raise.
    Raises: InputError, if there is nothing to read at the path.
    Source: KNOX §4.4.
    """
    run = _Run(expected_nonce, expected_key, witness, witness_keys, plan_key)
    try:
        return _verify(run, path, replay)
    except Flaw as flaw:
        return run.report(BundleVerdict.TAMPERED, flaw.reason, flaw.detail, flaw.node, flaw.step)
    except OSError as error:
        raise unreadable(error) from error


def _replay(path: str, nodes: int, seal: Seal | None) -> None:
    """Check every derivation again, and fold the recorded events; what does not follow from them is a flaw.

    Takes: `seal`, whose outcome must be the fold's.
    """
    from interlock.verify.derivations import DerivationRefuted, rechecked
    from interlock.verify.replay import ReplayMismatch, ended_as, replay

    last = None
    try:
        for item in replay(rechecked(iterate(path, nodes))):
            last = item
    except DerivationRefuted as refuted:
        raise Flaw(f"derivation-{refuted.fault.value}", refuted.message, node=refuted.seq) from refuted
    except ReplayMismatch as mismatch:
        raise Flaw("replay-mismatch", mismatch.message, node=mismatch.seq) from mismatch
    except Flaw:
        raise
    except InterlockError as error:
        raise Flaw("replay-mismatch", error.message) from error
    if seal is None:
        return
    outcome = None if last is None else ended_as(last)
    if outcome is None:
        raise Flaw("replay-mismatch", "the ledger is sealed, and what happened does not lead to its end")
    if seal.outcome != outcome:
        raise Flaw("replay-mismatch", f"the seal's outcome is not what happened: that comes to `{outcome}`")


def _verify(run: _Run, path: str, replay: bool) -> Report:
    bundle = Bundle(path)
    walk = None
    try:
        # Step 1, evidence.
        opening, note = run.evidence(bundle)
        if run.seal is not None:
            run.passed.add(1)
        # Step 2, chain.
        walk = Walk(bundle, opening)
        topology = Topology()
        run.chain(bundle, walk, opening, note, topology)
        run.passed.add(2)
        # Step 3, inference binding.
        if run.inferences.fault is not None:
            raise run.inferences.fault
        if run.inferences.count:
            run.passed.add(3)
        # Step 4, policy consistency, and step 5, topology.
        run.shape(topology)
        run.passed.update((4, 5))
        # Ours, 7: the manifest that the run followed.
        run.manifest(opening)
    finally:
        if walk is not None:
            walk.close()
        bundle.close()
    # Step 6, replay of every verdict.
    if replay and run.removed:
        run.not_here[6] = "payloads-removed"
    elif replay:
        _replay(path, run.nodes, run.seal)
        run.passed.add(6)
    if run.seal is None:
        detail = f"no seal; {run.nodes} nodes are signed; truncation cannot be excluded"
        if run.witness:
            detail = f"no seal; {run.nodes} nodes are signed, as far as the witnessed heads at least"
        if run.tail_bytes:
            detail += f"; {run.tail_bytes} bytes after the last signed head are no evidence"
        return run.report(BundleVerdict.UNFINISHED, "no-seal", detail, None, 0)
    detail = f"{run.nodes} nodes, sealed"
    if run.removed:
        detail += f"; {run.removed} payloads were taken out"
    return run.report(BundleVerdict.COMPLETE, "ok", detail, None, 0)
