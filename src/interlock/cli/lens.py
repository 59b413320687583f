"""`interlock lens`: list, show or test the lenses that name requests, or say what one request is to them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.policy.lenses.trying import LensFile

_ANY_HOST = "lens.example.com"
"""Where the examples of a lens that is for no host by itself are tried."""
DIFFERS = 1


def main(words: list[str]) -> int:
    """Run the verb; see `interlock lens --help`."""
    form = parser(
        "lens",
        "List, show or test the lenses that name the actions in requests, or say what one request is.",
        "interlock lens test own-lens.yaml; interlock lens explain github 'POST https://api.github.com/user/repos'",
        "0; 1 an example of the lens came out otherwise; 2 a mistake in the lens, with line and fix.",
    )
    form.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "show", "test", "explain"),
        help="list (the default): those that ship; show NAME; test NAME|FILE: its own examples; explain LENS REQUEST",
    )
    form.add_argument(
        "words", nargs="*", metavar="NAME|FILE", help="which lens, and `METHOD URL` for explain"
    )
    form.add_argument(
        "--host", action="append", default=[], help="at which host, for a lens that is for none by itself"
    )
    form.add_argument("--body", help="of the request to explain; JSON, unless `--header` says otherwise")
    form.add_argument(
        "--header", action="append", default=[], metavar="NAME:VALUE", help="of the request to explain"
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    given = form.parse_args(words)
    wanted = {"list": 0, "show": 1, "test": 1, "explain": 2}[given.action]
    if len(given.words) != wanted:
        form.error(f"{given.action} takes {('nothing', 'one NAME or FILE', 'a lens and a request')[wanted]}")
    if given.action == "list":
        return _list(as_json=given.json)
    hosts = tuple(given.host)
    if given.action == "show":
        return _show(given.words[0], hosts, as_json=given.json)
    if given.action == "test":
        return _test(given.words[0], hosts, as_json=given.json)
    return _explain(
        _load(given.words[0], hosts), given.words[1], given.body, given.header, as_json=given.json
    )


def _load(use: str, hosts: tuple[str, ...]) -> LensFile:
    from interlock.runtime import lenses

    return lenses.load(use, hosts=hosts)


def _list(*, as_json: bool) -> int:
    from interlock.runtime import lenses

    known = [(name, lenses.load(name, hosts=(_ANY_HOST,))) for name in lenses.shipped()]
    if as_json:
        print_json(
            [
                {"name": name, "about": each.about, "actions": [one.name for one in each.lens.actions]}
                for name, each in known
            ]
        )
        return 0
    width = max(len(name) for name, _ in known)
    for name, each in known:
        count = len(each.lens.actions)
        print(f"{name:<{width}}  {count:>2} action{'s' if count > 1 else ' '}  {each.about}")
    return 0


def _show(use: str, hosts: tuple[str, ...], *, as_json: bool) -> int:
    from interlock.runtime import lenses

    path = lenses.path_of(use, os.getcwd())
    if not as_json:
        from interlock.runtime.policies import read_text

        sys.stdout.write(read_text(path, "lens", "see those that ship: interlock lens list"))
        return 0
    read = _load(use, hosts or (_ANY_HOST,))
    print_json({"name": read.lens.name, "about": read.about, **read.kept})
    return 0


def _test(use: str, hosts: tuple[str, ...], *, as_json: bool) -> int:
    read = _load(use, hosts)
    bad = [one for one in read.tried if not one.holds]
    if as_json:
        print_json(
            {
                "lens": read.lens.name,
                "actions": len(read.lens.actions),
                "examples": [
                    {"request": one.name, "wanted": one.wanted, "came": one.came, "holds": one.holds}
                    for one in read.tried
                ],
                "differ": len(bad),
            }
        )
        return DIFFERS if bad else 0
    for one in read.tried:
        print(
            f"{'holds  ' if one.holds else 'differs'}  {safe(one.wanted.partition(' ')[0])}  {safe(one.name)}"
        )
        if not one.holds:
            print(f"         wanted: {safe(one.wanted)}\n         came:   {safe(one.came)}")
    print(
        f"{read.lens.name}: {len(read.lens.actions)} actions, {len(read.tried)} examples, "
        f"{len(bad) or 'none'} of them {'differs' if len(bad) == 1 else 'differ'}"
    )
    return DIFFERS if bad else 0


def _explain(read: LensFile, line: str, body: str | None, headers: list[str], *, as_json: bool) -> int:
    from interlock.policy.lenses.recognising import recognise
    from interlock.policy.lenses.trying import request_of

    fields = {name.strip(): value.strip() for name, _, value in (one.partition(":") for one in headers)}
    if body is not None and not any(name.lower() == "content-type" for name in fields):
        fields["content-type"] = "application/json"
    request = request_of(line, fields, body, [])
    if request is None:
        raise InputError(
            f"`{line}` is not a request", hint="write it as in 'POST https://api.example.com/items'"
        )
    recognised = recognise((read.lens,), request)
    if recognised is None:
        if as_json:
            print_json({"lens": read.lens.name, "action": None})
        else:
            print("no action: it is decided as it would be without the lens")
        return 0
    call, action = recognised
    role = next(one for one in read.roles if one.name == call.tool)
    if as_json:
        print_json(
            {
                "lens": read.lens.name,
                "action": call.tool,
                "operation": action.operation,
                "effect": role.effect,
                "arguments": call.arguments,
                "steers": [name for name, _ in (*role.steers, *role.acts)],
                "carries": list(role.carries),
                "unread": action.unread,
            }
        )
        return 0
    print(f"{call.tool} ({role.effect})")
    print(f"  arguments: {safe(call.arguments)}")
    print(
        f"  steered by: {', '.join(name for name, _ in (*role.steers, *role.acts)) or 'nothing that is declared'}"
    )
    print(f"  carries: {', '.join(role.carries) or 'nothing'}")
    if action.unread:
        print("  what steers it cannot be read, so nothing vouches for it")
    return 0
