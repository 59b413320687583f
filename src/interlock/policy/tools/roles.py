"""What an operator declares of tools: effect, steering arguments, trust of the answer's fields, and delegation."""

from dataclasses import field

from interlock.model.labels import Confidentiality
from interlock.model.records import dataclass
from interlock.model.toolkits import Disclosure

READ = "read"
EGRESS = "egress"
WRITE = "write"
SEND = "send"
EFFECTS = (READ, EGRESS, WRITE, SEND, "destroy", "credential")
NONE = "none"
OWN = "own"
DIRECTORY = "directory"
TRUSTS = (NONE, OWN, DIRECTORY, "task")
TYPES = (
    "text",
    "name",
    "filename",
    "email",
    "url",
    "host",
    "path",
    "iban",
    "phone",
    "amount",
    "date",
    "choice",
    "flag",
)
ID_PREFIX = "id:"
OPERATION_PREFIX = "tool."
OBJECT_PREFIX = "tool:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A field by which a task may choose a record. Takes: `most` and `least`, the words that choose its two ends."""

    field: str
    most: tuple[str, ...] = ()
    least: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Correspondents:
    """Whom the user wrote to. Takes: `fields`, which hold their addresses; `where`, fields with the text by which a
    service marks a record as the user's own."""

    fields: tuple[str, ...]
    where: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a tool's answer is worth.

    Takes: `trust`, one of `TRUSTS`; `echo`, whether the answer repeats what the call said; `fields`, dotted names of
    leaves (`id_`, `participants[]`) with the type as which they count; `ranks`, fields whose extreme a task may ask
    for; `covers`, nouns for what it lists, so that a task may ask for all of them; `makes`, the type of what the answer
    names in quotes as made by the call; `correspondents`, whom the user wrote to; `level`, that of what it answers;
    `levels`, dotted names of leaves with a level of their own.
    """

    trust: str = NONE
    echo: bool = False
    fields: tuple[tuple[str, str], ...] = ()
    ranks: tuple[Rank, ...] = ()
    covers: tuple[str, ...] = ()
    makes: str = ""
    correspondents: Correspondents | None = None
    level: Confidentiality = Confidentiality.PUBLIC
    levels: tuple[tuple[str, Confidentiality], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRole:
    """One tool, as its operator reads it.

    Takes: `effect`, one of `EFFECTS`; `internal_without`, arguments that, all empty, make it a `write`; `steers` and
    `acts`, arguments with the types of their values; `carries`, arguments that are data; `parks`, whether the agent can
    go on without its answer; `asks`, phrases by which a task asks for it; `follows`, tools whose released call it only
    completes; `inert`, whether it makes something empty of the user's own; `chooses`, arguments for which the agent may
    choose among the user's own things; `links`, whether it may open the links of a site that the task names;
    `clearance`, what may be given to it; `discloses`, which of its arguments say who is told what, None where that is
    not declared.
    """

    name: str
    effect: str
    internal_without: tuple[str, ...] = ()
    steers: tuple[tuple[str, str], ...] = ()
    acts: tuple[tuple[str, str], ...] = ()
    carries: tuple[str, ...] = ()
    parks: bool = False
    asks: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    inert: bool = False
    chooses: tuple[str, ...] = ()
    links: bool = False
    output: Output = field(default_factory=Output)
    clearance: Confidentiality = Confidentiality.PUBLIC
    discloses: Disclosure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """A source to which the operator hands over the choice of some values.

    Takes: `tool` and `source`, the reading call and what one of its arguments must be, `*` for whatever the task names;
    `roles`, `TOOL.ARGUMENT`s whose value may come from there; `bound`, arguments whose values must stand there as well;
    `effects`, how many effects it may steer in a run.
    """

    tool: str
    source: str
    roles: tuple[str, ...]
    bound: tuple[str, ...] = ()
    effects: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRoles:
    """The keys `tools` and `delegate` of a policy."""

    tools: tuple[ToolRole, ...] = ()
    delegations: tuple[Delegation, ...] = ()

    def counts(self, name: str) -> bool:
        """Say whether it matters later how often a tool was called: it bounds a delegation, a second step and `all`."""
        bare = name.rpartition("/")[2]
        return (
            any(role.rpartition(".")[0] in (name, bare) for each in self.delegations for role in each.roles)
            or any(
                tool.follows and (tool.name in (name, bare) or {name, bare} & set(tool.follows))
                for tool in self.tools
            )
            or self._once(name)
        )

    def _once(self, name: str) -> bool:
        """Say whether a task may ask for a call of a tool with each of an enumeration: each means once."""
        tool = self.find(name)
        made = tool is not None and tool.effect not in (READ, EGRESS)
        return made and any(each.output.covers for each in self.tools)

    def find(self, name: str) -> ToolRole | None:
        """Return what is declared of a tool, by its name with its server, else by its bare name."""
        bare = name.rpartition("/")[2]
        found = None
        for tool in self.tools:
            if tool.name == name:
                return tool
            if tool.name == bare:
                found = tool
        return found


def is_type(text: str) -> bool:
    """Say whether a text names a value type, or several as `iban|name`."""
    return bool(text) and all(
        part in TYPES or (part.startswith(ID_PREFIX) and part.removeprefix(ID_PREFIX).isidentifier())
        for part in text.split("|")
    )


def type_of(declared: tuple[tuple[str, str], ...], role: str) -> str:
    """Return the declared type of a leaf: of exactly this role, else of what it lies in; `""` for none."""
    here = role
    while True:
        for name, kind in declared:
            if name == here:
                return kind
        if here.endswith("[]"):
            here = here[:-2]
        elif "." in here:
            here = here.rpartition(".")[0]
        else:
            return ""
