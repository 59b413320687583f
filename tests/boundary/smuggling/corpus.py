"""Reads the corpus files (see README.md for their form)."""

import os
from dataclasses import dataclass, field

FOLDER = os.path.dirname(__file__)


@dataclass(frozen=True)
class Expected:
    """What must hold. Takes: `word`; for a request that passes, its one meaning; for a refusal, `status` or 0 for any."""

    word: str
    status: int = 0
    method: str = ""
    target: str = ""
    host: str = ""
    body: bytes = b""


@dataclass
class Case:
    """One message and what must hold of it."""

    name: str
    idea: str = ""
    place: tuple[str, int] = ("target.test", 80)
    method: str = "GET"
    expected: list[Expected] = field(default_factory=list)
    without: tuple[str, ...] = ()
    repeat: bytes = b""
    reset: bool = False
    stays: bool = False
    raw: bytes = b""


def unescaped(text: str) -> bytes:
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def load(name: str) -> list[Case]:
    """Read a corpus file."""
    cases: list[Case] = []
    with open(f"{FOLDER}/{name}", encoding="ascii") as file:
        for line in file.read().split("\n"):
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                cases.append(Case(name=line[1:-1]))
            elif line.startswith("| "):
                part = unescaped(line[2:])
                case = cases[-1]
                case.raw += part.replace(b"%", case.repeat) if case.repeat else part
            else:
                key, _, value = line.partition(": ")
                _set(cases[-1], key, value)
    assert len({case.name for case in cases}) == len(cases)
    assert all(case.raw and case.expected and case.idea for case in cases)
    return cases


def _set(case: Case, key: str, value: str) -> None:
    match key:
        case "idea":
            case.idea = value
        case "place":
            case.place = (value, 80)
        case "method":
            case.method = value
        case "without":
            case.without = tuple(value.split())
        case "repeat":
            count, _, text = value.partition(" ")
            case.repeat = int(count) * unescaped(text)
        case "then":
            assert value in ("reset", "stay")
            case.reset, case.stays = value == "reset", value == "stay"
        case "expect":
            case.expected.append(_expected(value))
        case _:
            raise AssertionError(f"{case.name}: {key}")


def _expected(text: str) -> Expected:
    word, _, rest = text.partition(" ")
    if word in ("refuse", "cut", "nothing", "broken", "failed"):
        return Expected(word, status=int(rest or 0))
    if word == "answer" or (word == "either" and rest[:1].isdigit()):
        number, _, body = rest.partition(" ")
        return Expected(word, status=int(number), body=unescaped(body))
    assert word in ("pass", "either"), text
    method, target, host, *parts = rest.split(" ", 3)
    return Expected(word, method=method, target=target, host=host, body=unescaped(" ".join(parts)))
