"""Check that the docs say what is there: files, tests, verbs, error codes and links that they name.

Prints one line for each mistake and exits 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_TICKED = re.compile(r"`([^`\n]+)`")
_PROMISE = re.compile(r"(?:#{2,4} +|\| *|\*\*)?(\d+)(?:[.)]| *\|)\s")
_TEST = re.compile(r"(tests/[\w./-]+)(?:::(\w+))?")
_VERB_USED = re.compile(r"(?:^|[\s`$(])interlock ((?!-|import\b)[a-z][a-z-]*)\b(?! *=)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
_CODE_BLOCK = re.compile(r"```.*?```", re.DOTALL)


def main() -> int:
    """Run every check; return the exit status."""
    mistakes = [
        *architecture(),
        *promises(),
        *verbs(),
        *errors(),
        *links(),
        *adrs(),
    ]
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    if mistakes:
        print(f"docs: {len(mistakes)} mistakes", file=sys.stderr)
        return 1
    print("docs: fresh")
    return 0


def architecture() -> Iterator[str]:
    """Every file and folder that a table of ARCHITECTURE.md names exists, and every room is named."""
    text = _read("ARCHITECTURE.md")
    if text is None:
        yield "ARCHITECTURE.md: missing"
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("|"):
            continue
        for name in _TICKED.findall(line):
            if ("/" in name or name.endswith((".py", ".md"))) and re.fullmatch(r"[\w./*-]+", name):
                found = [base for base in ("", "src/interlock", "src") if list((ROOT / base).glob(name))]
                if not found:
                    yield f"ARCHITECTURE.md:{number}: there is no {name}"
    for room in sorted((ROOT / "src/interlock").glob("*/__init__.py")):
        if not re.search(rf"^\|[^|]*\b{room.parent.name}\b[^|]*\|", text, re.MULTILINE):
            yield f"ARCHITECTURE.md: does not name the room {room.parent.name}"


def promises() -> Iterator[str]:
    """Every promise names tests that exist, or is marked pending."""
    text = _read("docs/promises.md")
    if text is None:
        yield "docs/promises.md: missing"
        return
    sections: list[tuple[int, int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        start = _PROMISE.match(line)
        if start:
            sections.append((int(start[1]), number, [line]))
        elif line.startswith("#"):
            sections.append((0, number, []))
        elif sections:
            sections[-1][2].append(line)
    numbered = [section for section in sections if section[0]]
    if not numbered:
        yield "docs/promises.md: holds no numbered promise"
    for promise, number, lines in numbered:
        body = "\n".join(lines)
        if not _TEST.search(body) and "pending" not in body:
            yield f"docs/promises.md:{number}: promise {promise} names no test and is not marked pending"
    for number, line in enumerate(text.splitlines(), start=1):
        for path, function in _TEST.findall(line):
            yield from _test_named(f"docs/promises.md:{number}", path.rstrip("."), function)


def _test_named(where: str, path: str, function: str) -> Iterator[str]:
    file = ROOT / path
    if not file.exists():
        yield f"{where}: there is no {path}"
    elif function:
        names = {
            node.name
            for node in ast.walk(ast.parse(file.read_text("utf-8")))
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        if function not in names:
            yield f"{where}: {path} has no {function}"


def verbs() -> Iterator[str]:
    """The README names every verb, and no page names one that does not exist."""
    from interlock.cli import VERBS

    readme = _read("README.md") or ""
    named = set(_VERB_USED.findall(readme))
    for verb in VERBS:
        if verb not in named:
            yield f"README.md: does not name `interlock {verb}`"
    for page in _pages():
        text = page.read_text("utf-8")
        code = "\n".join([*_CODE_BLOCK.findall(text), *(f"`{tick}" for tick in _TICKED.findall(text))])
        for verb in sorted(set(_VERB_USED.findall(code)) - set(VERBS)):
            yield f"{page.relative_to(ROOT)}: there is no `interlock {verb}`"


def errors() -> Iterator[str]:
    """docs/errors.md lists each error code of the source with its exit status, and no other."""
    text = _read("docs/errors.md") or ""
    listed = dict(re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", text, re.MULTILINE))
    found = _codes()
    for code, status in sorted(found.items()):
        if code not in listed:
            yield f"docs/errors.md: does not list `{code}` (exit status {status})"
        elif int(listed[code]) != status:
            yield f"docs/errors.md: `{code}` ends with {status}, not {listed[code]}"
    for code in sorted(listed.keys() - found.keys()):
        yield f"docs/errors.md: nothing in src has the code `{code}`"


def _codes() -> dict[str, int]:
    """Read code and exit status of each error class from the source, following its base classes."""
    classes: dict[str, tuple[list[str], dict[str, object]]] = {}
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                values: dict[str, object] = {
                    item.targets[0].id: item.value.value
                    for item in node.body
                    if isinstance(item, ast.Assign)
                    and isinstance(item.targets[0], ast.Name)
                    and isinstance(item.value, ast.Constant)
                }
                if bases or node.name not in classes:  # a record may have an error's name
                    classes[node.name] = (bases, values)

    def value(name: str, key: str) -> object:
        bases, values = classes.get(name, ([], {}))
        if key in values:
            return values[key]
        return next((found for base in bases if (found := value(base, key)) is not None), None)

    def is_ours(name: str) -> bool:
        return name == "InterlockError" or any(is_ours(base) for base in classes.get(name, ([], {}))[0])

    return {
        str(value(name, "code")): int(str(value(name, "exit_status")))
        for name in classes
        if is_ours(name) and value(name, "exit_status") is not None
    }


def links() -> Iterator[str]:
    """Every relative link leads somewhere."""
    for page in _pages():
        for target in _LINK.findall(_CODE_BLOCK.sub("", page.read_text("utf-8"))):
            if (
                "://" not in target
                and not target.startswith("mailto:")
                and not (page.parent / target).exists()
            ):
                yield f"{page.relative_to(ROOT)}: the link to {target} leads nowhere"


def adrs() -> Iterator[str]:
    """The decisions are numbered without a gap and say their cost."""
    pages = sorted((ROOT / "docs/adr").glob("*.md"))
    for expected, page in enumerate(pages, start=1):
        name = page.relative_to(ROOT)
        if not page.name.startswith(f"{expected:04d}-"):
            yield f"{name}: the next number is {expected:04d}"
        text = page.read_text("utf-8")
        for heading in ("Context", "Decision", "Cost"):
            if f"\n## {heading}\n" not in text:
                yield f"{name}: has no part {heading}"


def _pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _read(name: str) -> str | None:
    path = ROOT / name
    return path.read_text("utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
