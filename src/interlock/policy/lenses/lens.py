"""What a lens says: patterns of requests, each an action whose roles stand among the tools of the policy.

A lens names and narrows. What it does not recognise, or could read in two ways, is decided as if it were not there.
"""

import re
from enum import Enum

from interlock.model.records import dataclass


class Body(Enum):
    """How the body of a request is read."""

    NONE = "none"
    JSON = "json"
    FORM = "form"
    GRAPHQL = "graphql"
    JSON_RPC = "jsonrpc"
    GIT = "git"
    """A push: its references, as the boundary read them."""
    ANY = "any"
    """Carried as it is, whatever it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A host or a path with holes: `/repos/{owner}/{repo}/issues`, `{bucket}.s3.*.amazonaws.com`, `/{key+}`.

    Takes: `pattern`, a regular expression with a group for each hole; `holes`, their names in order.
    """

    text: str
    pattern: re.Pattern[str]
    holes: tuple[str, ...]

    def match(self, value: str) -> dict[str, str] | None:
        """Return what stands in the holes, None where the value is no such one."""
        found = self.pattern.fullmatch(value)
        return None if found is None else dict(zip(self.holes, found.groups(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class LensAction:
    """A request as an action.

    Takes: `name`, with the lens's before it (`github.issues_create`), which is that of the tool with its roles;
    `operation`, how the service's own description calls it; `host`, None for those of the lens; `path`; `slashes`, the
    holes of the path that may hold a `/` as `%2F`; `headers`, those that become arguments; `when`, arguments that must
    have these values; `same`, pairs of arguments that must be equal; `joins`, arguments made of others, which they
    replace; `field` and `is_mutation`, of GraphQL; `call`, the method of JSON-RPC; `unread`, whether what steers it
    cannot be read, so that nothing vouches for it.
    """

    name: str
    method: str
    path: Template
    body: Body
    operation: str = ""
    host: Template | None = None
    slashes: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    when: tuple[tuple[str, str], ...] = ()
    same: tuple[tuple[str, str], ...] = ()
    joins: tuple[tuple[str, str], ...] = ()
    field: str = ""
    is_mutation: bool = True
    call: str = ""
    unread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLens:
    """A lens. Takes: `hosts`, where its actions are."""

    name: str
    hosts: tuple[Template, ...]
    actions: tuple[LensAction, ...]


_HOLE = re.compile(r"\{([a-z][a-z0-9_]*)(\+?)\}")
_HOST_PART, _PATH_PART = r"[^./]+", r"[^/]+"


def template(text: str, *, of_host: bool) -> Template | None:
    """Return a template, None where a hole has no proper name, or two have the same.

    Holds: a hole takes one label of a host, or one segment of a path; `{name+}` the rest of a path.
    """
    part = _HOST_PART if of_host else _PATH_PART
    pattern, holes, at = "", [], 0
    for found in _HOLE.finditer(text):
        pattern += _plain(text[at : found.start()], part, of_host=of_host)
        rest = bool(found[2])
        if (rest and (of_host or found.end() != len(text))) or found[1] in holes:
            return None
        pattern += "(.+)" if rest else f"({part})"
        holes.append(found[1])
        at = found.end()
    last = text[at:]
    if "{" in last or "}" in last or "{" in _HOLE.sub("", text):
        return None
    pattern += _plain(last, part, of_host=of_host)
    return Template(text=text, pattern=re.compile(pattern, re.DOTALL), holes=tuple(holes))


def _plain(text: str, part: str, *, of_host: bool) -> str:
    if not of_host:
        return re.escape(text)
    return part.join(re.escape(one) for one in text.split("*"))
