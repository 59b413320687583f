"""A lens's text, or the keys `lenses` and `lens_texts` of a policy, become lenses, or a mistake with its line."""

from interlock.policy.document import Document, Path, Tree
from interlock.policy.lenses.lens import Body, LensAction, RequestLens, Template, template
from interlock.policy.reading import flag_at, known_keys, near, needs, section, text_at, texts_at, wrong
from interlock.policy.tools.loading import read_tools
from interlock.policy.tools.roles import ToolRole, ToolRoles

LENS_KEYS = ("lens", "about", "sources", "hosts", "actions", "tests")
KEPT_KEYS = ("lens", "hosts", "actions")
"""What of a lens a policy keeps."""
ROLE_KEYS = ("effect", "internal_without", "steers", "acts", "carries", "asks", "clearance")
ACTION_KEYS = (
    "request", "operation", "host", "body", "slashes", "headers", "when", "same", "join", "field", "kind", "call",
    "unread", *ROLE_KEYS,
)  # fmt: skip
_OWN_NAMES = ("body", "query", "header", "params", "variables", "updates")
_KINDS = ("mutation", "query")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_EXAMPLE = "lenses: [github, ./own-lens.yaml, {use: jsonrpc, hosts: [rpc.example.com]}]"
_ACTION = "issues_create: {request: POST /repos/{owner}/issues, body: json, effect: send}"
MAX_ACTIONS = 2000


def read_lenses(document: Document, tools: ToolRoles) -> tuple[tuple[RequestLens, ...], ToolRoles]:
    """Return what a policy's lenses are, and its tools with the roles of their actions.

    Raises: PolicyError.
    """
    given = document.values.get("lenses")
    texts = document.values.get("lens_texts") or {}
    if not isinstance(given, list) or not isinstance(texts, dict):
        wrong(document, ("lenses",), "a list of lenses", f"write `{_EXAMPLE}`")
    lenses: list[RequestLens] = []
    roles: list[ToolRole] = []
    for index, _entry in enumerate(given):
        use, hosts = use_of(document, index)
        if use not in texts:
            raise document.mistake(
                ("lenses", index),
                f"the lens `{use}` is not written into this policy",
                hint="a run writes it in where the key `lenses` begins a line of its own in the policy's file",
            )
        lens, own = read_lens(document, ("lens_texts", use), hosts=hosts)
        if lens.name in {one.name for one in lenses}:
            raise document.mistake(
                ("lenses", index), f"the lens `{lens.name}` is used twice", hint="keep one of them"
            )
        lenses.append(lens)
        roles += own
    taken = {tool.name for tool in tools.tools}
    for role in roles:
        if role.name in taken:
            raise document.mistake(
                ("tools", role.name),
                f"`{role.name}` is an action of a lens too",
                hint="give the tool another name",
            )
    return tuple(lenses), ToolRoles(tools=(*tools.tools, *roles), delegations=tools.delegations)


def use_of(document: Document, index: int) -> tuple[str, tuple[Template, ...]]:
    """Return which lens an entry of `lenses` uses, and at which hosts, `()` for its own. Raises: PolicyError."""
    path: Path = ("lenses", index)
    entry = document.values["lenses"][index]
    if isinstance(entry, str) and entry:
        return entry, ()
    if not isinstance(entry, dict):
        wrong(document, path, "a lens's name or file", f"write `{_EXAMPLE}`")
    known_keys(document, path, ("use", "hosts"))
    needs(document, path, entry, "use", _EXAMPLE)
    use = text_at(document, (*path, "use"), "use: jsonrpc")
    return use, _hosts(document, (*path, "hosts"), entry.get("hosts"))


def read_lens(
    document: Document, path: Path, *, hosts: tuple[Template, ...] = ()
) -> tuple[RequestLens, tuple[ToolRole, ...]]:
    """Return a lens that stands at a path of a document, and the roles of its actions.

    Takes: `hosts`, in place of its own.
    Raises: PolicyError.
    """
    said = section(document, path, LENS_KEYS, "lens: github")
    name = text_at(document, (*path, "lens"), "lens: github")
    if not name.replace("-", "_").isidentifier() or not name.isascii():
        raise document.mistake((*path, "lens"), "not a lens's name", hint="use letters, digits, `_` and `-`")
    own = _hosts(document, (*path, "hosts"), said.get("hosts"))
    if not hosts and not own:
        raise document.mistake(
            path,
            f"the lens `{name}` says at which hosts it is for none",
            hint=f"say at which: lenses: [{{use: {name}, hosts: [rpc.example.com]}}]",
        )
    actions = said.get("actions")
    if not isinstance(actions, dict) or not actions or len(actions) > MAX_ACTIONS:
        wrong(document, (*path, "actions"), "a mapping of actions", f"write `{_ACTION}` below it")
    read: list[LensAction] = []
    roles: list[ToolRole] = []
    for each in actions:
        action, role = _action(document, (*path, "actions", each), name, each)
        read.append(action)
        roles.append(role)
    return RequestLens(name=name, hosts=hosts or own, actions=tuple(read)), tuple(roles)


def _action(document: Document, path: Path, lens: str, name: str) -> tuple[LensAction, ToolRole]:
    if not name.isidentifier() or not name.isascii():
        raise document.mistake(path, "not an action's name", hint="use letters, digits and `_`", key=True)
    said = section(document, path, ACTION_KEYS, _ACTION)
    method, _, target = text_at(document, (*path, "request"), "request: POST /items/{item}").partition(" ")
    if method not in _METHODS:
        raise document.mistake(
            (*path, "request"), "not a request", hint=f"begin with one of {', '.join(_METHODS)}"
        )
    at = _template(document, (*path, "request"), target.strip(), of_host=False)
    body = _body(document, path, said)
    joins = _texts(document, (*path, "join"), said.get("join"))
    full = f"{lens}.{name}"
    action = LensAction(
        name=full,
        method=method,
        path=at,
        body=body,
        operation=text_at(document, (*path, "operation"), "operation: issues/create")
        if "operation" in said
        else "",
        host=_host(document, (*path, "host")) if "host" in said else None,
        slashes=_names(document, path, "slashes", said),
        headers=tuple(one.lower() for one in _names(document, path, "headers", said)),
        when=_texts(document, (*path, "when"), said.get("when")),
        same=_texts(document, (*path, "same"), said.get("same")),
        joins=joins,
        field=text_at(document, (*path, "field"), "field: createIssue") if body is Body.GRAPHQL else "",
        is_mutation=_kind(document, path, said),
        call=text_at(document, (*path, "call"), "call: tools/call") if body is Body.JSON_RPC else "",
        unread=flag_at(document, (*path, "unread")) if "unread" in said else False,
    )
    for hole in action.slashes:
        if hole not in at.holes:
            raise document.mistake(
                (*path, "slashes"), f"the path has no `{{{hole}}}`", hint=near(hole, at.holes or ("",))
            )
    return action, _role(document, path, full, said)


def _role(document: Document, path: Path, name: str, said: dict[str, Tree]) -> ToolRole:
    """Read the roles of an action as those of a tool, each mistake where it stands."""
    moved: Path = ("tools", name)
    places = {
        (*moved, *where[len(path) :]): spot
        for where, spot in document.positions.items()
        if where[: len(path)] == path
    }
    inner = Document(
        filename=document.filename,
        values={"tools": {name: {key: value for key, value in said.items() if key in ROLE_KEYS}}},
        positions=places,
    )
    return read_tools(inner, ToolRoles()).tools[0]


def _body(document: Document, path: Path, said: dict[str, Tree]) -> Body:
    known = tuple(one.value for one in Body)
    word = said.get("body", Body.NONE.value)
    if word not in known:
        hint = near(word, known) if isinstance(word, str) else f"use one of: {', '.join(known)}"
        raise document.mistake((*path, "body"), "not a way to read a body", hint=hint)
    return Body(word)


def _kind(document: Document, path: Path, said: dict[str, Tree]) -> bool:
    word = said.get("kind", _KINDS[0])
    if word not in _KINDS:
        wrong(document, (*path, "kind"), " or ".join(_KINDS), f"write `kind: {_KINDS[0]}`")
    return bool(word == _KINDS[0])


def _hosts(document: Document, path: Path, given: Tree) -> tuple[Template, ...]:
    if given is None:
        return ()
    return tuple(
        _host(document, (*path, index))
        for index, _ in enumerate(texts_at(document, path, given, text_at, "hosts: [api.example.com]"))
    )


def _host(document: Document, path: Path) -> Template:
    text = text_at(document, path, "host: api.example.com")
    if text.lower() != text or "/" in text or ":" in text:
        raise document.mistake(path, "not a host", hint="write it in small letters, without scheme and port")
    return _template(document, path, text, of_host=True)


def _template(document: Document, path: Path, text: str, *, of_host: bool) -> Template:
    made = template(text, of_host=of_host)
    if made is None or not (text if of_host else text.startswith("/")):
        raise document.mistake(
            path,
            "its holes cannot be read",
            hint="write `/items/{item}`, and `{rest+}` only at the end of a path",
        )
    for hole in made.holes:
        if hole in _OWN_NAMES:
            raise document.mistake(
                path, f"`{hole}` is the name of another part", hint="call the hole otherwise"
            )
    return made


def _names(document: Document, path: Path, key: str, said: dict[str, Tree]) -> tuple[str, ...]:
    return texts_at(document, (*path, key), said.get(key), text_at, f"{key}: [name]")


def _texts(document: Document, path: Path, given: Tree) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    if not isinstance(given, dict):
        wrong(document, path, "a mapping of names to texts", f"write `{path[-1]}: {{name: text}}`")
    for name, value in given.items():
        if not isinstance(value, str):
            wrong(document, (*path, name), "text", "put quotes around it")
    return tuple(given.items())
