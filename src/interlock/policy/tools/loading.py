"""The policy keys `tools` and `delegate` become `ToolRoles`, or a mistake with its line and its fix."""

from interlock.model.errors import PolicyError
from interlock.model.labels import Confidentiality
from interlock.model.toolkits import Disclosure
from interlock.policy.document import Document, Path, Tree
from interlock.policy.reading import (
    count_at,
    entries,
    flag_at,
    level_at,
    near,
    needs,
    section,
    text_at,
    texts_at,
    wrong,
)
from interlock.policy.tools.roles import (
    EFFECTS,
    EGRESS,
    TRUSTS,
    TYPES,
    WRITE,
    Correspondents,
    Delegation,
    Output,
    Rank,
    ToolRole,
    ToolRoles,
    is_type,
)

TOOL_KEYS = (
    "effect",
    "internal_without",
    "steers",
    "acts",
    "carries",
    "parks",
    "asks",
    "follows",
    "inert",
    "chooses",
    "links",
    "output",
    "clearance",
    "discloses",
)
OUTPUT_KEYS = ("trust", "echo", "fields", "ranks", "covers", "makes", "correspondents", "level", "levels")
CORRESPONDENT_KEYS = ("fields", "where")
MADE = ("path", "name")
"""Types of what a call may say that it made."""
RANK_KEYS = ("most", "least")
DISCLOSE_KEYS = ("recipient", "data", "subject", "purpose")
DELEGATE_KEYS = ("tool", "source", "roles", "with", "effects")
SHAPED = ("email", "url", "iban", "phone")
"""Types of which a text can be said to hold exactly one."""
_EXAMPLE = "send_email: {effect: send, steers: {recipients: email}, carries: [subject, body]}"
_DELEGATE = "{tool: read_file, source: bill.txt, roles: [send_money.recipient]}"
MAX_EFFECTS = 100


def read_tools(document: Document, base: ToolRoles) -> ToolRoles:
    """Read what a policy says of tools, on top of what its preset or profile says.

    Raises: PolicyError.
    """
    found = {tool.name: tool for tool in base.tools}
    given = document.values.get("tools")
    if given is not None and not isinstance(given, dict):
        wrong(document, ("tools",), "a mapping of tools", f"write `{_EXAMPLE}` below it")
    for name in given or {}:
        found[name] = _tool(document, ("tools", name), name)
    _check_follows(document, given or {}, found)
    tools = tuple(found.values())
    delegations = _delegations(document, found)
    _check_circles(document, delegations, base.delegations)
    return ToolRoles(tools=tools, delegations=(*base.delegations, *delegations))


def _tool(document: Document, path: Path, name: str) -> ToolRole:
    if not name or len(name) > 200 or not name.isprintable():
        raise document.mistake(path, "not a tool's name", hint="write it as the tool's server does", key=True)
    given = section(document, path, TOOL_KEYS, f"tools: {{{_EXAMPLE}}}")
    if "effect" not in given:
        raise document.mistake(
            path, f"the tool `{name}` has no `effect`", hint=f"add `effect:` with one of {', '.join(EFFECTS)}"
        )
    steers = _typed(document, (*path, "steers"), given.get("steers"))
    acts = _typed(document, (*path, "acts"), given.get("acts"))
    carries = _names(document, path, "carries", given)
    roles = [*(role for role, _ in steers), *(role for role, _ in acts), *carries]
    for role in roles:
        if roles.count(role) > 1:
            raise document.mistake(
                path, f"the argument `{role}` of `{name}` has two roles", hint="keep it in one of the lists"
            )
    without = _names(document, path, "internal_without", given)
    for role in without:
        if role not in roles:
            raise document.mistake(
                (*path, "internal_without"),
                f"`{role}` is no argument that `{name}` declares",
                hint=near(role, roles or [name]),
            )
    effect = _one_of(document, (*path, "effect"), given["effect"], EFFECTS)
    inert = flag_at(document, (*path, "inert")) if "inert" in given else False
    if inert and (effect != WRITE or steers or acts):
        raise document.mistake(
            (*path, "inert"),
            f"`{name}` does more than make something empty",
            hint="keep `inert` for a `write` that nothing steers",
        )
    chooses = _names(document, path, "chooses", given)
    for role in chooses:
        if role not in dict(steers):
            raise document.mistake(
                (*path, "chooses"),
                f"`{role}` does not steer `{name}`",
                hint=near(role, [each for each, _ in steers] or [name]),
            )
    if chooses and effect != WRITE and not given.get("asks"):
        raise document.mistake(
            (*path, "chooses"),
            f"the agent would choose for `{name}` though no task asks for it",
            hint="add `asks:` with the words by which a task asks for this call",
        )
    return ToolRole(
        name=name,
        effect=effect,
        internal_without=without,
        steers=steers,
        acts=acts,
        carries=carries,
        parks=flag_at(document, (*path, "parks")) if "parks" in given else False,
        asks=_phrases(document, path, "asks", given),
        follows=_names(document, path, "follows", given),
        inert=inert,
        chooses=chooses,
        links=_links(document, (*path, "links"), effect, steers) if "links" in given else False,
        output=_output(document, (*path, "output")) if given.get("output") is not None else Output(),
        **({"clearance": level_at(document, path, given, "clearance")} if "clearance" in given else {}),
        discloses=_discloses(document, (*path, "discloses")) if given.get("discloses") is not None else None,
    )


def _discloses(document: Document, path: Path) -> Disclosure:
    given = section(document, path, DISCLOSE_KEYS, "discloses: {recipient: [to], data: [body]}")
    if not given.get("data"):
        raise document.mistake(
            path, "it is not said what is given to somebody", hint="write `data: [body]`, each an argument"
        )
    return Disclosure(**{key: _names(document, path, key, given) for key in DISCLOSE_KEYS})


def _links(document: Document, path: Path, effect: str, steers: tuple[tuple[str, str], ...]) -> bool:
    if effect != EGRESS or "url" not in dict(steers).values():
        raise document.mistake(
            path, f"`{path[1]}` opens no links", hint="keep `links` for an `egress` that a `url` steers"
        )
    return flag_at(document, path)


def _phrases(document: Document, path: Path, key: str, given: dict[str, Tree]) -> tuple[str, ...]:
    return tuple(" ".join(phrase.lower().split()) for phrase in _names(document, path, key, given))


def _check_follows(document: Document, given: dict[str, Tree], tools: dict[str, ToolRole]) -> None:
    for name in given:
        tool = tools[name]
        for index, first in enumerate(tool.follows):
            if first not in tools or first == name:
                raise document.mistake(
                    ("tools", name, "follows", index),
                    f"no other tool `{first}` is declared",
                    hint=near(first, [each for each in tools if each != name] or ["tools"]),
                )
        if tool.follows and (tool.steers or tool.acts or tool.asks):
            raise document.mistake(
                ("tools", name, "follows"),
                f"`{name}` does more than complete another call",
                hint="take out `steers`, `acts` and `asks`, or `follows`",
            )


def _names(document: Document, path: Path, key: str, given: dict[str, Tree]) -> tuple[str, ...]:
    return texts_at(document, (*path, key), given.get(key), text_at, f"{key}: [name]")


def _one_of(document: Document, path: Path, given: Tree, known: tuple[str, ...]) -> str:
    if not isinstance(given, str) or given not in known:
        hint = near(given, known) if isinstance(given, str) else f"use one of: {', '.join(known)}"
        raise document.mistake(path, f"`{path[-1]}` must be one of {', '.join(known)}", hint=hint)
    return given


def _typed(document: Document, path: Path, given: Tree) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    if not isinstance(given, dict):
        wrong(document, path, "a mapping of names to types", f"write `{path[-1]}: {{recipients: email}}`")
    for name, kind in given.items():
        if not isinstance(kind, str) or not is_type(kind):
            hint = near(kind, (*TYPES, "id:file")) if isinstance(kind, str) else "write `email` or `id:file`"
            raise document.mistake((*path, name), "not a type of values", hint=hint)
    return tuple(given.items())


def _output(document: Document, path: Path) -> Output:
    given = section(document, path, OUTPUT_KEYS, "output: {trust: own}")
    level = {"level": level_at(document, path, given, "level")} if "level" in given else {}
    return Output(
        trust=_one_of(document, (*path, "trust"), given.get("trust", "none"), TRUSTS),
        echo=flag_at(document, (*path, "echo")) if "echo" in given else False,
        fields=_typed(document, (*path, "fields"), given.get("fields")),
        ranks=_ranks(document, (*path, "ranks"), given) if "ranks" in given else (),
        covers=_phrases(document, path, "covers", given),
        makes=_one_of(document, (*path, "makes"), given["makes"], MADE) if "makes" in given else "",
        correspondents=_correspondents(document, (*path, "correspondents"))
        if "correspondents" in given
        else None,
        levels=_levels(document, (*path, "levels"), given["levels"]) if "levels" in given else (),
        **level,
    )


def _levels(document: Document, path: Path, given: Tree) -> tuple[tuple[str, Confidentiality], ...]:
    if not isinstance(given, dict) or not given:
        wrong(document, path, "a mapping of fields to levels", 'write `levels: {"[].iban": secret}`')
    return tuple((name, level_at(document, path, given, name)) for name in given)


_WROTE = '{fields: ["recipients[]"], where: {status: sent}}'


def _correspondents(document: Document, path: Path) -> Correspondents:
    given = section(document, path, CORRESPONDENT_KEYS, _WROTE)
    fields, where = _names(document, path, "fields", given), given.get("where")
    marks = tuple(where.items()) if isinstance(where, dict) else ()
    if not fields or not marks or not all(isinstance(text, str) and text for _, text in marks):
        raise document.mistake(
            path,
            "it is not said which records are your own, or which field has whom you wrote to",
            hint=f"write `{_WROTE}`",
        )
    return Correspondents(fields=fields, where=tuple((name, str(text)) for name, text in marks))


def _ranks(document: Document, path: Path, given: dict[str, Tree]) -> tuple[Rank, ...]:
    ranks = given["ranks"]
    if not isinstance(ranks, dict) or not ranks:
        wrong(
            document,
            path,
            "a mapping of fields",
            "write `ranks: {size: {most: [largest], least: [smallest]}}`",
        )
    found: list[Rank] = []
    for name in ranks:
        ends = section(document, (*path, name), RANK_KEYS, "{most: [largest], least: [smallest]}")
        most = _phrases(document, (*path, name), "most", ends)
        least = _phrases(document, (*path, name), "least", ends)
        if not (most or least) or set(most) & set(least):
            raise document.mistake(
                (*path, name),
                "no word chooses one of its ends alone",
                hint="write `{most: [largest], least: [smallest]}`",
            )
        found.append(Rank(field=name, most=most, least=least))
    return tuple(found)


def _delegations(document: Document, tools: dict[str, ToolRole]) -> tuple[Delegation, ...]:
    found: list[Delegation] = []
    for path, entry in entries(document, ("delegate",), DELEGATE_KEYS, _DELEGATE):
        for key in ("tool", "source", "roles"):
            needs(document, path, entry, key, _DELEGATE)
        tool = text_at(document, (*path, "tool"), _DELEGATE)
        if tool not in tools:
            raise document.mistake(
                (*path, "tool"), f"no tool `{tool}` is declared", hint=near(tool, tools or ["tools"])
            )
        if tools[tool].effect not in ("read", "egress"):
            raise document.mistake(
                (*path, "tool"), f"`{tool}` reads nothing", hint="delegate to a tool whose effect is `read`"
            )
        roles = texts_at(document, (*path, "roles"), entry["roles"], text_at, "roles: [send_money.recipient]")
        for index, role in enumerate(roles):
            _check_role(document, (*path, "roles", index), role, tool, tools)
        bound = texts_at(document, (*path, "with"), entry.get("with"), text_at, "with: [amount]")
        for index, name in enumerate(bound):
            _check_bound(document, (*path, "with", index), name, roles, tools)
        effects = count_at(document, (*path, "effects")) if "effects" in entry else 1
        if effects > MAX_EFFECTS:
            raise document.mistake(
                (*path, "effects"), f"more than {MAX_EFFECTS} effects", hint="delegate fewer of them"
            )
        source = text_at(document, (*path, "source"), _DELEGATE)
        found.append(Delegation(tool=tool, source=source, roles=roles, bound=bound, effects=effects))
    return tuple(found)


def _check_role(document: Document, path: Path, role: str, source: str, tools: dict[str, ToolRole]) -> None:
    name, _, argument = role.rpartition(".")
    tool = tools.get(name)
    # Of what is carried the addresses and links in it need a source.
    carried = dict.fromkeys(tool.carries, "|".join(SHAPED)) if tool else {}
    declared = {**carried, **dict((*tool.steers, *tool.acts))} if tool else {}
    if argument not in declared:
        known = [f"{each.name}.{key}" for each in tools.values() for key, _ in (*each.steers, *each.acts)]
        raise document.mistake(path, f"no argument `{role}` steers", hint=near(role, known or ["tools"]))
    kind = declared[argument]
    if not any(part in SHAPED for part in kind.split("|")):
        raise document.mistake(
            path,
            f"of a `{kind}` no text says how many it holds",
            hint=f"delegate arguments of one of the types {', '.join(SHAPED)}",
        )
    if name == source:
        raise document.mistake(
            path, "a source cannot choose what is read as that source", hint="the task has to name the source"
        )


def _check_bound(
    document: Document, path: Path, name: str, roles: tuple[str, ...], tools: dict[str, ToolRole]
) -> None:
    for role in roles:
        tool = tools[role.rpartition(".")[0]]
        known = (*dict((*tool.steers, *tool.acts)), *tool.carries)
        if name not in known:
            raise document.mistake(path, f"`{tool.name}` has no argument `{name}`", hint=near(name, known))


def _check_circles(
    document: Document, delegations: tuple[Delegation, ...], base: tuple[Delegation, ...]
) -> None:
    """Refuse sources that choose each other: nothing outside them would vouch for any."""
    leads = {each.tool: set[str]() for each in (*base, *delegations)}
    for each in (*base, *delegations):
        leads[each.tool] |= {role.rpartition(".")[0] for role in each.roles}
    for index, each in enumerate(delegations):
        seen: set[str] = set()
        ahead = [each.tool]
        while ahead:
            for tool in leads.get(ahead.pop(), ()):
                if tool == each.tool:
                    raise circular(document, index)
                if tool not in seen:
                    seen.add(tool)
                    ahead.append(tool)


def circular(document: Document, index: int) -> PolicyError:
    """Return the mistake that a delegation leads back to itself."""
    return document.mistake(
        ("delegate", index),
        "the delegation is circular: what is read here would choose what is read here",
        hint="name the first source in the task, and delegate from there alone",
    )
