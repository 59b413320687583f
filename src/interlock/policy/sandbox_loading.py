"""What a policy file says of the sandbox: its environment, its folders, what it hides, its limits."""

import re

from interlock.policy.declaration import Environment, Limits, SandboxChoices
from interlock.policy.document import Document, Path
from interlock.policy.reading import count_at, flag_at, section, size_at, text_at, texts_at, wrong
from interlock.policy.source_loading import checked_glob

_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE_GLOB = r"[A-Za-z_][A-Za-z0-9_]*\*?|\*"
_COUNTS = ("processes", "open_files")
_SIZES = {"file_size": "file_size_bytes", "memory": "memory_bytes", "tmp_size": "tmp_size_bytes"}
_NAMESPACE = r"[A-Za-z0-9@._-]{1,64}"


def read_environment(document: Document) -> Environment:
    """Return which variables are passed, and which are set. Raises: PolicyError."""
    given = section(document, ("environment",), ("pass", "set"), "environment: {pass: [PATH]}")
    values = given.get("set") or {}
    if not isinstance(values, dict):
        wrong(document, ("environment", "set"), "a mapping", 'write `set: {NAME: "value"}`')
    for name, value in values.items():
        path: Path = ("environment", "set", name)
        if not re.fullmatch(_VARIABLE, name):
            raise document.mistake(
                path, "not a variable's name", hint="use letters, digits and `_`", key=True
            )
        if not isinstance(value, str) or "\0" in value:
            wrong(document, path, "text", "put quotes around the value")
    passed = texts_at(document, ("environment", "pass"), given.get("pass"), _variable, "pass: [PATH, LC_*]")
    return Environment(passed=passed, set=tuple(values.items()))


def read_state(document: Document) -> tuple[str, ...]:
    """Return the agent's own folders. Raises: PolicyError."""
    return texts_at(document, ("state",), document.values.get("state"), _folder, 'state: ["~/.claude"]')


def read_folders(document: Document) -> tuple[str, ...]:
    """Return the other folders that are staged. Raises: PolicyError."""
    return texts_at(document, ("folders",), document.values.get("folders"), _folder, 'folders: ["~/other"]')


def read_home(document: Document) -> tuple[str, ...]:
    """Return what of HOME is listed. Raises: PolicyError."""
    return texts_at(document, ("home",), document.values.get("home"), _home_glob, 'home: ["~/.bashrc"]')


def read_forget(document: Document) -> tuple[str, ...]:
    """Return what of it is thrown away. Raises: PolicyError."""
    return texts_at(
        document, ("forget",), document.values.get("forget"), _home_glob, 'forget: ["~/.agent/tmp/**"]'
    )


def read_sandbox(document: Document, base: SandboxChoices) -> SandboxChoices:
    """Return what is hidden and shown, and whether sandboxes may nest. Raises: PolicyError."""
    given = section(document, ("sandbox",), ("nested", "hide", "expose"), "sandbox: {nested: false}")
    nested = flag_at(document, ("sandbox", "nested")) if "nested" in given else base.nested
    return SandboxChoices(
        nested=nested,
        hide=texts_at(document, ("sandbox", "hide"), given.get("hide"), _folder, 'hide: ["~/mail"]'),
        expose=texts_at(
            document, ("sandbox", "expose"), given.get("expose"), _folder, 'expose: ["~/.config/tool"]'
        ),
    )


def read_limits(document: Document, base: Limits) -> Limits:
    """Return the limits of the command. Raises: PolicyError."""
    given = section(document, ("limits",), (*_COUNTS, *_SIZES), "limits: {memory: 4GiB}")
    values = {name: getattr(base, name) for name in (*_COUNTS, *_SIZES.values())}
    for key in given:
        if key in _COUNTS:
            values[key] = count_at(document, ("limits", key))
        else:
            values[_SIZES[key]] = size_at(document, ("limits", key))
    return Limits(**values)


def read_namespaces(document: Document) -> tuple[str, ...]:
    """Return for what the command may have a commit signed. Raises: PolicyError."""
    return texts_at(document, ("sign",), document.values.get("sign"), _namespace, "sign: [git]")


def _variable(document: Document, path: Path, example: str) -> str:
    name = text_at(document, path, example)
    if not re.fullmatch(_VARIABLE_GLOB, name):
        raise document.mistake(
            path, "not a variable's name", hint="use letters, digits, `_`, and `*` at the end"
        )
    return name


def _folder(document: Document, path: Path, example: str) -> str:
    folder = text_at(document, path, example).rstrip("/")
    parts = folder.split("/")
    if parts[0] not in {"~", ""} or len(parts) < 2 or any(part in {"", ".", ".."} for part in parts[1:]):
        raise document.mistake(
            path, "not a folder below HOME or an absolute one", hint=f"write it as in `{example}`"
        )
    if not folder.isprintable() or ":" in folder:
        raise document.mistake(
            path, "the folder's name holds a colon or a control character", hint="rename it"
        )
    return folder


def _home_glob(document: Document, path: Path, example: str) -> str:
    text = text_at(document, path, example)
    glob = text.removeprefix("~/")
    if glob == text or glob.split("/")[0] in ("*", "**"):
        raise document.mistake(
            path, "not a file or a folder of HOME that is named", hint=f"write it as in `{example}`"
        )
    return checked_glob(document, path, glob, example)


def _namespace(document: Document, path: Path, example: str) -> str:
    name = text_at(document, path, example)
    if not re.fullmatch(_NAMESPACE, name):
        raise document.mistake(path, "not a namespace of signatures", hint=f"write it as in `{example}`")
    return name
