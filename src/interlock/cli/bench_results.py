"""`interlock bench results`: write the page of results and its plots from result files."""

from __future__ import annotations

from pathlib import Path

from interlock.cli.output import parser


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench results --help`."""
    form = parser(
        "bench results",
        "Write worst-case.md and its plots, leaks.md, oracles.md and oracle-cost.md from the result files of a folder.",
        "interlock bench results benchmarks/results --to docs/results",
        "0; 1 with --check, where the page is another one; 2 a result file is missing.",
    )
    form.add_argument("folder", type=Path, metavar="DIR", help="with the result files")
    form.add_argument("--to", type=Path, required=True, metavar="DIR", help="where the page is")
    form.add_argument(
        "--check", action="store_true", help="write nothing: say whether the page is up to date"
    )
    given = form.parse_args(words)
    from interlock.bench.ablation_page import ablation_page
    from interlock.bench.leaks_page import leaks_page
    from interlock.bench.oracle_cost_page import cost_page
    from interlock.bench.worst_case import pages
    from interlock.model.errors import InputError

    found = {
        **pages(given.folder),
        **leaks_page(given.folder),
        **ablation_page(given.folder),
        **cost_page(given.folder),
    }
    if given.check:
        old = [name for name, text in found.items() if _read(given.to / name) != text]
        print("\n".join(f"{given.to / name} is not up to date" for name in old) or "up to date")
        return 1 if old else 0
    try:
        given.to.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            (given.to / name).write_text(text, encoding="utf-8")
    except OSError as failure:
        raise InputError(
            f"`{given.to}` cannot be written ({type(failure).__name__})", hint="give another folder"
        ) from None
    print("\n".join(str(given.to / name) for name in found))
    return 0


def _read(place: Path) -> str | None:
    try:
        return place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
