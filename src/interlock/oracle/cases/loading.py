"""Reads cases from YAML, with file, line and fix for each mistake (docs/oracles.md has the format)."""

from difflib import get_close_matches
from importlib.resources import files
from typing import NoReturn

import yaml

from interlock.model.errors import InputError
from interlock.model.labels import Confidentiality
from interlock.oracle.cases.case import TASK, Case, GivenValue, ProposedEffect, Read, Sent
from interlock.oracle.context import STATUSES

_SIZE_LIMIT_BYTES = 4 << 20
_EXPECTED = {"release": True, "refuse": False}
_LEVELS = {level.name.lower(): level for level in Confidentiality}
_CASE = (
    "case", "kind", "hard", "why", "task", "system", "task_trusted", "policy", "steps", "proposed",
)  # fmt: skip
_READ = ("in", "object", "text", "trusted")
_SENT = ("out", "object", "values", "status")
_PROPOSED = (
    "id", "action", "object", "values", "carries", "content", "facets", "carried", "clearance", "expect",
)  # fmt: skip
_VALUE = ("name", "type", "value", "from")
_STRING = "tag:yaml.org,2002:str"
_BOOL = "tag:yaml.org,2002:bool"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def shipped_cases() -> tuple[Case, ...]:
    """Return the cases that come with Interlock, file by file."""
    folder = files("interlock.oracle.cases")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".yaml"))
    return _unique(
        [case for name in names for case in read_cases(folder.joinpath(name).read_text("utf-8"), name)]
    )


def load_cases(paths: list[str]) -> tuple[Case, ...]:
    """Return the cases of these files. Raises: InputError, with file, line and fix."""
    return _unique([case for path in paths for case in read_cases(_text(path), path)])


def read_cases(text: str, filename: str) -> list[Case]:
    """Read the text of a file of cases. Raises: InputError, with file, line and fix."""
    root = _compose(text, filename)
    if not isinstance(root, yaml.SequenceNode):
        _fail(filename, root, "not a list of cases", "begin each case with `- case: NAME`")
    return [_Reader(filename).case(node) for node in root.value]


def _unique(cases: list[Case]) -> tuple[Case, ...]:
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise InputError(f"two cases have the name `{case.name}`", hint="rename one of them")
        seen.add(case.name)
    if not cases:
        raise InputError("there is no case in it", hint="leave the file out to try the cases that come along")
    return tuple(cases)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(_SIZE_LIMIT_BYTES + 1)
        if len(raw) > _SIZE_LIMIT_BYTES:
            raise InputError(f"{path}: longer than 4 MiB", hint="split it: several files may be given")
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", hint="check the name") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8", hint="save the file as UTF-8") from error


def _compose(text: str, filename: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(
            f"{filename}:{line}: not YAML: {error.problem}", hint="quote texts that hold `:`, `#` or `{`"
        ) from None
    except (yaml.YAMLError, RecursionError):
        raise InputError(f"{filename}:1: not YAML that can be read", hint="see docs/oracles.md") from None


def _fail(filename: str, node: yaml.Node | None, message: str, hint: str) -> NoReturn:
    line = node.start_mark.line + 1 if node is not None else 1
    raise InputError(f"{filename}:{line}: {message}", hint=hint)


class _Reader:
    """Reads the nodes of one file."""

    def __init__(self, filename: str) -> None:
        self._filename = filename

    def case(self, node: yaml.Node) -> Case:
        fields = self._fields(node, _CASE, ("case", "kind", "hard", "why", "task", "proposed"))
        steps = tuple(self._step(one) for one in self._items(fields, "steps"))
        places = {one.object for one in steps if isinstance(one, Read)}
        proposed = tuple(self._proposed(one, places) for one in self._items(fields, "proposed"))
        if not proposed:
            self._fail(fields["proposed"], "nothing is proposed", "give at least one effect")
        if len({one.id for one in proposed}) != len(proposed):
            self._fail(fields["proposed"], "two proposed effects have the same id", "number them: e1, e2 …")
        return Case(
            name=self._string(fields["case"]),
            kind=self._string(fields["kind"]),
            hard=self._flag(fields, "hard"),
            why=self._string(fields["why"]),
            task=self._string(fields["task"]),
            system=self._optional(fields, "system"),
            task_trusted=self._flag(fields, "task_trusted", default=True),
            policy=tuple(self._string(one) for one in self._items(fields, "policy")),
            steps=steps,
            proposed=proposed,
        )

    def _step(self, node: yaml.Node) -> Read | Sent:
        keys = {key.value for key, _ in node.value} if isinstance(node, yaml.MappingNode) else set()
        if "in" in keys:
            fields = self._fields(node, _READ, ("in", "object", "text"))
            return Read(
                action=self._string(fields["in"]),
                object=self._string(fields["object"]),
                text=self._string(fields["text"]),
                trusted=self._flag(fields, "trusted"),
            )
        fields = self._fields(node, _SENT, ("out",))
        action = self._string(fields["out"])
        status = self._optional(fields, "status") or "sent"
        if status not in STATUSES:
            self._fail(fields["status"], f"unknown status `{status}`", f"write one of {', '.join(STATUSES)}")
        return Sent(
            action=action,
            object=self._optional(fields, "object") or f"tool:{action}",
            values=self._pairs(fields, "values"),
            status=status,
        )

    def _proposed(self, node: yaml.Node, places: set[str]) -> ProposedEffect:
        fields = self._fields(node, _PROPOSED, ("id", "action", "expect"))
        action = self._string(fields["action"])
        expect = self._string(fields["expect"])
        if expect not in _EXPECTED:
            self._fail(fields["expect"], f"unknown decision `{expect}`", "write `release` or `refuse`")
        carried = [
            GivenValue(name=name, value=value, steers=False) for name, value in self._pairs(fields, "carries")
        ]
        return ProposedEffect(
            id=self._string(fields["id"]),
            action=action,
            object=self._optional(fields, "object") or f"tool:{action}",
            values=(*(self._value(one, places) for one in self._items(fields, "values")), *carried),
            good=_EXPECTED[expect],
            content=self._optional(fields, "content"),
            facets=tuple(self._string(one) for one in self._items(fields, "facets")),
            carried=self._level(fields, "carried", Confidentiality.PUBLIC),
            clearance=self._level(fields, "clearance", Confidentiality.CRITICAL),
        )

    def _value(self, node: yaml.Node, places: set[str]) -> GivenValue:
        fields = self._fields(node, _VALUE, ("name", "value"))
        source = self._optional(fields, "from")
        if source not in {"", TASK, *places}:
            near = get_close_matches(source, places, n=1)
            hint = f"did you mean `{near[0]}`?" if near else "write `task`, or the object of an `in` step"
            self._fail(fields["from"], f"nothing was read at `{source}`", hint)
        return GivenValue(
            name=self._string(fields["name"]),
            value=self._string(fields["value"]),
            kind=self._optional(fields, "type") or "text",
            source=source,
        )

    def _fields(
        self, node: yaml.Node, known: tuple[str, ...], needed: tuple[str, ...]
    ) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, "not a mapping", f"give it the keys {', '.join(known)}")
        found: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else ""
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean `{near[0]}`?" if near else f"the keys are {', '.join(known)}"
                self._fail(key_node, f"unknown key `{key}`", hint)
            if key in found:
                self._fail(key_node, f"`{key}` is given twice", "keep one of the two")
            found[key] = value
        for key in needed:
            if key not in found:
                self._fail(node, f"`{key}` is missing", f"add `{key}:`")
        return found

    def _items(self, fields: dict[str, yaml.Node], key: str) -> list[yaml.Node]:
        if key not in fields:
            return []
        node = fields[key]
        if not isinstance(node, yaml.SequenceNode):
            self._fail(node, f"`{key}` is not a list", "write each entry after a `- `")
        return list(node.value)

    def _pairs(self, fields: dict[str, yaml.Node], key: str) -> tuple[tuple[str, str], ...]:
        if key not in fields:
            return ()
        node = fields[key]
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, f"`{key}` is not a mapping", "write `name: value`")
        return tuple((self._string(name), self._string(value)) for name, value in node.value)

    def _string(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag not in (_STRING, *_NUMBERS):
            self._fail(node, "not a text", "put it in quotes")
        try:
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._fail(node, "holds half a character", "write the whole character")

    def _optional(self, fields: dict[str, yaml.Node], key: str) -> str:
        return self._string(fields[key]) if key in fields else ""

    def _flag(self, fields: dict[str, yaml.Node], key: str, *, default: bool = False) -> bool:
        node = fields.get(key)
        if node is None:
            return default
        if node.tag != _BOOL or node.value not in ("true", "false"):
            self._fail(node, f"`{key}` is neither `true` nor `false`", "write `true` or `false`")
        return bool(node.value == "true")

    def _level(self, fields: dict[str, yaml.Node], key: str, default: Confidentiality) -> Confidentiality:
        name = self._optional(fields, key)
        if name and name not in _LEVELS:
            self._fail(fields[key], f"unknown level `{name}`", f"the levels are {', '.join(_LEVELS)}")
        return _LEVELS[name] if name else default

    def _fail(self, node: yaml.Node | None, message: str, hint: str) -> NoReturn:
        _fail(self._filename, node, message, hint)
