"""JSON pointers into parameters and answers, `*` standing for any one key or index.

Source: RFC 6901; the `*` is ours.
"""

from collections.abc import Iterator

ANY = "*"
MISSING = object()
"""What stands where nothing is."""


def steps_of(pointer: str) -> tuple[str, ...]:
    """Return a pointer's reference tokens. Raises: ValueError, where it is none."""
    if pointer == "":
        return ()
    if not pointer.startswith("/"):
        raise ValueError("a pointer begins with `/`")
    found = []
    for token in pointer[1:].split("/"):
        if "~" in token.replace("~0", "").replace("~1", ""):
            raise ValueError("in a pointer `~` stands as `~0`, `/` as `~1`")
        found.append(token.replace("~1", "/").replace("~0", "~"))
    return tuple(found)


def written(tokens: tuple[str, ...]) -> str:
    """Return a pointer of reference tokens."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def value_at(value: object, pointer: str) -> object:
    """Return what a pointer without `*` names, MISSING where nothing is there."""
    here = value
    for token in steps_of(pointer):
        here = _below(here, token)
        if here is MISSING:
            return MISSING
    return here


def values_at(value: object, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield what a pointer names, each with its own pointer; a key that is literally `*` is matched as well."""
    yield from _all_at(value, steps_of(pointer), ())


def matches(pattern: str, pointer: str) -> bool:
    """Return whether a pointer is one of those that a pattern names."""
    wanted, given = steps_of(pattern), steps_of(pointer)
    return len(wanted) == len(given) and all(
        left in (ANY, right) for left, right in zip(wanted, given, strict=True)
    )


def replaced(value: object, pointer: str, new: object) -> object:
    """Return a copy of a value with another one at a place that is there. Raises: ValueError, where nothing is."""
    return _replaced(value, steps_of(pointer), new)


def _below(here: object, token: str) -> object:
    if isinstance(here, dict):
        return here.get(token, MISSING)
    index = _index(here, token)
    return MISSING if index is None or not isinstance(here, list) else here[index]


def _index(here: object, token: str) -> int | None:
    if not isinstance(here, list) or not token.isascii() or not token.isdigit():
        return None
    if len(token) > 7 or (len(token) > 1 and token[0] == "0"):
        return None
    return int(token) if int(token) < len(here) else None


def _all_at(here: object, tokens: tuple[str, ...], path: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    if not tokens:
        yield written(path), here
        return
    if tokens[0] != ANY:
        below = _below(here, tokens[0])
        if below is not MISSING:
            yield from _all_at(below, tokens[1:], (*path, tokens[0]))
    elif isinstance(here, dict):
        for key, below in here.items():
            yield from _all_at(below, tokens[1:], (*path, key))
    elif isinstance(here, list):
        for index, below in enumerate(here):
            yield from _all_at(below, tokens[1:], (*path, str(index)))


def _replaced(here: object, tokens: tuple[str, ...], new: object) -> object:
    if not tokens:
        return new
    if isinstance(here, dict) and tokens[0] in here:
        return {**here, tokens[0]: _replaced(here[tokens[0]], tokens[1:], new)}
    index = _index(here, tokens[0])
    if index is None or not isinstance(here, list):
        raise ValueError("nothing is there")
    return [*here[:index], _replaced(here[index], tokens[1:], new), *here[index + 1 :]]
