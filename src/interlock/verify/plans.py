"""The manifest that a run followed: the one that its opening names, made from its task, with signatures that hold.

Source: KNOX §4.4, step 1, and appendix B, attestation 1; docs/formats/evidence-v1.md §6.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from interlock.model.errors import InputError
from interlock.verify.report import Flaw
from interlock.verify.walk import Header


class Plans:
    """What the walk saw of a manifest. Holds: nothing is checked before the chain is."""

    def __init__(self) -> None:
        self.signers: tuple[str, ...] = ()
        self.kernel = ""
        self._task: object = None
        self._stood: tuple[int, Mapping[str, object] | None] | None = None

    def add(
        self, first: int, headers: Sequence[Header], bodies: Sequence[Mapping[str, object] | None]
    ) -> None:
        """Take the next nodes: of them the first prompt and the first manifest count."""
        for place, (header, body) in enumerate(zip(headers, bodies, strict=True)):
            if header[5] == b"prompt" and self._task is None and body is not None:
                self._task = body.get("task")
            elif header[5] == b"apm" and self._stood is None:
                self._stood = (first + place, body)

    def check(self, named: str, expected: str) -> str:
        """Check the manifest.

        Takes: `named`, the digest of the envelope that the opening names, `""` for none; `expected`, the key that must
        have signed it, `""` for any.
        Returns: why there is nothing to check, `""` where it holds.
        Raises: Flaw.
        """
        if self._stood is None:
            return "no-plan"
        seq, body = self._stood
        if body is None:
            return "payloads-removed"
        envelope = body.get("manifest", "")
        if not isinstance(envelope, str):
            raise Flaw("manifest-signature", "the plan is no text", node=seq)
        if (sha256(envelope.encode()).hexdigest() if envelope else "") != named:
            raise Flaw("manifest-mismatch", "the plan is not the one that the opening names", node=seq)
        if not envelope:
            if expected:
                raise Flaw(
                    "manifest-key", "there is no plan that the expected key could have signed", node=seq
                )
            return "no-plan"
        from interlock.verify.envelopes import check_envelope

        found = check_envelope(envelope)
        if found.problem or not found.signers:
            raise Flaw("manifest-signature", f"the plan: {found.problem or 'it is not signed'}", node=seq)
        if self._task is not None and found.task != self._task:
            raise Flaw("manifest-task", "the plan was made from another prompt than the run's task", node=seq)
        if expected and expected.removeprefix("ed25519:") not in {
            one.removeprefix("ed25519:") for one in found.signers
        }:
            raise Flaw("manifest-key", "the plan is signed by another key than the expected one", node=seq)
        self.kernel = self._kernel(seq, envelope, body)
        self.signers = found.signers
        return ""

    def _kernel(self, seq: int, envelope: str, body: Mapping[str, object]) -> str:
        """Return in words what the kernel enforced. Raises: Flaw, where that does not follow from the manifest."""
        from interlock.manifest.statement import read_envelope
        from interlock.verify.kernel_receipt import kernel_problem, kernel_words

        try:
            manifest = read_envelope(envelope)
        except InputError as error:
            raise Flaw("manifest-signature", f"the plan: {error.message}", node=seq) from error
        if wrong := kernel_problem(manifest, body):
            raise Flaw("kernel-receipt", wrong, node=seq)
        return kernel_words(manifest, body)
