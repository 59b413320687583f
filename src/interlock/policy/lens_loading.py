"""What a policy file says of the model's traffic (`lens`)."""

from enum import Enum
from typing import TypeVar

from interlock.policy.document import Document
from interlock.policy.lens import Audit, Lens, Mismatch
from interlock.policy.reading import near, section

_EXAMPLE = "lens: {audit: declared}"
_MISMATCHES = ("unannounced", "differs", "covered")
E = TypeVar("E", bound=Enum)


def read_lens(document: Document, base: Lens) -> Lens:
    """Return what is read from the model's traffic, the base's where the file says nothing. Raises: PolicyError."""
    given = section(document, ("lens",), ("audit", *_MISMATCHES), _EXAMPLE)
    audit = _word(document, "audit", given["audit"], Audit) if "audit" in given else base.audit
    unannounced, differs, covered = (
        _word(document, key, given[key], Mismatch) if key in given else getattr(base, key)
        for key in _MISMATCHES
    )
    return Lens(audit=audit, unannounced=unannounced, differs=differs, covered=covered)


def _word(document: Document, key: str, given: object, kind: type[E]) -> E:
    words = [one.value for one in kind]
    if given not in words:
        hint = near(given, words) if isinstance(given, str) else f"use one of: {', '.join(words)}"
        raise document.mistake(("lens", key), f"`lens.{key}` must be {' or '.join(words)}", hint=hint)
    return kind(given)
