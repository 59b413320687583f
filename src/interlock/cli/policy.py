"""`interlock policy`: make, check or show a policy."""

from __future__ import annotations

import os
import sys

from interlock.cli.output import parser, print_json
from interlock.model.errors import InputError


def main(words: list[str]) -> int:
    """Run the verb; see `interlock policy --help`."""
    form = parser(
        "policy",
        "Make (`init`), check (`check`) or show (`show`) a policy.",
        "interlock policy init policy.yaml && interlock policy check policy.yaml",
        "0; 2 a mistake in the policy, with file, line and fix.",
    )
    form.add_argument("action", choices=("init", "check", "show"))
    form.add_argument("file", nargs="?", metavar="FILE", help="the policy (default: the one a run would use)")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock import policy
    from interlock.runtime.policies import find_policy

    if arguments.action == "init":
        return _init(
            arguments.file or os.path.join(os.path.expanduser("~"), ".config", "interlock", "policy.yaml")
        )
    loaded = find_policy(arguments.file, os.environ)
    if arguments.json:
        print_json({"name": loaded.name, "digest": loaded.digest, "text": loaded.text, "valid": True})
    elif arguments.action == "check":
        from interlock.runtime.home_files import hidden_globs

        print(f"{loaded.name}: no mistake found ({loaded.digest[:12]})")
        if loaded.detects:
            print(f"note: each file that is read is looked through for {', '.join(loaded.detects)}")
        for line in hidden_globs(loaded.home, exposed=loaded.sandbox.expose):
            print(f"note: {line}")
    else:
        print("\n".join(policy.explain(loaded)))
    return 0


def _init(path: str) -> int:
    from interlock.policy import template

    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(template())
    except FileExistsError:
        raise InputError(
            f"`{path}` is there already", hint=f"check it: interlock policy check {path}"
        ) from None
    except OSError as error:
        raise InputError(f"`{path}` cannot be written: {error.strerror}", hint="give another FILE") from error
    print(f"wrote {path}", file=sys.stderr)
    print(f"then: interlock run --policy {path} -- COMMAND", file=sys.stderr)
    return 0
