"""Which of the model's announced calls an effect most probably comes from. Nothing is decided by it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache

from interlock.model.actions import AnnouncedCall
from interlock.model.effects import Effect
from interlock.model.records import dataclass

_LOOKED_AT = 500
"""So many calls are looked at for an effect of which no order is known."""
_SHORT = 60
_OPENED = 10**18


class Certainty(Enum):
    """How sure it is that a call led to an effect."""

    NAMES = "names-it"
    """The call was under way, and its arguments name what the effect touches."""
    BEFORE = "before-it"
    """The call came before, and nothing in it names the effect, or it had its result already."""
    NONE = "no-call"
    """No call was under way, and none before names it."""
    UNKNOWN = "unknown"
    """No call names it, and its order among them is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """A call with its time in the ledger.

    Takes: `exchange`, the effect that announced it; `asked`, seq of that request's node; `announced`, of the
    announcement; `closed`, of the request that brought its result.
    """

    call: AnnouncedCall
    exchange: str
    asked: int
    announced: int
    closed: int = _OPENED


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAction:
    """What is known of an effect's action; `announced` is None where no call is meant."""

    certainty: Certainty
    announced: Announced | None = None


def name_action(
    effect: Effect, at: int, announced: Sequence[Announced], roots: dict[str, str]
) -> NamedAction:
    """Return the call that most probably led to an effect.

    Takes: `at`, seq of the node that first shows it (a request's own, a file's first write), -1 where no order is
    known; `roots`, name -> host path.
    """
    before = [one for one in announced if one.asked < at] if at >= 0 else list(announced[-_LOOKED_AT:])
    under_way = [one for one in before if at < one.closed]
    wanted = _wanted(effect, roots)
    best = _best(wanted, under_way)
    if best is not None:
        return NamedAction(certainty=Certainty.NAMES, announced=best)
    if at < 0:
        return NamedAction(certainty=Certainty.UNKNOWN if announced else Certainty.NONE)
    told = [one for one in under_way if one.announced < at]
    if told:
        return NamedAction(certainty=Certainty.BEFORE, announced=told[-1])
    late = _best(wanted, before[-_LOOKED_AT:])
    if late is not None:
        return NamedAction(certainty=Certainty.BEFORE, announced=late)
    return NamedAction(certainty=Certainty.NONE)


def short(call: AnnouncedCall) -> str:
    """Write a call in a few words: the tool, and its first telling argument."""
    value = json.loads(call.arguments)
    if isinstance(value, dict):
        told = sorted(value.items(), key=lambda item: _telling(item[0]))[:1]
        inner = ", ".join(_argument(key, item) for key, item in told)
        more = ", …" if len(value) > 1 else ""
        return f"{call.tool}({inner}{more})"
    return f"{call.tool}({_cut(_plain(value))})"


_TELLING = ("command", "cmd", "url", "file_path", "filepath", "path", "absolute_path", "file", "query")


def _telling(key: str) -> tuple[int, str]:
    lowered = key.replace("filePath", "filepath").lower()
    return (_TELLING.index(lowered) if lowered in _TELLING else len(_TELLING), key)


def _argument(key: str, value: object) -> str:
    said = _cut(_plain(value))
    return said if key.lower() in ("command", "cmd") else f"{key}={said}"


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _cut(said: str) -> str:
    said = " ".join(said.split())
    return said if len(said) <= _SHORT else said[: _SHORT - 1] + "…"


def _wanted(effect: Effect, roots: dict[str, str]) -> list[tuple[int, str]]:
    """Return what a call may say that names an effect, with how much it says."""
    if effect.change is not None:
        wanted: list[tuple[int, str]] = []
        for place in (effect.change.place, effect.change.source):
            if place is None or not place.path:
                continue
            parts = place.path.split("/")
            wanted += [(5, f"{roots.get(place.root, '')}/{place.path}"), (4, place.path), (3, parts[-1])]
            # A call that names a folder (`rm -rf build`) names what lies in it.
            wanted += [(2, "/".join(parts[:depth])) for depth in range(len(parts) - 1, 0, -1)]
        return wanted
    request = effect.request
    if request is None:
        return []
    host = f"[{request.host}]" if ":" in request.host else request.host
    wanted = [(5, effect.object), (3, f"{host}:{request.port}")]
    # A loopback host is named by its port alone: every local server has that name.
    return wanted if request.published else [*wanted, (2, host)]


def _best(wanted: list[tuple[int, str]], calls: Sequence[Announced]) -> Announced | None:
    best: tuple[int, Announced] | None = None
    for one in calls:
        texts = _texts(one.call.arguments)
        score = max(
            (weight for weight, word in wanted if any(_holds(text, word) for text in texts)), default=0
        )
        if score and (best is None or score >= best[0]):
            best = (score, one)
    return None if best is None else best[1]


def _holds(text: str, word: str) -> bool:
    """Say whether a text holds a word as a whole: `a.py` is not in `data.py`, nor in `a.pyc`."""
    at = text.find(word) if word else -1
    while at >= 0:
        end = at + len(word)
        if not _PART_BEFORE.search(text[max(0, at - 1) : at]) and not _PART_AFTER.match(text[end : end + 2]):
            return True
        at = text.find(word, at + 1)
    return False


_PART_BEFORE = re.compile(r"[\w.-]\Z")
_PART_AFTER = re.compile(r"[\w-]|\.\w")


@lru_cache(maxsize=4096)
def _texts(arguments: str) -> tuple[str, ...]:
    return tuple(_strings(json.loads(arguments)))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
