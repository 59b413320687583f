"""Operations of effects that a plan may name like tools: changes of files, and requests.

They belong to no toolkit, so what they need is derived from their own parameters.
"""

from interlock.manifest.canonical import parse
from interlock.manifest.document import Tree
from interlock.model.errors import InputError
from interlock.model.toolkits import Access, HostNeed, Needs, PathNeed, ToolSpec

_PLACE = r'{"type":"string","minLength":1,"pattern":"^[a-z][^:]*:[^\\u0000]*$"}'
_DIGEST = r'{"type":"string","pattern":"^[0-9a-f]{64}$"}'
_FILE = (
    f'{{"type":"object","properties":{{"path":{_PLACE}}},"required":["path"],"additionalProperties":false}}'
)
_RENAME = (
    f'{{"type":"object","properties":{{"path":{_PLACE},"source":{_PLACE}}},'
    '"required":["path","source"],"additionalProperties":false}'
)
_NET = (
    '{"type":"object","properties":{"method":{"type":"string","pattern":"^[A-Z]+$"},'
    '"scheme":{"enum":["http","ws","wss","tcp"]},"host":{"type":"string","pattern":"^[^A-Z\\\\s/@#?]{1,253}$"},'
    '"port":{"type":"integer","minimum":1,"maximum":65535},"path":{"type":"string"},'
    f'"query":{{"type":"string","minLength":1}},"body_digest":{_DIGEST}}},'
    '"required":["method","host","port","path"],"additionalProperties":false}'
)

_ROOTS = {"workspace": "{workspace}", "home": "{home}"}

FILES = ("file.create", "file.modify", "file.delete", "file.replace", "file.attributes")
RENAME = "file.rename"
REQUESTS = ("net.read", "net.write")

OPERATIONS: dict[str, ToolSpec] = {
    **{
        name: ToolSpec(
            name=name,
            description="A change of a file below a staged folder.",
            parameters=_FILE,
            effect="destroy" if name == "file.delete" else "write",
            steers=(("path", "path"),),
        )
        for name in FILES
    },
    RENAME: ToolSpec(
        name=RENAME,
        description="A file below a staged folder gets another name.",
        parameters=_RENAME,
        effect="write",
        steers=(("path", "path"), ("source", "path")),
    ),
    **{
        name: ToolSpec(
            name=name,
            description="A request to a service.",
            parameters=_NET,
            effect="send" if name == "net.write" else "egress",
            steers=(("host", "host"), ("path", "text"), ("query", "text")),
            carries=("body_digest",),
        )
        for name in REQUESTS
    },
}


def needs_of(operation: str, parameters: str, step: str) -> Needs:
    """Return what one step of an operation needs: its place to write to, or its host."""
    given: Tree = parse(parameters)
    reason = f"the step {step} of the plan"
    if operation in REQUESTS:
        host, port = given.get("host"), given.get("port")
        known = isinstance(host, str) and isinstance(port, int)
        return Needs(hosts=(HostNeed(host=host, port=port, reason=reason),)) if known else Needs()
    places = [_path_of(given.get(key), step) for key in ("path", "source")]
    return Needs(
        paths=tuple(
            [
                PathNeed(path=place, access=Access.WRITE, reason=reason)
                for place in places
                if place is not None
            ]
        )
    )


def _path_of(place: object, step: str) -> str | None:
    if not isinstance(place, str):
        return None
    root, _, path = place.partition(":")
    if {"", ".", ".."} & set(path.split("/")):
        raise InputError(
            f"step `{step}`: `{place}` is no place below a staged folder",
            hint="write it as in `workspace:src/a.py`",
        )
    return f"{_ROOTS[root]}/{path}" if root in _ROOTS else None
