"""What a released call of this run says that it made: a name in quotes in its answer, and for a folder all below it.

The folder is new, so nothing of the user's lay there before.
"""

import re

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.leaves import leaves_of
from interlock.policy.tools.roles import READ
from interlock.policy.tools.selecting import at_span

MADE = "made-here"
_PATH = "path"
_QUOTED = re.compile(r"(?<!\w)'([^'\"\n]{1,400})'|\"([^'\"\n]{1,400})\"")


def find_made(policy: Policy, knowledge: Knowledge, value: Value, kind: str) -> Derivation | None:
    """Return which call of this run made what a value names.

    Holds: what the call was given, and any part of it, is not what it made.
    """
    kinds = kind.split("|")
    if not any(tool.output.makes in kinds for tool in policy.tools.tools if tool.output.makes):
        return None
    for returned in knowledge.returned:
        tool = policy.tools.find(returned.tool)
        if tool is None or tool.effect == READ or tool.output.makes not in kinds:
            continue
        given = {leaf.text for leaf in leaves_of(returned.arguments, whole=True) or ()}
        for leaf in returned.leaves:
            for found in _QUOTED.finditer(leaf.text):
                group = 1 if found.group(1) else 2
                name = found.group(group)
                if not any(name in each for each in given) and _is_of(value.text, name, tool.output.makes):
                    return at_span(value, MADE, returned, leaf, found.span(group))
    return None


def _is_of(value: str, made: str, kind: str) -> bool:
    if kind != _PATH:
        return value == made
    steps = value.split("/")
    plain = made.startswith("/") and made.strip("/") and not {"..", "."} & set(steps) and value.isprintable()
    return bool(plain) and (value.rstrip("/") == made.rstrip("/") or value.startswith(made.rstrip("/") + "/"))
