"""Injections that a user brings along: texts that somebody fitted to a defence, in place of the suite's own attack.

A file maps user tasks to injection tasks to a text, or to texts by the place that they stand in; a mapping of suites
may stand around it. A list of records (`user_task`, `injection_task` and `injections`, as logs of AgentDojo's name
them) is read as well. A text without a place goes wherever the suite's own attack would have gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from interlock.model.errors import InputError

MAX_BYTES = 100_000_000
Places = tuple[tuple[str, str], ...]
"""Texts by place; one with the place `""` goes wherever the suite's own attack goes."""
Given = dict[tuple[str, str, str], Places]
"""Injections by suite, user task and injection task."""
_USER = "user_task"
_HINT = "map user tasks to injection tasks to a text, or to texts by their place"


def read_injections(path: Path, suites: Mapping[str, Iterable[str]]) -> Given:
    """Read injections. Takes: `suites`, the chosen ones, each with its places. Raises: InputError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"`{path}` is too large", hint="give the injections of one suite")
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as failure:
        raise InputError(
            f"`{path}` cannot be read ({type(failure).__name__})", hint="give an injections.json"
        ) from None
    except (ValueError, RecursionError):
        raise InputError(f"`{path}` is no JSON", hint=_HINT) from None
    found: Given = {}
    for suite, user, injection, texts in _entries(path, tree, tuple(suites)):
        if suite in suites:
            found[suite, user, injection] = _places(path, texts, frozenset(suites[suite]))
    if not found:
        raise InputError(f"`{path}` has no injection for these suites", hint=_HINT)
    return found


def placed(given: Places, own: Places, escaped: Callable[[str], str]) -> Places:
    """Return the texts as the environment takes them. Takes: `own`, what the suite's own attack would have injected."""
    found: dict[str, str] = {}
    for place, text in given:
        for each in [place] if place else [known for known, _ in own]:
            found[each] = escaped(text)
    return tuple(sorted(found.items()))


def _entries(path: Path, tree: object, suites: Sequence[str]) -> Iterator[tuple[str, str, str, object]]:
    if isinstance(tree, dict) and isinstance(tree.get("injections"), list):
        tree = tree["injections"]
    if isinstance(tree, list):
        for record in tree:
            yield _record(path, record, suites)
        return
    if not isinstance(tree, dict):
        raise InputError(f"`{path}` holds no injections", hint=_HINT)
    for name, inner in tree.items():
        if not isinstance(inner, dict):
            raise InputError(f"`{path}` holds no injections", hint=_HINT)
        for key, value in inner.items():
            if name.startswith(_USER):
                yield _only(path, suites), name, key, value
            elif not isinstance(value, dict):
                raise InputError(f"`{path}` holds no injections", hint=_HINT)
            else:
                for injection, texts in value.items():
                    yield name, key, injection, texts


def _record(path: Path, record: object, suites: Sequence[str]) -> tuple[str, str, str, object]:
    if not isinstance(record, dict):
        raise InputError(f"`{path}` has an entry that is no record", hint=_HINT)
    values = [record.get(name) or record.get(f"{name}_id") for name in (_USER, "injection_task")]
    suite = record.get("suite") or record.get("suite_name") or _only(path, suites)
    texts = record.get("injections") or record.get("injection") or record.get("text")
    if not all(isinstance(each, str) for each in (suite, *values)):
        raise InputError(f"`{path}` has a record without its tasks", hint="name user_task and injection_task")
    return str(suite), str(values[0]), str(values[1]), texts


def _only(path: Path, suites: Sequence[str]) -> str:
    if len(suites) != 1:
        raise InputError(f"`{path}` does not say of which suite it is", hint="add --suite")
    return suites[0]


def _places(path: Path, texts: object, known: frozenset[str]) -> Places:
    if isinstance(texts, str) and texts:
        return (("", texts),)
    if not isinstance(texts, dict) or not texts or not all(isinstance(each, str) for each in texts.values()):
        raise InputError(f"`{path}` has an injection that is no text", hint=_HINT)
    for place in texts:
        if place not in known:
            raise InputError(f"the suite has no place `{place}`", hint=f"one of: {', '.join(sorted(known))}")
    return tuple(sorted((str(place), str(text)) for place, text in texts.items()))
