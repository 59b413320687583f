"""How a text is compared: as it looks, in lower case, or its letters and digits alone."""

import re
import unicodedata

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef]"
)
"""Characters that format, and those that are drawn as nothing."""
_FOREIGN = "аеорсухіјѕԁһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧοАВЕКМНОРСТХІЈЅ"
_LOOKS = dict(zip(_FOREIGN, "aeopcyxijsdhlABEZHIKMNOPTYXoABEKMHOPCTXIJS", strict=True))
"""Letters of other alphabets that look like Latin ones."""
_LOOKING = re.compile(f"[{_FOREIGN}]")
_WORD = re.compile(r"[^\W_]+")
_NO_LETTERS = bytes(byte for byte in range(256) if not bytes((byte,)).isalnum())


def plain(text: str) -> str:
    """Return a text as it looks: NFKC, without invisible characters, look-alikes as Latin letters."""
    if text.isascii():
        return text
    visible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return _LOOKING.sub(lambda found: _LOOKS[found[0]], visible)


def fold(text: str) -> str:
    """Return a text as it is compared: as it looks, in lower case."""
    return plain(text).lower()


def squeeze(folded: str) -> str:
    """Return a folded text's letters and digits alone."""
    if folded.isascii():
        return folded.encode("ascii").translate(None, _NO_LETTERS).decode("ascii")
    return "".join(_WORD.findall(folded))


def words_of(folded: str) -> list[str]:
    """Return the words of a folded text, in order."""
    return _WORD.findall(folded)
