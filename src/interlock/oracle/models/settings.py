"""Strict reading of a file of settings: each mistake has its line and a fix, and no value is ever repeated."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

import yaml

from interlock.model.errors import PolicyError

SIZE_LIMIT_BYTES = 1 << 20


class Section:
    """A mapping of the file, read key by key; values may be secrets by mistake, so no message holds one."""

    def __init__(self, node: yaml.Node | None, filename: str, name: str, keys: Iterable[str] | None) -> None:
        """Take a mapping. Takes: `keys`, those that it may have, None where they are names of the user's own."""
        self.filename = filename
        self.name = name
        self.node = node
        self._found: dict[str, yaml.Node] = {}
        if node is None:
            return
        if not isinstance(node, yaml.MappingNode):
            self.fail(node, f"`{name}` is no mapping", "write `key: value` pairs")
        for key_node, value in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else ""
            if keys is not None and key not in keys:
                near = get_close_matches(str(key), list(keys), n=1)
                fix = f"did you mean `{near[0]}`?" if near else f"the keys are {', '.join(keys)}"
                self.fail(key_node, f"unknown key {str(key)[:40]!r}", fix)
            if not key:
                self.fail(key_node, "a key that is no text", "write a name")
            if key in self._found:
                self.fail(key_node, f"`{key}` is given twice", "keep one of the two")
            self._found[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def names(self) -> list[str]:
        """Return the keys in the file's order."""
        return list(self._found)

    def fail(self, node: yaml.Node | None, message: str, hint: str) -> NoReturn:
        """Raise the error with the node's place."""
        mark = node.start_mark if node is not None else None
        raise PolicyError(
            message,
            filename=self.filename,
            line=mark.line + 1 if mark else 1,
            column=mark.column + 1 if mark else 1,
            hint=hint,
        )

    def section(self, key: str, keys: Iterable[str] | None) -> "Section":
        """Return an inner mapping, an empty one where it is not given."""
        return Section(self._found.get(key), self.filename, key, keys)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text. Takes: `default`, None where it must be given."""
        node = self._found.get(key)
        if node is None:
            if default is None:
                self.fail(self.node, f"`{self.name}` has no `{key}`", f"add `{key}: …`")
            return default
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str" or not node.value:
            self.fail(node, f"`{key}` is no text", "put it in quotes")
        if not str(node.value).isprintable():
            self.fail(node, f"`{key}` holds what cannot be printed", "write it in one line")
        return str(node.value)

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """Return a number within its bounds."""
        node = self._found.get(key)
        if node is None:
            return default
        kinds = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        try:
            value = float(node.value) if isinstance(node, yaml.ScalarNode) and node.tag in kinds else math.nan
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            self.fail(node, f"`{key}` is no number from {least:g} to {most:g}", "write such a number")
        return value

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        """Return a whole number within its bounds."""
        value = self.number(key, default, least, most)
        if value != int(value):
            self.fail(self._found[key], f"`{key}` is no whole number", "write one without a fraction")
        return int(value)

    def words(self, key: str, allowed: Iterable[str]) -> frozenset[str]:
        """Return a list of words out of a closed set."""
        node = self._found.get(key)
        if node is None:
            return frozenset()
        if not isinstance(node, yaml.SequenceNode):
            self.fail(node, f"`{key}` is no list", f"write a list of {', '.join(allowed)}")
        found = set()
        for one in node.value:
            if not isinstance(one, yaml.ScalarNode) or one.value not in allowed:
                self.fail(one, f"`{key}` holds an unknown word", f"the words are {', '.join(allowed)}")
            found.add(str(one.value))
        return frozenset(found)

    def at(self, key: str) -> yaml.Node | None:
        """Return the value's node, for an error's place."""
        return self._found.get(key)


def read_settings(path: str, keys: Iterable[str]) -> Section:
    """Read a YAML file whose root is a mapping with these keys.

    Raises: PolicyError, with file, line, column and fix.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read(SIZE_LIMIT_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise PolicyError(
            f"cannot be read: {error.strerror}", filename=path, hint="check the path, or write the file"
        ) from error
    except UnicodeDecodeError as error:
        raise PolicyError("not UTF-8", filename=path, hint="save the file as UTF-8") from error
    if len(raw) > SIZE_LIMIT_BYTES:
        raise PolicyError("longer than 1 MiB", filename=path, hint="name the models that you use alone")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise PolicyError(
            "not YAML",
            filename=path,
            line=mark.line + 1 if mark else 1,
            column=mark.column + 1 if mark else 1,
            hint="quote texts that hold `*`, `:`, `[` or `{`",
        ) from None
    except (yaml.YAMLError, RecursionError):
        raise PolicyError("not YAML that can be read", filename=path, hint="write plain mappings") from None
    return Section(node, path, "the file", keys)
