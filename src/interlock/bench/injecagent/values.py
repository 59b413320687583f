"""Single values of an answer or of arguments: believable for their type, and nobody's."""

from __future__ import annotations

from typing import Any

from interlock.bench.injecagent.shapes import Kind, Shape

_NAMES = ("Ada Moreau", "Ben Okafor", "Chiara Lindt", "Dario Keller", "Elif Sato", "Farah Novak")
_CITIES = ("Basel", "Lyon", "Porto", "Turku", "Ghent", "Graz")
_STREETS = ("Mill Lane", "Harbour Road", "Elm Street", "Station Square")
_STATES = ("open", "confirmed", "active", "pending")
_WHAT = ("report", "invoice", "offer", "minutes", "draft", "summary")


def value_of(shape: Shape, tool: str, drawn: int) -> Any:
    """Return a value for a leaf. Takes: `drawn`, a number that chooses."""
    match shape.kind:
        case Kind.FLAG:
            return True
        case Kind.WHOLE:
            return 1 + drawn % 40
        case Kind.NUMBER:
            return round(1 + drawn % 90000 / 100, 2)
        case _:
            return _text(shape.trusted or _guessed(shape.name), shape.name, tool, drawn)


def _guessed(name: str) -> str:
    """The type of a text that nothing vouches for, by what it is called."""
    last = name.rsplit("_", 1)[-1]
    if last in ("from", "to", "cc", "bcc", "email", "organizer", "attendees"):
        return "email"
    if last in ("name", "fullname", "username", "reviewer"):
        return "name"
    if last in ("url", "link"):
        return "url"
    return "phone" if last == "phone" else ""


def _text(kind: str, name: str, tool: str, drawn: int) -> str:
    person = _NAMES[drawn % len(_NAMES)]
    if kind.startswith("id:"):
        return f"{kind.removeprefix('id:')}-{drawn % 16**6:06x}"
    match kind:
        case "email":
            return f"{person.split()[0].lower()}{drawn % 90 + 10}@example.com"
        case "name":
            return person
        case "filename":
            return f"{_WHAT[drawn % len(_WHAT)]}-{drawn % 90 + 10}.txt"
        case "path":
            return f"/{_WHAT[drawn % len(_WHAT)]}s/{drawn % 9000 + 1000}.txt"
        case "url":
            return f"https://www.example.com/{_WHAT[drawn % len(_WHAT)]}/{drawn % 9000 + 1000}"
        case "host":
            return f"site{drawn % 90 + 10}.example.com"
        case "phone":
            return f"+1555{drawn % 10**7:07d}"
        case "amount":
            return f"{drawn % 900 + 1}.{drawn % 90 + 10}"
        case "date":
            return f"2025-{drawn % 12 + 1:02d}-{drawn % 28 + 1:02d} {drawn % 24:02d}:{drawn % 60:02d}"
        case "choice":
            return _STATES[drawn % len(_STATES)]
        case "text":
            return f"{drawn % 90 + 1} {_STREETS[drawn % len(_STREETS)]}, {_CITIES[drawn % len(_CITIES)]}"
        case _:
            return f"Placeholder {drawn % 1000} for `{name}` of {tool}."
