"""`interlock mcp import`: put the MCP servers of a client's settings behind Interlock, and take that back."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.mcp.importing import Report


def main(words: list[str]) -> int:
    """Run the verb; see `interlock mcp import --help`."""
    form = parser(
        "mcp import",
        "Put the MCP servers that a client's settings name behind Interlock, or take that back.",
        "interlock mcp import .mcp.json; interlock mcp import .mcp.json --undo",
        "0; 2 input, also where the file was edited since the import and could not be restored; 4 integrity.",
    )
    form.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="the settings: JSON with `mcpServers`, `servers` or `mcp`, TOML with `mcp_servers` "
        "(default: each that is in this folder)",
    )
    form.add_argument("--undo", action="store_true", help="restore the file as it was, byte for byte")
    form.add_argument(
        "--keep-edits",
        action="store_true",
        help="with --undo: where the file was edited since, restore the servers and keep the edits",
    )
    form.add_argument("--policy", metavar="FILE", help="the policy that each of the servers gets")
    form.add_argument(
        "--program",
        metavar="WORD",
        help="what starts Interlock in the settings (default: this program's whole path)",
    )
    form.add_argument("--dry-run", action="store_true", help="only say what would be done")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    if arguments.keep_edits and not arguments.undo:
        raise InputError("`--keep-edits` says how to undo", hint="give it with `--undo`")
    from interlock.mcp.importing import Wrapping, found_here, take_back, wrap

    files: list[str] = arguments.files or found_here(os.getcwd())
    if not files:
        raise InputError(
            "this folder has no settings that name MCP servers",
            hint="name a client's file: interlock mcp import ~/.codex/config.toml",
        )
    options = ("--policy", os.path.abspath(arguments.policy)) if arguments.policy else ()
    wrapping = Wrapping(program=arguments.program or os.path.abspath(sys.argv[0]), options=options)
    if os.path.basename(wrapping.program) != "interlock":
        raise InputError(
            f"`{wrapping.program}` is not named `interlock`, so that nothing would know it again",
            hint="give the program's path: --program /path/to/interlock",
        )
    reports = []
    for file in files:
        try:
            if arguments.undo:
                reports.append(take_back(file, dry_run=arguments.dry_run, keep_edits=arguments.keep_edits))
            else:
                reports.append(wrap(file, wrapping, dry_run=arguments.dry_run))
        except InputError:
            _tell(reports, dry_run=arguments.dry_run, as_json=arguments.json)
            raise
    _tell(reports, dry_run=arguments.dry_run, as_json=arguments.json)
    return 0


def _tell(reports: list[Report], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        if reports:
            print_json([{**_document(one), "dry_run": dry_run} for one in reports])
        return
    for report in reports:
        would = "would be " if dry_run and report.changed else ""
        for verb, names in (
            ("behind Interlock", report.wrapped),
            ("behind Interlock before", report.known),
            ("as before", report.restored),
        ):
            for name in names:
                print(f"{would if verb != 'behind Interlock before' else ''}{verb}: {safe(name)}")
        for name, why in report.left:
            print(f"interlock: `{safe(name)}` stays outside of Interlock: {safe(why)}", file=sys.stderr)
        print(f"{'changed' if report.changed and not dry_run else 'not changed'}: {safe(report.place)}")


def _document(report: Report) -> dict[str, object]:
    return {
        "file": report.place,
        "changed": report.changed,
        "wrapped": list(report.wrapped),
        "known": list(report.known),
        "restored": list(report.restored),
        "left": [{"server": name, "why": why} for name, why in report.left],
    }
