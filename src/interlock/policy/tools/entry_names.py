"""The names of a mapping's entries as values, where a policy declares them.

`shared_with{}` of type `email` says so of the keys of `{"shared_with": {"ann@a.test": "read"}}`.

A pointer names a value; with a `~` behind it, which no pointer ends in, the name of that entry.
"""

import json

from interlock.policy.tools.leaves import MAX_LEAVES, NAME_MARK, NAMES, Leaf, plain_field


def with_entry_names(
    leaves: tuple[Leaf, ...], text: str, fields: tuple[tuple[str, str], ...]
) -> tuple[Leaf, ...] | None:
    """Return the leaves of a JSON text and, behind them, the names of the entries of declared mappings; None where they
    are too many."""
    wanted = {plain_field(name) for name, _ in fields if name.endswith(NAMES)}
    if not wanted:
        return leaves
    found = list(leaves)
    waiting: list[tuple[object, str, str]] = [(json.loads(text), "", "")]
    while waiting:
        tree, field, pointer = waiting.pop()
        if isinstance(tree, dict):
            steps = [(key, key.replace("~", "~0").replace("/", "~1")) for key in tree]
            if plain_field(f"{field}{NAMES}") in wanted:
                found += [
                    Leaf(field=f"{field}{NAMES}", pointer=f"{pointer}/{step}{NAME_MARK}", text=key)
                    for key, step in steps
                    if key
                ]
            inner = [
                (tree[key], f"{field}.{key}" if field else key, f"{pointer}/{step}") for key, step in steps
            ]
        elif isinstance(tree, list):
            inner = [(each, f"{field}[]", f"{pointer}/{index}") for index, each in enumerate(tree)]
        else:
            continue
        if len(found) > MAX_LEAVES:
            return None
        waiting.extend(reversed(inner))
    return tuple(found)
