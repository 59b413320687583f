"""The policy as data: what a policy file declares."""

from dataclasses import field
from typing import TYPE_CHECKING

from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import GIT_PREFIX, HOME, WORKSPACE, Place
from interlock.model.records import dataclass
from interlock.policy.globs import matcher
from interlock.policy.lens import Lens
from interlock.policy.mcp import McpServer
from interlock.policy.network import HostRules, Network, undeclared
from interlock.policy.operator import ONE_CORRECTION, Operator
from interlock.policy.tools.roles import ToolRoles

if TYPE_CHECKING:
    from interlock.policy.lenses.lens import RequestLens
    from interlock.policy.regulation import Regulation

EVERY_ROOT = "*"
CONTENT = ("keys", "cards", "accounts", "ids")
"""Kinds of content that are looked for: the first by ourselves, the others with the extra `pii`."""
STATE_PREFIX = "state:"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGlob:
    """Files of one root, or of every root (`*`).

    Takes: `fields`, dotted names of the leaves of a structured file that alone count; empty for the whole text.
    """

    root: str
    glob: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """Files of a root whose bytes the host's repository holds at a reference.

    Takes: `ref`, `""` for HEAD; `author`, a glob over the mail address of who changed the file last in what it names,
    `""` for anyone.
    """

    root: str
    glob: str
    ref: str = ""
    author: str = ""

    def covers(self, place: Place) -> bool:
        """Return whether this may say something of a place."""
        return self.root in (EVERY_ROOT, place.root) and bool(
            matcher((self.glob,), wide=False).fullmatch(place.path)
        )

    def vouches(self, read: FileRead) -> bool:
        """Return whether a read brought such bytes."""
        if read.staged or self.ref not in read.tracked or not self.covers(read.place):
            return False
        if not self.author:
            return True
        author = read.author
        if self.ref:
            author = dict(zip(read.tracked, read.authors, strict=False)).get(self.ref, "")
        return bool(author and matcher((self.author.lower(),), wide=False).fullmatch(author.lower()))


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivePlace:
    """Places whose content has a level; `exceptions` takes some out.

    Takes: `content`, a kind of content (`CONTENT`) that alone has the level there, `""` for all that lies there;
    `fields`, dotted names of the leaves of a structured file that alone have it, empty for the whole.
    """

    root: str
    glob: str
    level: Confidentiality
    exceptions: tuple[str, ...] = ()
    content: str = ""
    fields: tuple[str, ...] = ()

    def covers(self, place: Place) -> bool:
        """Return whether a place is one of these."""
        return (
            self.root in (EVERY_ROOT, place.root)
            and matcher((self.glob,), wide=True).fullmatch(place.path) is not None
            and not (self.exceptions and matcher(self.exceptions, wide=False).fullmatch(place.path))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """Someone who may receive data, and up to which level."""

    name: str
    clearance: Confidentiality


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment of the command: names or globs passed on, and values set."""

    passed: tuple[str, ...] = ()
    set: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxChoices:
    """What the operator chose for the boundary.

    Takes: `nested`, whether the agent may start a sandbox of its own; `hide`, more absolute or `~/` paths
    that are not visible inside; `expose`, such paths that are visible though hidden by default.
    """

    nested: bool = False
    hide: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits; 0 where the policy sets none."""

    processes: int = 0
    open_files: int = 0
    file_size_bytes: int = 0
    memory_bytes: int = 0
    tmp_size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All that an operator declared, preset included.

    Takes: `text`, the effective file, which loads to this policy again; `digest`, SHA-256 of `text` in hex;
    `preset`, its name with version, `""` for none; `cedar`, every rule, preset's first, each with an `@id`;
    `requests_first`, whether a commit sends the parked requests before it merges the files.
    Holds: two policies with the same digest are equal but for `name`.
    """

    name: str
    text: str
    digest: str
    preset: str
    task_trusted: bool
    trusted: tuple[FileGlob, ...]
    untrusted: tuple[FileGlob, ...]
    sensitive: tuple[SensitivePlace, ...]
    parties: tuple[Party, ...]
    environment: Environment
    state_folders: tuple[str, ...]
    sandbox: SandboxChoices
    limits: Limits
    cedar: str
    network: Network = field(default_factory=undeclared)
    tools: ToolRoles = field(default_factory=ToolRoles)
    requests_first: bool = False
    profile: str = ""
    """The name of the agent's profile that it holds, `""` for none."""
    home: tuple[str, ...] = ()
    """Globs relative to HOME: what of the layer over HOME is staged; the rest of it is thrown away."""
    forget: tuple[str, ...] = ()
    """Globs relative to HOME: what of the state folders and of `home` is thrown away as well."""
    folders: tuple[str, ...] = ()
    """More folders, absolute or below `~/`, that are staged like the workspace."""
    git_trusted: tuple[GitSource, ...] = ()
    sign: tuple[str, ...] = ()
    """Namespaces of SSHSIG (`git`) in which the user's ssh-agent may sign."""
    operator: Operator = field(default_factory=Operator)
    corrections: int = ONE_CORRECTION
    """How often an action that an oracle refused by S, T or I may be mended and is asked about again."""
    lens: Lens = field(default_factory=Lens)
    mcp: tuple[McpServer, ...] = ()
    lenses: "tuple[RequestLens, ...]" = ()
    own_home: tuple[str, ...] = ()
    """Of `home`, what the agent's profile names: the agent program's own."""
    own_hosts: HostRules = field(default_factory=HostRules)
    """Of the hosts, those that the agent's profile names."""
    regulation: "Regulation | None" = None
    """Who may be told what about whom; None where nothing is regulated but by a manifest."""

    def trusts(self, place: Place) -> bool:
        """Return whether what is read at this place vouches for values."""
        whole = tuple([glob for glob in self.trusted if not glob.fields])
        if not _covers(whole, place, wide=False):
            return False
        return not _covers(self.untrusted, place, wide=True)

    def fields_at(self, place: Place) -> tuple[str, ...]:
        """Return the fields of a structured file that alone vouch for values, of one that does not do so whole."""
        named = [glob for glob in self.trusted if glob.fields and _covers((glob,), place, wide=False)]
        if not named or _covers(self.untrusted, place, wide=True):
            return ()
        return tuple(dict.fromkeys(name for glob in named for name in glob.fields))

    def trusts_read(self, read: FileRead) -> bool:
        """Return whether what a read brought vouches for values, by its place or by the commit that holds it."""
        if self.trusts(read.place):
            return True
        if not any(source.vouches(read) for source in self.git_trusted):
            return False
        return not _covers(self.untrusted, read.place, wide=True)

    def may_trust(self, place: Place) -> bool:
        """Return whether a read of this place may vouch for values."""
        if self.trusts(place) or self.fields_at(place):
            return True
        return any(source.covers(place) for source in self.git_trusted)

    def forgets(self, place: Place) -> bool:
        """Return whether a change at this place is thrown away unseen: an agent makes it anew at each start."""
        if not self.forget:
            return False
        if place.root.startswith(STATE_PREFIX):
            path = f"{place.root.removeprefix(STATE_PREFIX)}/{place.path}"
        elif place.root == HOME:
            path = place.path
        else:
            return False
        return matcher(self.forget, wide=False).fullmatch(path) is not None

    def level_of(self, place: Place) -> Confidentiality:
        """Return the highest level of what lies at this place, in a field too; PUBLIC where nothing is declared."""
        return max((declared.level for declared in self._levels_at(place)), default=Confidentiality.PUBLIC)

    def _levels_at(self, place: Place) -> list[SensitivePlace]:
        # One pattern over all of them tells at once that a place is none, which most are.
        globs = tuple([declared.glob for declared in self.sensitive if not declared.content])
        if matcher(globs, wide=True).fullmatch(place.path) is None:
            return []
        return [declared for declared in self.sensitive if not declared.content and declared.covers(place)]

    def whole_level_at(self, place: Place) -> Confidentiality:
        """Return the level of all that lies at this place."""
        whole = [declared.level for declared in self._levels_at(place) if not declared.fields]
        return max(whole, default=Confidentiality.PUBLIC)

    def whole_level_of(self, read: FileRead) -> Confidentiality:
        """Return the level of all that a read brought: of its place, and of what it was found to hold."""
        level = self.whole_level_at(read.place)
        for declared in self.sensitive if read.detected else ():
            if declared.level > level and declared.content in read.detected and declared.covers(read.place):
                level = declared.level
        return level

    def sensitive_fields_at(self, place: Place) -> tuple[tuple[Confidentiality, tuple[str, ...]], ...]:
        """Return the fields of a structured file that have a level of their own, each with it."""
        # Most policies have none, and each read asks.
        if not any(declared.fields for declared in self.sensitive):
            return ()
        return tuple([(one.level, one.fields) for one in self._levels_at(place) if one.fields])

    def level_of_read(self, read: FileRead) -> Confidentiality:
        """Return the highest level of what a read brought: of all of it, or of the fields that it has."""
        level = self.whole_level_of(read)
        if declared := self.sensitive_fields_at(read.place):
            from interlock.policy.sensitive_fields import parts_of

            level = max((part.level for part in parts_of(read, level, declared)), default=level)
        return level

    @property
    def detects(self) -> tuple[str, ...]:
        """Return the kinds of content that are looked for."""
        return tuple(dict.fromkeys(declared.content for declared in self.sensitive if declared.content))

    def detected_at(self, place: Place) -> tuple[str, ...]:
        """Return the kinds of content that are looked for at a place."""
        return tuple(
            dict.fromkeys(one.content for one in self.sensitive if one.content and one.covers(place))
        )

    def declares(self, place: Place) -> bool:
        """Return whether provenance depends on what is read at this place."""
        if self.regulation is not None and self.regulation.covers(place):
            return True
        return self.level_of(place) > Confidentiality.PUBLIC or self.may_trust(place)

    @property
    def highest_level(self) -> Confidentiality:
        """Return the highest level that any place has."""
        return max((declared.level for declared in self.sensitive), default=Confidentiality.PUBLIC)

    def clearance_of(self, party: str) -> Confidentiality | None:
        """Return what a party may hold; None for a party that the policy does not name."""
        folded = party.casefold()
        return next((known.clearance for known in self.parties if known.name.casefold() == folded), None)

    @property
    def state_roots(self) -> tuple[tuple[str, str], ...]:
        """Return the roots of the state folders: name and folder, `state:.claude` and `~/.claude`."""
        return tuple(
            (STATE_PREFIX + folder.removeprefix("~").strip("/"), folder) for folder in self.state_folders
        )


def _covers(globs: tuple[FileGlob, ...], place: Place, *, wide: bool) -> bool:
    here = tuple(glob.glob for glob in globs if glob.root in (EVERY_ROOT, place.root))
    return bool(here) and matcher(here, wide=wide).fullmatch(place.path) is not None


def full_path(place: Place) -> str:
    """Write a place as the user would: below the workspace or HOME; a repository's folder is a `.git`."""
    if place.root.startswith(GIT_PREFIX):
        return f".git/{place.path}" if place.path else ".git"
    if place.root == WORKSPACE or not place.root.startswith(STATE_PREFIX):
        return place.path
    folder = place.root.removeprefix(STATE_PREFIX)
    return f"{folder}/{place.path}" if place.path else folder
