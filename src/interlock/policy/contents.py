"""What a change of content adds to run: one judge for each kind of file whose content decides.

A judge gets both texts, None where the text is not known, and returns what it found, `""` for nothing.
"""

import json
import re
from collections.abc import Callable

from interlock.policy import gitconfig

Judge = Callable[[str | None, str | None], str]
UNKNOWN = "its content could not be read"

_SCRIPT_KEYS = (
    "bin",
    "config",
    "gitHooks",
    "hooks",
    "husky",
    "lint-staged",
    "packageManager",
    "pnpm",
    "pre-commit",
)
_MORE_SCRIPT_KEYS = ("scripts", "simple-git-hooks", "trustedDependencies")
_BACKENDS = frozenset(
    {
        "flit_core.buildapi",
        "hatchling.build",
        "maturin",
        "mesonpy",
        "pdm.backend",
        "poetry.core.masonry.api",
        "scikit_build_core.build",
        "setuptools.build_meta",
        "uv_build",
    }
)
_AGENT_KEYS = frozenset(
    {
        "allowedTools",
        "apiKeyHelper",
        "enableAllProjectMcpServers",
        "enabledMcpjsonServers",
        "env",
        "hasTrustDialogAccepted",
        "hooks",
        "mcpServers",
        "permissions",
        "statusLine",
    }
)


def git_config(before: str | None, after: str | None) -> str:
    """Judge a `.git/config` and its like."""
    if before is None or after is None:
        return UNKNOWN
    key = gitconfig.telling_change(before, after)
    return f"`{_shown(key)}` changes" if key else ""


def stray_config(before: str | None, after: str | None) -> str:
    """Judge a file named `config` anywhere: it counts if it reads as Git's, as a bare repository's would."""
    if before is None or after is None:
        return UNKNOWN
    if not gitconfig.is_git(after):
        return ""
    key = gitconfig.telling_change(before if gitconfig.parse(before) is not None else "", after)
    return f"`{_shown(key)}` changes" if key else ""


def git_modules(before: str | None, after: str | None) -> str:
    """Judge a `.gitmodules`: another address or another way to update a submodule counts."""
    if before is None or after is None:
        return UNKNOWN
    old, new = gitconfig.parse(before), gitconfig.parse(after)
    if old is None or new is None:
        return "it cannot be read"
    for key in sorted(new):
        if old.get(key) != new[key] and key.rpartition(".")[2] in {"url", "update", "path"}:
            return f"`{_shown(key)}` changes"
    return ""


def git_link(before: str | None, after: str | None) -> str:
    """Judge a file named `.git`: it may point into the repository above it, nowhere else."""
    if after is None:
        return UNKNOWN
    if re.fullmatch(r"gitdir: (?:\.\./)+\.git/(?:worktrees|modules)/(?!.*\.\.(?:/|$))[\w./-]+\n?", after):
        return ""
    return "it points to a repository elsewhere" if before != after else ""


def git_common_dir(before: str | None, after: str | None) -> str:
    """Judge the pointer of a linked worktree to its repository: Git itself writes `../..`."""
    if after is None:
        return UNKNOWN
    return "it points to a repository elsewhere" if after.rstrip("\n") != "../.." and before != after else ""


def git_todo(before: str | None, after: str | None) -> str:
    """Judge the list of steps of a rebase: `exec` steps run programs."""
    if after is None:
        return UNKNOWN
    return "it holds an `exec` step" if re.search(r"(?m)^\s*(?:exec|x)\b", after) and after != before else ""


def package_json(before: str | None, after: str | None) -> str:
    """Judge a `package.json`: the keys whose values are commands."""
    old, new = _json(before), _json(after)
    if old is None or new is None:
        return UNKNOWN
    for key in (*_SCRIPT_KEYS, *_MORE_SCRIPT_KEYS):
        if old.get(key) != new.get(key):
            return f"`{key}` changes"
    return ""


def composer_json(before: str | None, after: str | None) -> str:
    """Judge a `composer.json`: scripts, plug-ins allowed to run, and bins."""
    old, new = _json(before), _json(after)
    if old is None or new is None:
        return UNKNOWN
    return next(
        (f"`{key}` changes" for key in ("scripts", "config", "bin") if old.get(key) != new.get(key)), ""
    )


def agent_registry(before: str | None, after: str | None) -> str:
    """Judge an agent's book-keeping file in JSON: only the keys that name programs or grant rights count."""
    old, new = _json(before), _json(after)
    if old is None or new is None:
        return UNKNOWN
    return _first_change(_under(old, _AGENT_KEYS), _under(new, _AGENT_KEYS))


def pyproject(before: str | None, after: str | None) -> str:
    """Judge a `pyproject.toml`: the build backend, and the tables in which tools keep commands."""
    if before is None or after is None:
        return UNKNOWN
    import tomllib

    try:
        old, new = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        return "it cannot be read"
    was, now = _table(old, "build-system"), _table(new, "build-system")
    if now.get("backend-path") != was.get("backend-path"):
        return "`build-system.backend-path` changes"
    backend = now.get("build-backend")
    if backend != was.get("build-backend") and backend is not None and backend not in _BACKENDS:
        return "`build-system.build-backend` changes"
    names = frozenset({"scripts", "tasks", "hooks", "cmd", "commands", "poe"})
    return _first_change(_under(_table(old, "tool"), names), _under(_table(new, "tool"), names))


def recipes(before: str | None, after: str | None) -> str:
    """Judge a file of recipes (make, just, task …): anything but comments and blank lines counts."""
    if before is None or after is None:
        return UNKNOWN
    if _code(before) == _code(after):
        return ""
    return "its recipes change" if _code(before) else "it brings recipes"


def path_file(before: str | None, after: str | None) -> str:
    """Judge a `.pth`: a line that begins with `import` runs at every start of Python."""
    if after is None:
        return UNKNOWN
    old = before or ""
    runs = [line for line in after.splitlines() if line.startswith(("import ", "import\t"))]
    return (
        "a line of it runs at every start of Python"
        if any(line not in old.splitlines() for line in runs)
        else ""
    )


def _shown(key: str) -> str:
    """Cut a key to what is safe to show: a subsection may hold anything, a token too."""
    section, _, rest = key.partition(".")
    name = rest.rpartition(".")[2]
    return f"{section}.…{'.' if name else ''}{name}" if "." in rest else key


def _code(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines()]
    if "RECIPEPREFIX" in text or "define" in text:
        return [line for line in lines if line]
    # An indented `#` is a line of a recipe (the shell's comment); make's own comments begin the line, unless
    # the line above is continued there.
    follows = ["", *lines]
    return [
        line
        for above, line in zip(follows, lines, strict=False)
        if line and (not line.startswith("#") or above.endswith("\\"))
    ]


def _json(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    if not text.strip():
        return {}
    try:
        value = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_no_twins)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _no_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Readers differ in which of two equal keys they take, so such a text is not one that can be judged.
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _table(tree: dict[str, object], key: str) -> dict[str, object]:
    value = tree.get(key)
    return value if isinstance(value, dict) else {}


def _first_change(old: dict[str, object], new: dict[str, object]) -> str:
    changed = sorted(spot for spot in old.keys() | new.keys() if old.get(spot) != new.get(spot))
    return f"`{changed[0].rpartition(chr(0))[2]}` changes" if changed else ""


def _under(tree: object, names: frozenset[str]) -> dict[str, object]:
    """Return what stands under one of the names, by its path; what is empty says nothing."""
    found: dict[str, object] = {}
    waiting: list[tuple[str, object]] = [("", tree)]
    while waiting:
        spot, here = waiting.pop()
        if isinstance(here, dict):
            for key, value in here.items():
                if key in names and value not in ({}, [], "", None, False):
                    found[f"{spot}\0{key}"] = value
                waiting.append((f"{spot}\0{key}", value))
        elif isinstance(here, list):
            waiting.extend((f"{spot}\0{index}", value) for index, value in enumerate(here))
    return found
