"""Toolkit files become `Toolkit`s, or a mistake with its line and its fix; definitions are pinned by digest."""

import re
from functools import lru_cache

from interlock.manifest.canonical import canonical, digest, parse
from interlock.manifest.document import Document, Path, Tree, near, read_document
from interlock.manifest.needs import needs_tree, read_needs
from interlock.manifest.schemas import check_schema
from interlock.manifest.typed import TYPES, is_type
from interlock.model.errors import InputError
from interlock.model.toolkits import Disclosure, Needs, Toolkit, ToolSpec

TOOLKIT, RUNTIME = "toolkit/1", "runtime/1"
"""What the key `interlock` of a file says; a runtime has no tools."""
KEYS = ("interlock", "name", "version", "description", "source", "licence", "needs", "tools")
TOOL_KEYS = (
    "description",
    "parameters",
    "returns",
    "effect",
    "steers",
    "carries",
    "output",
    "discloses",
    "needs",
)
DISCLOSURE_KEYS = ("recipient", "data", "subject", "purpose")
EFFECTS = ("read", "egress", "write", "send", "destroy", "credential")
"""As of tools in a policy."""
ANY_LEAF = "*"
"""In `output`: every leaf of the answer."""
MAX_TOOLS = 1000
_DESCRIPTION_CHARACTERS = 4000
_EXAMPLE = "interlock: toolkit/1"
_TOOL = "send_email: {description: …, effect: send, steers: {to: email}, carries: [body]}"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}"


def load_toolkit(text: str, filename: str) -> Toolkit:
    """Read a toolkit's file, YAML or JSON. Raises: InputError."""
    document = read_document(text, filename=filename)
    given = document.section((), KEYS, _EXAMPLE)
    kind = given.get("interlock")
    if kind not in (TOOLKIT, RUNTIME):
        raise document.mistake(
            ("interlock",) if "interlock" in given else (),
            "it does not say that it is a toolkit",
            f"begin with `interlock: {TOOLKIT}`",
        )
    for key in ("name", "version", "description"):
        if key not in given:
            raise document.mistake((), f"it has no `{key}`", f"add a line `{key}: …`")
    name = document.text(("name",), "name: gmail")
    if re.fullmatch(_NAME, name) is None:
        raise document.mistake(("name",), "no toolkit's name", "use letters, digits, `-`, `_` and `.`")
    tools = _tools(document, name) if "tools" in given else ()
    if bool(tools) != (kind == TOOLKIT):
        raise document.mistake(
            ("tools",) if "tools" in given else (),
            "a toolkit has tools, and a runtime has none",
            f"write `interlock: {RUNTIME if not tools else TOOLKIT}`, or `tools:` with `{_TOOL}`",
        )
    version = given["version"]
    return Toolkit(
        name=name,
        version=str(version)
        if isinstance(version, int | float) and not isinstance(version, bool)
        else document.text(("version",), 'version: "1"'),
        description=_description(document, ("description",)),
        tools=tools,
        needs=read_needs(document, ("needs",)) if given.get("needs") is not None else Needs(),
        digest=digest(_clean(document, given)),
    )


def tool_tree(spec: ToolSpec) -> dict[str, Tree]:
    """Return all that is said of a tool, as it is pinned: with its name, and without parts that are empty."""
    tree: dict[str, Tree] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": parse(spec.parameters),
        "effect": spec.effect,
    }
    if spec.returns != "{}":
        tree["returns"] = parse(spec.returns)
    if spec.steers:
        tree["steers"] = dict(spec.steers)
    if spec.carries:
        tree["carries"] = list(spec.carries)
    if spec.output:
        tree["output"] = dict(spec.output)
    if spec.discloses is not None:
        told = spec.discloses
        tree["discloses"] = {
            key: list(names)
            for key, names in (
                ("recipient", told.recipient),
                ("data", told.data),
                ("subject", told.subject),
                ("purpose", told.purpose),
            )
            if names
        }
    if needs := needs_tree(spec.needs):
        tree["needs"] = needs
    return tree


@lru_cache(maxsize=1024)
def definition_of(spec: ToolSpec) -> str:
    """Return the text that is pinned of a tool: canonical JSON."""
    return canonical(tool_tree(spec))


def toolkit_tree(toolkit: Toolkit) -> dict[str, Tree]:
    """Return a toolkit as its file holds it."""
    tools = {}
    for spec in toolkit.tools:
        tree = tool_tree(spec)
        tools[tree.pop("name")] = tree
    made: dict[str, Tree] = {
        "interlock": TOOLKIT if toolkit.tools else RUNTIME,
        "name": toolkit.name,
        "version": toolkit.version,
        "description": toolkit.description,
    }
    if needs := needs_tree(toolkit.needs):
        made["needs"] = needs
    return {**made, "tools": tools} if tools else made


def toolkit_of(
    name: str,
    tools: tuple[ToolSpec, ...],
    *,
    needs: Needs | None = None,
    description: str = "",
    version: str = "1",
) -> Toolkit:
    """Make a toolkit of tools that a program has, with its digest."""
    made = Toolkit(
        name=name, version=version, description=description or name, tools=tools, needs=needs or Needs()
    )
    return Toolkit(
        name=name,
        version=version,
        description=made.description,
        tools=tools,
        needs=made.needs,
        digest=digest(toolkit_tree(made)),
    )


def _clean(document: Document, given: dict[str, Tree]) -> dict[str, Tree]:
    try:
        canonical(given)
    except InputError as error:
        raise document.mistake((), error.message, error.hint) from error
    return given


def _description(document: Document, path: Path) -> str:
    text = document.text(path, "description: …", empty=True)
    if len(text) > _DESCRIPTION_CHARACTERS:
        raise document.mistake(
            path, f"a description of more than {_DESCRIPTION_CHARACTERS} characters", "shorten it"
        )
    return text.strip()


def _tools(document: Document, toolkit: str) -> tuple[ToolSpec, ...]:
    given = document.at(("tools",))
    if not isinstance(given, dict) or not given:
        raise document.mistake(("tools",), "it must map names to tools", f"write `{_TOOL}` below it")
    if len(given) > MAX_TOOLS:
        raise document.mistake(("tools",), f"`{toolkit}` has more than {MAX_TOOLS} tools", "split it")
    return tuple(_tool(document, ("tools", name), name) for name in given)


def _tool(document: Document, path: Path, name: str) -> ToolSpec:
    if re.fullmatch(_NAME, name) is None:
        raise document.mistake(path, "no tool's name", "use letters, digits, `-`, `_`, `:` and `.`")
    given = document.section(path, TOOL_KEYS, _TOOL)
    effect = given.get("effect", "write")
    if effect not in EFFECTS:
        raise document.mistake((*path, "effect"), f"no effect `{effect}`", near(str(effect), EFFECTS))
    for key in ("parameters", "returns"):
        if key in given:
            check_schema(document, (*path, key))
    known = _parameters_of(given.get("parameters", {}))
    steers = _typed(document, (*path, "steers"), known) if "steers" in given else ()
    carries = _parameters(document, (*path, "carries"), known) if "carries" in given else ()
    both = next((one for one in carries if one in dict(steers)), "")
    if both:
        raise document.mistake(
            (*path, "carries"), f"`{both}` steers and is carried", "keep it in one of the two lists"
        )
    return ToolSpec(
        name=name,
        description=_description(document, (*path, "description")) if "description" in given else "",
        parameters=document.json((*path, "parameters")) if "parameters" in given else "{}",
        returns=document.json((*path, "returns")) if "returns" in given else "{}",
        effect=effect,
        steers=steers,
        carries=carries,
        output=_typed(document, (*path, "output"), None) if "output" in given else (),
        discloses=_disclosure(document, (*path, "discloses"), known) if "discloses" in given else None,
        needs=read_needs(document, (*path, "needs")) if given.get("needs") is not None else Needs(),
    )


def _parameters_of(schema: Tree) -> tuple[str, ...]:
    properties = schema.get("properties", {})
    return tuple(properties)


def _named(document: Document, path: Path, name: str, known: tuple[str, ...]) -> str:
    # `participants[]` and `file.id` lie in a parameter.
    if re.split(r"[.\[]", name, maxsplit=1)[0] not in known:
        raise document.mistake(
            path, f"the tool has no parameter `{name}`", near(name, known or ("parameters",))
        )
    return name


def _parameters(document: Document, path: Path, known: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_named(document, path, name, known) for name in document.texts(path, "carries: [body]"))


def _typed(document: Document, path: Path, known: tuple[str, ...] | None) -> tuple[tuple[str, str], ...]:
    given = document.at(path)
    if not isinstance(given, dict):
        raise document.mistake(path, "it must map names to types", f"write `{path[-1]}: {{to: email}}`")
    for name, kind in given.items():
        if known is not None:
            _named(document, (*path, name), name, known)
        if not isinstance(kind, str) or not is_type(kind):
            raise document.mistake((*path, name), "no type of values", near(str(kind), (*TYPES, "id:file")))
    return tuple(sorted(given.items()))


def _disclosure(document: Document, path: Path, known: tuple[str, ...]) -> Disclosure:
    given = document.section(path, DISCLOSURE_KEYS, "discloses: {recipient: [to], data: [body]}")
    parts = {key: _parameters(document, (*path, key), known) for key in given}
    if not parts.get("recipient") or not parts.get("data"):
        raise document.mistake(
            path, "it is not said who gets what", "write `discloses: {recipient: [to], data: [body]}`"
        )
    return Disclosure(**parts)
