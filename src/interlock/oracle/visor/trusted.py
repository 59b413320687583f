"""What may be shown letter by letter: words that the principal, the operator or a trusted file wrote."""

import re
from collections.abc import Iterable
from unicodedata import category

from interlock.oracle.context import Context

MAX_SHOWN = 400
"""A longer value is not shown, whoever wrote it."""
_FORM_LENGTH = 6
_FEW, _ALIKE, _WORDS = 2, 0.85, 20_000
_JOINS = frozenset("-_./~+\\:@%$")
_CURRENCIES = frozenset("$\u20ac\u00a3")
_HEADS = ("./", "~/")
_PUNCTUATION = ".,;:!?()[]<>\"'`"
_NO_FORM = re.compile(r"[\W_]+")


class TrustedWords:
    """The texts whose words may be shown.

    Takes: `texts`, of those who may speak, each with how it is called; `names`, which the operator declares.
    """

    def __init__(self, texts: Iterable[tuple[str, str]], names: Iterable[str]) -> None:
        self._texts = tuple((who, text) for who, text in texts if text)
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
        """Return who says a value whole, and not as a part of something longer; `""` where nobody does."""
        if not 0 < len(value) <= MAX_SHOWN:
            return ""
        return next((who for who, text in self._texts if _holds(text, value)), "")

    def holds_part(self, part: str, *, before: str = "", after: str = "") -> bool:
        """Say whether one of the texts holds a part of a longer value. Takes: characters that may stand beside it."""
        known = 0 < len(part) <= MAX_SHOWN
        return known and any(_holds(text, part, before, after) for _, text in self._texts)

    def holds(self, value: str) -> bool:
        """Say whether one of the texts holds a value whole."""
        return bool(self.holder(value))

    def nearly_holds(self, value: str) -> bool:
        """Say whether one of the texts has a word that is this value but for a character or two."""
        if not _FORM_LENGTH <= len(value) <= MAX_SHOWN:
            return False
        if self._words is None:
            words = dict.fromkeys(
                word.strip(_PUNCTUATION) for _, text in self._texts for word in text.split()
            )
            # Task and instruction come first; of long files the end is not looked at.
            self._words = tuple(word for word in words if _FORM_LENGTH <= len(word) <= MAX_SHOWN)[:_WORDS]
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, b=value, autojunk=False)
        for word in self._words:
            if word == value or abs(len(word) - len(value)) > _FEW:
                continue
            matcher.set_seq1(word)
            # The cheap bounds first: most words have nothing in common with it.
            if matcher.real_quick_ratio() >= _ALIKE <= matcher.quick_ratio() and matcher.ratio() >= _ALIKE:
                return True
        return False

    def holds_form(self, value: str) -> bool:
        """Say whether one of the texts holds a value whole but for case, spaces and signs."""
        form = _NO_FORM.sub("", value)
        if not _FORM_LENGTH <= len(form) <= MAX_SHOWN:
            return False
        letters = r"[\W_]*".join(re.escape(char) for char in form)
        written = re.compile(rf"(?<![^\W_]){letters}(?![^\W_])", re.IGNORECASE)
        return any(written.search(text) for _, text in self._texts)


def _holds(text: str, value: str, before: str = "", after: str = "") -> bool:
    at = text.find(value)
    while at >= 0:
        if _begins(text, at, value, before) and _ends(text, at + len(value), value, after):
            return True
        at = text.find(value, at + 1)
    return False


def _begins(text: str, at: int, value: str, allowed: str) -> bool:
    """Say whether a value begins at a place: after a space or a mark, and not within a longer word or address."""
    if not at or text[at - 1] in allowed or (text[at - 1] in _CURRENCIES and value[0].isdigit()):
        return True
    if text.startswith(_HEADS, at - 2) and at >= 2:
        at -= 2
    elif text[at - 1] == "@":
        at -= 1
    return not at or not _goes_on(text[at - 1])


def _ends(text: str, end: int, value: str, allowed: str) -> bool:
    if end < len(text) and (text[end] in allowed or (text[end] == "%" and value[-1].isdigit())):
        return True
    while end < len(text) and text[end] in ".:":
        end += 1  # the end of a sentence, where no word follows at once
    return end == len(text) or not _goes_on(text[end])


def _goes_on(char: str) -> bool:
    """Say whether a character makes what stands beside it a part of something longer: also one that is not seen."""
    if char.isspace():
        return False
    return char.isalnum() or char in _JOINS or not char.isprintable() or category(char).startswith("M")
