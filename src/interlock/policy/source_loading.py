"""What a policy file says of sources and of who may hold what: trusted, untrusted and sensitive files, parties."""

import re
from dataclasses import replace

from interlock.model.labels import Confidentiality
from interlock.policy.declaration import CONTENT, EVERY_ROOT, FileGlob, GitSource, Party, SensitivePlace
from interlock.policy.document import Document, Path, Tree
from interlock.policy.globs import GlobError, check_glob
from interlock.policy.reading import entries, flag_at, level_at, needs, section, text_at, texts_at, wrong

STRUCTURED = (".json", ".yaml", ".yml", ".toml", ".csv")
_GIT_REF = r"(?!.*\.\.)[A-Za-z0-9][\w./+@=-]{0,200}"
_ROOT = r"\*|workspace|home|(?:state|folder|git):[^:\s]+"


def read_trusted(document: Document) -> tuple[tuple[FileGlob, ...], tuple[GitSource, ...], bool | None]:
    """Return what vouches: files, what Git holds, and whether the task does (None: unsaid). Raises: PolicyError."""
    globs: list[FileGlob] = []
    from_git: list[GitSource] = []
    task: bool | None = None
    example = 'file: "docs/**"'
    for path, entry in entries(document, ("trusted",), ("task", "file", "git", "root", "fields"), example):
        if "fields" in entry and "file" not in entry:
            raise document.mistake(
                path, "`fields` are those of a `file`", hint='write `- {file: "a.json", fields: [name]}`'
            )
        if "git" in entry and "task" not in entry:
            from_git.append(_git_source(document, path, entry))
            continue
        if ("task" in entry) == ("file" in entry):
            raise document.mistake(
                path, "a trusted source is `task`, `file` or `git`", hint=f"write `- {example}`"
            )
        if "task" in entry:
            task = flag_at(document, (*path, "task"))
            continue
        glob = glob_at(document, (*path, "file"), example)
        root = root_at(document, path, entry, "workspace")
        globs.append(FileGlob(root=root, glob=glob, fields=_fields(document, path, entry, glob)))
    return tuple(globs), tuple(from_git), task


def _fields(document: Document, path: Path, entry: dict[str, Tree], glob: str) -> tuple[str, ...]:
    if "fields" not in entry:
        return ()
    example = 'fields: ["team[].email"]'
    fields = texts_at(document, (*path, "fields"), entry["fields"], text_at, example)
    if not fields:
        raise document.mistake((*path, "fields"), "no field is named", hint=f"write `{example}`")
    if not glob.lower().endswith(STRUCTURED):
        raise document.mistake(
            (*path, "fields"),
            f"the files of `{glob}` may have no fields",
            hint=f"name files by their ending: {', '.join(STRUCTURED)}",
        )
    return fields


def _git_source(document: Document, path: Path, entry: dict[str, Tree]) -> GitSource:
    """Read `git: tracked`, or `git:` with `ref`, `author` or both; with `file` for some of it only."""
    glob = glob_at(document, (*path, "file"), 'file: "docs/**"') if "file" in entry else "**"
    source = GitSource(root=root_at(document, path, entry, "workspace"), glob=glob)
    if entry["git"] == "tracked":
        return source
    example = "{git: {ref: main}}"
    if not isinstance(entry["git"], dict):
        wrong(
            document, (*path, "git"), "`tracked`, or a mapping with `ref`, `author`", f"write `- {example}`"
        )
    given = section(document, (*path, "git"), ("ref", "author"), example)
    if not given:
        raise document.mistake(
            (*path, "git"),
            "a git source has a `ref`, an `author` or both",
            hint=f"write `- {example}`, or `- {{git: tracked}}`",
        )
    if "ref" in given:
        ref = text_at(document, (*path, "git", "ref"), example)
        if not re.fullmatch(_GIT_REF, ref):
            raise document.mistake(
                (*path, "git", "ref"), "not a branch's or a tag's name", hint="write `ref: main`"
            )
        source = replace(source, ref=ref)
    if "author" in given:
        author = glob_at(document, (*path, "git", "author"), 'author: "*@example.com"')
        source = replace(source, author=author)
    return source


def read_globs(document: Document, key: str) -> tuple[FileGlob, ...]:
    """Return the files that a key names, wherever they lie. Raises: PolicyError."""
    example = 'file: "vendor/**"'
    found: list[FileGlob] = []
    for path, entry in entries(document, (key,), ("file", "root"), example):
        needs(document, path, entry, "file", example)
        glob = glob_at(document, (*path, "file"), example)
        found.append(FileGlob(root=root_at(document, path, entry, EVERY_ROOT), glob=glob))
    return tuple(found)


def read_sensitive(document: Document) -> tuple[SensitivePlace, ...]:
    """Return the places whose content must not leave. Raises: PolicyError."""
    found: list[SensitivePlace] = []
    example = 'place: "private/"'
    for path, entry in entries(
        document, ("sensitive",), ("place", "file", "fields", "content", "level", "root", "except"), example
    ):
        where = "file" if "file" in entry or "fields" in entry else "place"
        if where == "file":
            _check_fields(document, path, entry)
        elif "content" not in entry:
            needs(document, path, entry, "place", example)
        written = 'file: "customers.csv"' if where == "file" else example
        glob = glob_at(document, (*path, where), written) if where in entry else "**"
        found.append(
            SensitivePlace(
                root=root_at(document, path, entry, EVERY_ROOT),
                glob=glob,
                content=_content(document, path, entry),
                fields=_fields(document, path, entry, glob),
                level=level_at(document, path, entry, "level")
                if "level" in entry
                else Confidentiality.SECRET,
                exceptions=texts_at(
                    document, (*path, "except"), entry.get("except"), glob_at, 'except: ["**/x.example"]'
                ),
            )
        )
    return tuple(found)


def _check_fields(document: Document, path: Path, entry: dict[str, Tree]) -> None:
    """Check that an entry with `file` or `fields` has both, and nothing that says something else of the file."""
    example = '{file: "customers.csv", fields: [iban]}'
    for other in ("place", "content"):
        if other in entry:
            raise document.mistake(
                (*path, other),
                f"`{other}` says nothing of the `fields` of a `file`",
                hint=f"write an entry of its own for it, and `- {example}`",
            )
    if "file" not in entry or "fields" not in entry:
        missing = "fields" if "file" in entry else "file"
        hint = "for the whole file write `place`; for some of it" if missing == "fields" else "write"
        raise document.mistake(
            path, f"`file` and `fields` go together: `{missing}` is missing", hint=f"{hint} `- {example}`"
        )
    fields = entry["fields"]
    for index, field in enumerate(fields if isinstance(fields, list) else ()):
        if isinstance(field, str) and ".." in field.replace("[]", ""):
            raise document.mistake(
                (*path, "fields", index),
                f"`{field}` names a key that is empty",
                hint="write `members[].email`",
            )


def _content(document: Document, path: Path, entry: dict[str, Tree]) -> str:
    if "content" not in entry:
        return ""
    name = text_at(document, (*path, "content"), "content: keys")
    if name not in CONTENT:
        raise document.mistake(
            (*path, "content"), f"`{name}` is no kind of content", hint=f"write one of {', '.join(CONTENT)}"
        )
    return name


def read_parties(document: Document) -> tuple[Party, ...]:
    """Return who may hold what. Raises: PolicyError."""
    found: dict[str, Party] = {}
    example = '{name: "api.example.com", clearance: internal}'
    for path, entry in entries(document, ("parties",), ("name", "clearance"), example):
        needs(document, path, entry, "name", example)
        needs(document, path, entry, "clearance", example)
        name = text_at(document, (*path, "name"), example)
        if name.casefold() in found:
            raise document.mistake(
                (*path, "name"), f"the party `{name}` stands here twice", hint="keep one of them"
            )
        found[name.casefold()] = Party(name=name, clearance=level_at(document, path, entry, "clearance"))
    return tuple(found.values())


def glob_at(document: Document, path: Path, example: str) -> str:
    """Return a glob of the file, checked. Raises: PolicyError."""
    glob = text_at(document, path, example)
    return checked_glob(document, path, glob, example)


def checked_glob(document: Document, path: Path, glob: str, example: str) -> str:
    """Return a glob, checked where it comes from a file. Raises: PolicyError."""
    # The presets' globs are checked by the tests, not at each start.
    if document.text:
        try:
            check_glob(glob)
        except GlobError as mistake:
            raise document.mistake(path, str(mistake), hint=f"write it as in `{example}`") from None
    return glob


def root_at(document: Document, path: Path, entry: dict[str, Tree], default: str) -> str:
    """Return the root that an entry names. Raises: PolicyError."""
    if "root" not in entry:
        return default
    root = text_at(document, (*path, "root"), "root: workspace")
    if not re.fullmatch(_ROOT, root):
        raise document.mistake(
            (*path, "root"),
            f"no root can be named `{root}`",
            hint="write `workspace`, `home`, `state:.claude`, `folder:other`, `git:repo` or `*`",
        )
    return root
