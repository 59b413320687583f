"""What may be shown letter by letter: words that the principal, the operator or a trusted file wrote."""

import re
from collections.abc import Iterable

from interlock.oracle.context import Context

MAX_SHOWN = 400
"""A longer value is not shown, whoever wrote it."""
_FORM_LENGTH = 6
_FEW, _ALIKE = 2, 0.85
_PUNCTUATION = ".,;:!?()[]<>\"'`"
_NO_FORM = re.compile(r"[\W_]+")


class TrustedWords:
    """The texts whose words may be shown.

    Takes: `texts`, of those who may speak, each with how it is called; `names`, which the operator declares.
    """

    def __init__(self, texts: Iterable[tuple[str, str]], names: Iterable[str]) -> None:
        self._texts = tuple((who, text) for who, text in texts if text)
        self._forms = tuple(_form(text) for _, text in self._texts)
        self.names = frozenset(names)
        self._words: tuple[str, ...] | None = None

    @classmethod
    def of(cls, context: Context) -> "TrustedWords":
        """Return the trusted words of a run. Holds: of what was read only files that the policy trusts whole count."""
        files = [
            ("a file that the policy trusts", one.text)
            for one in context.evidence
            if one.vouches and "://" not in one.place and not one.place.startswith("tool:")
        ]
        said = (("the task", context.task), ("the instruction", context.system))
        return cls((*said, *(("the policy", line) for line in context.policy), *files), context.names)

    def holder(self, value: str) -> str:
        """Return who says a value whole, no letter or digit going on before or after it; `""` where nobody does."""
        if not 0 < len(value) <= MAX_SHOWN:
            return ""
        return next((who for who, text in self._texts if _holds(text, value)), "")

    def holds(self, value: str) -> bool:
        """Say whether one of the texts holds a value whole."""
        return bool(self.holder(value))

    def nearly_holds(self, value: str) -> bool:
        """Say whether one of the texts has a word that is this value but for a character or two."""
        if not _FORM_LENGTH <= len(value) <= MAX_SHOWN:
            return False
        if self._words is None:
            words = {word.strip(_PUNCTUATION) for _, text in self._texts for word in text.split()}
            self._words = tuple(word for word in words if _FORM_LENGTH <= len(word) <= MAX_SHOWN)
        return any(_is_near(word, value) for word in self._words)

    def holds_form(self, value: str) -> bool:
        """Say whether one of the texts holds a value but for case, spaces and signs."""
        form = _form(value)
        return _FORM_LENGTH <= len(form) <= MAX_SHOWN and any(form in text for text in self._forms)


def _holds(text: str, value: str) -> bool:
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        before = value[0].isalnum() and at > 0 and text[at - 1].isalnum()
        after = value[-1].isalnum() and end < len(text) and text[end].isalnum()
        if not before and not after:
            return True
        at = text.find(value, at + 1)
    return False


def _is_near(word: str, value: str) -> bool:
    if word == value or abs(len(word) - len(value)) > _FEW:
        return False
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, word, value, autojunk=False)
    return (
        matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE
    )


def _form(text: str) -> str:
    return _NO_FORM.sub("", text).casefold()
