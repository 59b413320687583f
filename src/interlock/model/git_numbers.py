"""A number as Git's binary formats write it, for the two places that read such formats: a pack, an index."""


def offset_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in the pack format's offset encoding.

    Returns: the number, and where it ends.
    Raises: IndexError, where the data ends within it.
    Source: Git's documentation, gitformat-pack (offset encoding); version 4 of gitformat-index uses it too.
    """
    byte = data[at]
    at += 1
    number = byte & 0x7F
    while byte & 0x80:
        byte = data[at]
        at += 1
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at
