"""The history and the proposals without a byte of what was read: names, types, sizes and numbers alone. Pure.

A value is written out only where trusted words hold it whole; a rule that vouches for it is not enough, since rules
vouch for values that others wrote (a new file's path, a field of an answer, the end of a URL). Of what stays hidden its
type, its size and where it was read are told, what of it the task names, and a number: the same value, the same number.
Source: AgentVisor §4.2, the sanitised history; typed references and their bounds, ours.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from string import ascii_letters

from interlock.model.effects import Effect
from interlock.model.records import dataclass
from interlock.oracle.context import STATUSES, Argument, Context, Origin, Step
from interlock.oracle.seeing.quoting import plain
from interlock.oracle.visor.references import NAME, PLACE, VALUE, References, type_words
from interlock.oracle.visor.trusted import TrustedWords

_TOOL, _ANSWER = "tool:", ".answer"
_OPERATIONS = frozenset(
    [
        *(
            f"file.{kind}"
            for kind in ("read", "create", "modify", "delete", "rename", "replace", "attributes")
        ),
        *(f"net.{kind}" for kind in ("read", "write", "model", "stream", "message", "connect")),
        *(f"tool.{kind}" for kind in ("read", "egress", "write", "send", "destroy", "credential")),
    ]
)
_ROLES = frozenset(
    ["host", "url", "path", "source", "link-target", "link", "body", "content", "command", "tool", "asked"]
)
_METHODS = frozenset(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE"])
_ENDINGS = frozenset(
    [
        "c",
        "cfg",
        "conf",
        "cpp",
        "css",
        "csv",
        "go",
        "h",
        "html",
        "ini",
        "java",
        "js",
        "json",
        "lock",
        "md",
        "pem",
        "pdf",
        "png",
        "py",
        "rs",
        "sh",
        "sql",
        "toml",
        "ts",
        "txt",
        "xml",
        "yaml",
        "yml",
    ]
)
_ROOTS = frozenset(["workspace", "home", "state", "folder", "git"])
_SIGNLESS = frozenset(["iban", "phone", "name", "text", "choice"])
"""Types of values that case, spaces and signs do not make another one: a dot in an address or an amount does."""
_FACET = re.compile(r"[a-z][a-z-]{0,40}")
_SPLIT = re.compile(r"[.\[]")
_SHORTEST_PART = 3
MAX_ARGUMENTS = 24
"""Of a step of the history; a proposal has all of its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitised:
    """What the visor is shown beside the instruction and the task.

    Takes: `history`, one line a step, in order; `proposed`, by effect id, a line for each effect that is asked about.
    Holds: other texts at the places that are not trusted, of the same types, sizes and equalities, give the same.
    """

    history: tuple[str, ...]
    proposed: Mapping[str, str] = field(default_factory=dict)


def sanitise(context: Context, effects: Mapping[str, Effect]) -> Sanitised:
    """Return the lines of a context.

    Takes: `effects`, by id, those that are asked about, for what a step does not tell.
    """
    writing = _Lines(TrustedWords.of(context))
    history = writing.history([step for step in context.steps if not _is_asked(step, context)])
    proposed = {
        effect_id: writing.proposal(context.proposed[effect_id], effect)
        for effect_id, effect in effects.items()
        if effect_id in context.proposed
    }
    return Sanitised(history=history, proposed=proposed)


def _is_asked(step: Step, context: Context) -> bool:
    return step.way == "out" and step.effect_id in context.proposed


class _Lines:
    """Writes lines of one question; its numbers run through all of them."""

    def __init__(self, trusted: TrustedWords) -> None:
        self._trusted = trusted
        self._references = References()

    def history(self, steps: list[Step]) -> tuple[str, ...]:
        lines: list[str] = []
        files: list[str] = []
        for step in steps:
            if step.action == "file.read" and step.way == "in":
                name = self._place(step.object)
                files += [name] if name not in files else []
                continue
            lines += self._reads(files)
            files = []
            lines.append(self._step(step))
        return (*lines, *self._reads(files))

    @staticmethod
    def _reads(files: list[str]) -> list[str]:
        rows = [files[at : at + MAX_ARGUMENTS] for at in range(0, len(files), MAX_ARGUMENTS)]
        return [f"file.read of {', '.join(row)}: read" for row in rows]

    def _step(self, step: Step) -> str:
        status = step.status if step.status in STATUSES else "unknown"
        return f"{self._action(step)}{self._arguments(step, MAX_ARGUMENTS)}: {status}"

    def proposal(self, step: Step, effect: Effect) -> str:
        notes = [*_of_effect(effect)]
        # Whole: what was left out here could be what the effect is about.
        return f"{self._action(step)}{self._arguments(step)}{''.join(f'; {note}' for note in notes)}"

    def _action(self, step: Step) -> str:
        action = step.action
        before = ""
        if step.way == "in" and action.endswith(_ANSWER):
            action, before = action.removesuffix(_ANSWER), "answer of "
        if step.object.startswith(_TOOL):
            return before + self._tool(step.object.removeprefix(_TOOL))
        named = action if action in _OPERATIONS else "a request" if before else "another action"
        return f"{before}{named} at {self._place(step.object)}"

    def _tool(self, name: str) -> str:
        if name in self._trusted.names:
            return name
        bare = name.rpartition("/")[2]
        if bare in self._trusted.names:
            server = self._references.of(NAME, name.removesuffix(bare))
            return f"{bare} (of a tool server, {server})"
        return f"a tool that the operator does not declare ({self._references.of(NAME, name)})"

    def _arguments(self, step: Step, at_most: int | None = None) -> str:
        if not step.arguments:
            return ""
        shown = [self._argument(step, one) for one in step.arguments[:at_most]]
        more = len(step.arguments) - len(shown)
        return f" ({'; '.join(shown)}{f'; and {more} more values' if more else ''})"

    def _argument(self, step: Step, argument: Argument) -> str:
        mark = "" if argument.steers else "content "
        return f"{mark}{self._role(step, argument.role)} = {self._value(argument)}"

    def _role(self, step: Step, role: str) -> str:
        names = self._trusted.names if step.object.startswith(_TOOL) else _ROLES
        if role in names or role in ("tool", "asked"):
            return role
        head = _SPLIT.split(role, maxsplit=1)[0]
        number = self._references.of(NAME, role)
        return f"{head} (part, {number})" if head in names else f"argument ({number})"

    def _value(self, argument: Argument) -> str:
        value, trusted = argument.value, self._trusted
        if not value:
            return "(empty)"
        if who := trusted.holder(value):
            return f"{_literal(value)}, as {who} has it"
        facts = [f"{type_words(argument.kind, trusted.names)} of {len(value)} characters"]
        facts.append(str(self._references.of(VALUE, value)))
        facts.append(self._source(argument.origin))
        facts += self._parts(argument)
        return ", ".join(facts)

    def _source(self, origin: Origin) -> str:
        vouched = ", vouched for by the policy" if origin.rule else ""
        if origin.kind == "task":
            return f"formed from the task's words{vouched}"
        if not origin.kind:
            return f"of no known source{vouched}" if not origin.rule else "vouched for by the policy"
        if origin.kind == "tool":
            return f"read in an answer of {self._tool(origin.place.removeprefix(_TOOL))}{vouched}"
        return f"read at {self._place(origin.place)}{vouched}"

    def _parts(self, argument: Argument) -> list[str]:
        """Say what of a hidden value trusted words hold: a domain, the beginning of a URL, the parts of a path."""
        value, kinds, trusted = argument.value, argument.kind.split("|"), self._trusted
        if _SIGNLESS.issuperset(kinds) and trusted.holds_form(value):
            return ["known but for case, spaces and signs"]
        near = (
            ["nearly, but not quite, a known value"]
            if _is_exact(kinds) and trusted.nearly_holds(value)
            else []
        )
        if "email" in kinds and "@" in value:
            domain = value.rpartition("@")[2]
            return [
                *near,
                *(
                    [f"at the known domain {_literal(domain)}"]
                    if trusted.holds_part(domain, before="@")
                    else []
                ),
            ]
        if "url" in kinds or "host" in kinds:
            same = _usual(value)
            if same != value and trusted.holds(same):
                return [f"another writing of the known {_literal(same)}"]
            return [*near, *self._beginning(value)]
        return self._segments(value) if "path" in kinds else near

    def _beginning(self, url: str) -> list[str]:
        found = self._longest(url)
        if found:
            return [f"begins with the known {_literal(found)}"]
        host = _host(url)
        known = self._trusted.holds_part(f"://{host}", before=ascii_letters, after="/:?#")
        return (
            [f"on the known host {_literal(host)}"] if host and (known or self._trusted.holds(host)) else []
        )

    def _longest(self, url: str) -> str:
        cut = url.rfind("/")
        while cut > url.find("://") + 2 > 1:
            if self._trusted.holds_part(url[:cut], after="/?#"):
                return url[:cut]
            cut = url.rfind("/", 0, cut)
        return ""

    def _segments(self, path: str) -> list[str]:
        parts = dict.fromkeys(part for part in path.split("/") if len(part) >= _SHORTEST_PART)
        held = [part for part in parts if self._trusted.holds_part(part, before="/", after="/")][:4]
        return [f"with the known part {_literal(part)}" for part in held]

    def _place(self, place: str) -> str:
        """Return a place by its name where trusted words have it, else by its number and its sort."""
        root, colon, path = place.partition(":")
        path = path if colon and "://" not in place else place
        if self._trusted.holds(path) or self._trusted.holds(place):
            where = root.partition(":")[0]
            return _literal(path) + (f" ({where})" if where in _ROOTS - {"workspace"} else "")
        number = self._references.of(PLACE, place)
        if "://" in place:
            return ", ".join([f"a network {number}", *self._beginning(place)])
        sort = [root.partition(":")[0]] if root in _ROOTS else []
        ending = path.rpartition(".")[2].lower()
        sort += [f"ends in .{ending}"] if "." in path and ending in _ENDINGS else []
        return ", ".join(
            [f"a file {number}" + (f" ({', '.join(sort)})" if sort else ""), *self._segments(path)]
        )


def _of_effect(effect: Effect) -> list[str]:
    """Return what is known of an effect beside its values; closed words and numbers alone."""
    notes: list[str] = []
    request, change = effect.request, effect.change
    if effect.tool is not None and effect.operation in _OPERATIONS:
        notes.append(f"of the sort {effect.operation}")
    if request is not None:
        method = request.method if request.method in _METHODS else "of another name"
        notes.append(f"method {method}, body of {max(request.body_size_bytes, 0)} bytes")
    if change is not None:
        size = change.after.size_bytes if change.after is not None else 0
        notes.append(
            f"{size} bytes afterwards" if change.after is not None else "nothing is there afterwards"
        )
        notes += [f"hazard {hazard.value}" for hazard in change.hazards]
    kinds = dict.fromkeys(one.kind for one in effect.facets if _FACET.fullmatch(one.kind))
    notes += [f"special: {kind}" for kind in kinds]
    if effect.carried > effect.clearance:
        carried, clearance = effect.carried.name.lower(), effect.clearance.name.lower()
        notes.append(f"carries data of the level {carried}, where {clearance} may go")
    return notes


def _is_exact(kinds: list[str]) -> bool:
    """Say whether a character more or less makes it another one."""
    return not {"email", "url", "host", "iban", "phone"}.isdisjoint(kinds)


def _usual(url: str) -> str:
    """Return a URL in its usual writing: scheme and host in lower case, without the scheme's own port."""
    scheme, colon, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    scheme, host = scheme.lower(), host.lower()
    port = {"https": ":443", "http": ":80"}.get(scheme, ":")
    return f"{scheme}{colon}{host.removesuffix(port)}{slash}{path}" if colon else url


def _host(url: str) -> str:
    rest = url.partition("://")[2] or url
    return rest.partition("/")[0].rpartition("@")[2].partition(":")[0]


def _literal(text: str) -> str:
    return plain('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
