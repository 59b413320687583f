"""The values of tool calls, in plain lines: where a text names one, and what a task asks for. See `spec/tools.py`."""

from itertools import pairwise
from typing import Any

World = dict[str, Any]
Path = tuple[str | int, ...]
PARTS = [
    "who",
    "that",
    "which",
    "whose",
    "with",
    "without",
    "except",
    "but",
    "apart",
    "if",
    "where",
    "when",
    "not",
    "older",
    "newer",
    "other",
]


# --- values ---


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, str]]:
    """Every leaf of a JSON value; an empty text and null are none."""
    if isinstance(value, dict):
        return [leaf for key, each in value.items() for leaf in leaves(each, (*path, key))]
    if isinstance(value, list):
        return [leaf for at, each in enumerate(value) for leaf in leaves(each, (*path, at))]
    return [] if value is None or value == "" else [(path, value if isinstance(value, str) else str(value))]


def answer_leaves(world: World, answer: dict[str, Any]) -> list[tuple[Path, str]]:
    """The leaves of an answer, and the names of the entries of a mapping that is declared as `field{}`."""
    declared = world["tools"][answer["tool"]].get("output", {}).get("fields", {})
    found = leaves(answer["value"])
    for at, entry in enumerate(answer["value"] if isinstance(answer["value"], list) else []):
        for key, inner in entry.items() if isinstance(entry, dict) else ():
            named = key + "{}"
            if named in declared and isinstance(inner, dict):
                found += [((at, named, place), name) for place, name in enumerate(inner)]
    return found


def field(path: Path) -> str:
    """The name of a field, without the places in lists that lead to it."""
    return ".".join(part for part in path if isinstance(part, str))


def record(path: Path) -> Path:
    """The nearest object that a leaf lies in."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path[:-1]


def form(kind: str, text: str) -> str:
    """A value as it is compared with others of its type."""
    if kind == "url":
        return text.removeprefix("https://").rstrip("/")
    if kind == "amount":
        return str(float(text)) if text.replace(".", "", 1).isdigit() else ""
    return text if kind.startswith("id:") else text.lower()


def words(text: str) -> list[str]:
    """The words of a text, without what ends a sentence or a clause."""
    return [word.rstrip(".,:").strip('"') for word in text.split()]


def names(kind: str, value: str, text: str) -> bool:
    """A text names a value: its words stand in it one after another; an id only where it is called one."""
    wanted, said = value.split(), words(text)
    if kind.startswith("id:"):
        return any(before == "id" and here == value for before, here in pairwise(said))
    if kind == "amount":
        return any(form(kind, value) and form(kind, word) == form(kind, value) for word in said)
    if kind == "filename" and called(value, [word.lower() for word in said]):
        return True
    if kind in ("url", "iban", "email"):
        # `mail ann@a.test.Please wait`: a sentence begins behind an address, without a space.
        parted = [word.removesuffix(".Please") for word in said[:-1]] if kind != "iban" else []
        return any(form(kind, word) == form(kind, value) for word in said + parted)
    runs = [said[at : at + len(wanted)] for at in range(len(said))]
    return any([word.lower() for word in run] == [word.lower() for word in wanted] for run in runs)


def called(value: str, said: list[str]) -> bool:
    """A file is called by its name without the extension, as in `the team plan file`."""
    name = stem(value)
    return any(said[at : at + len(name) + 2] == ["the", *name, "file"] for at in range(len(said)))


def stem(name: str) -> list[str]:
    """The words of a file's name without its extension."""
    return (name.rpartition(".")[0] or name).lower().replace("-", " ").split()


def kinds_of(declared: str) -> list[str]:
    """`iban|name` is either."""
    return declared.split("|")


def holds(kind: str, text: str) -> list[str]:
    """The values of a type with a shape that a text holds, as they are compared."""
    found = []
    for word in words(text):
        shaped = {
            "email": "@" in word,
            "url": word.startswith(("https://", "www.")),
            "iban": len(word) > 14 and word[:2].isupper() and word[2:4].isdigit(),
        }
        if shaped.get(kind):
            found.append(form(kind, word))
    return found


# --- what a task asks for ---


def asks(task: str, phrases: list[str]) -> bool:
    """One of these verbs begins a sentence, or stands behind `and`, `then`, `to` or `please`, or a list's number."""
    return bool(asked_parts(task, phrases))


def asked_parts(task: str, phrases: list[str]) -> list[str]:
    """What stands from each such verb to the end of its sentence."""
    found = []
    for sentence in task.split(". "):
        said = [word.lower() for word in words(sentence)]
        for at, word in enumerate(said):
            before = said[at - 1] if at else "and"
            if word in phrases and (before in ("and", "then", "to", "please") or before[-1].isdigit()):
                found.append(" ".join(sentence.split()[at:]))
    return found


def asks_all(task: str, nouns: list[str]) -> bool:
    """`all`, `each` or `every` before the noun, and nothing behind it that makes it a part."""
    said = [word.lower() for word in words(task)]
    for at, word in enumerate(said):
        if word not in ("all", "each", "every") or (at and said[at - 1] in ("not", "never")):
            continue
        behind = list(said[at + 1 :])
        while behind and behind[0] in ("of", "the", "my"):
            behind.pop(0)
        if behind and behind[0].removesuffix("s") in nouns and not (len(behind) > 1 and behind[1] in PARTS):
            return True
    return False


def end_asked(task: str, rank: dict[str, list[str]]) -> str:
    """`most`, `least`, or `""` where the task asks for neither or for both."""
    said = [word.lower() for word in words(task)]
    found = [end for end in ("most", "least") if any(word in said for word in rank.get(end, []))]
    return found[0] if len(found) == 1 else ""
