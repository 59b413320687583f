"""The second reading of an address with a sentence behind its full stop, without a space."""

from interlock.policy.derivations.reading import Reading

_OPENERS = (
    "after also and before but from her his our please she thanks that the their then there these they this those "
    "what when which with your"
)


def before_sentence(read: Reading) -> Reading:
    """Return a reading that also takes an address for one where a sentence begins right behind it."""

    def either(value: str, text: str, start: int, end: int) -> bool:
        if read(value, text, start, end):
            return True
        if not _host_in_small_letters(text[start:end]) or not _sentence(text[end : end + 16]):
            return False
        return read(value, text[:end] + " " + text[end + 1 :], start, end)

    return either


def _host_in_small_letters(span: str) -> bool:
    host = span.removeprefix("https://").removeprefix("http://").rpartition("@")[2]
    labels = host.split(".")
    last = labels[-1]
    plain = all(label and all(char in _LABEL for char in label) for label in labels)
    return (
        span == span.lower()
        and len(labels) > 1
        and plain
        and len(last) > 1
        and not set(last) & set(_NOT_LAST)
    )


_NOT_LAST = "0123456789-"
_LABEL = "abcdefghijklmnopqrstuvwxyz" + _NOT_LAST


def _sentence(behind: str) -> bool:
    if behind[:1] != ".":
        return False
    word = ""
    for char in behind[1:]:
        if char.isspace():
            return word.istitle() and word.lower() in _OPENERS.split()
        word += char
    return False
