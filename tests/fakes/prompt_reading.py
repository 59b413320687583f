"""Reads a prompt of the seeing oracle by its delimiters alone, as a careful reader would; shares no code with the writer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    name: str
    quoted: tuple[str, ...]
    notes: tuple[str, ...]


def sections(text: str, key: str, *, known: bool = False) -> tuple[list[Section], list[str]]:
    """Return the sections and the lines outside of them.

    Takes: `known`, whether whoever wrote the quoted texts knew the key, so that it may stand in them.
    Raises: AssertionError, where the structure is broken.
    """
    found: list[Section] = []
    outside: list[str] = []
    inside: str | None = None
    quoted: list[str] = []
    notes: list[str] = []
    for line in text.split("\n"):
        words = line.split(" ")
        if line.startswith("[BEGIN "):
            assert inside is None, f"a section within {inside}"
            assert len(words) == 3
            assert words[2] == key + "]"
            inside, quoted, notes = words[1], [], []
        elif line.startswith("[END "):
            assert words == ["[END", inside, key + "]"]
            assert inside is not None
            found.append(Section(inside, tuple(quoted), tuple(notes)))
            inside = None
        elif inside is None:
            outside.append(line)
        elif line[:2] == "| ":
            quoted.append(line[2:])
        else:
            assert line[:2] == "# ", "a line within a section that is neither quoted nor a note"
            notes.append(line[2:])
    assert inside is None, "a section without its end"
    assert known or text.count(key) == 2 * len(found)
    assert text.count("[BEGIN ") == text.count("[END ") == len(found)
    return found, outside
