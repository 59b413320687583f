"""A link of the site that the task names: it stands as it is in what that site answered, and leads to the same host.

Opening it says nothing of what the agent knows but which of the site's own links was chosen. A link to another host is
never vouched for, whoever wrote it there.
"""

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.leaves import leaves_of
from interlock.policy.tools.named import named_in_task
from interlock.policy.tools.roles import EGRESS, ToolRole
from interlock.policy.tools.selecting import at_span
from interlock.policy.tools.values import held, same_form

SAME_SITE = "same-site"
MAX_STEPS = 8
_URL = "url"


def follow_link(
    policy: Policy, knowledge: Knowledge, tool: ToolRole, value: Value, kind: str
) -> Derivation | None:
    """Return why a link that a call opens is one of a site that the task names."""
    if not tool.links or tool.effect != EGRESS or _URL not in kind.split("|"):
        return None
    return _followed(policy, knowledge, value, len(knowledge.returned), MAX_STEPS)


def _followed(
    policy: Policy, knowledge: Knowledge, value: Value, before: int, steps: int
) -> Derivation | None:
    form = same_form(_URL, value.text)
    host = host_of(value.text)
    if not steps or not form or not host:
        return None
    for number, returned in enumerate(knowledge.returned[:before]):
        tool = policy.tools.find(returned.tool)
        if tool is None or tool.output.echo:
            continue
        opened = [
            leaf
            for leaf in leaves_of(returned.arguments, whole=True) or ()
            if (leaf.field, _URL) in tool.steers and host_of(leaf.text) == host
        ]
        for leaf in returned.leaves if opened else ():
            for given, start, end in held(_URL, leaf.text):
                if given != form:
                    continue
                named = named_in_task(knowledge, opened[0].field, _URL, opened[0].text)
                source = Value(role=opened[0].field, text=opened[0].text)
                premise = named or _followed(policy, knowledge, source, number, steps - 1)
                if premise is not None:
                    return at_span(value, SAME_SITE, returned, leaf, (start, end), premises=(premise,))
    return None


def host_of(url: str) -> str:
    """Return the host of a link with its port, `""` where who is asked cannot be told from it."""
    scheme, colon, rest = url.strip().partition("://")
    if not colon:
        scheme, rest = "", url.strip()
    if scheme.lower() not in ("", "http", "https"):
        return ""
    for end in "/?#":
        rest = rest.partition(end)[0]
    plain = rest.isascii() and "." in rest and all(char.isalnum() or char in "-._:" for char in rest)
    return rest.lower() if plain else ""
