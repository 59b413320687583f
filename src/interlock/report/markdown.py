"""A report as Markdown: the same sections as the page, for a file beside others."""

from collections.abc import Iterable, Sequence

from interlock.report import words
from interlock.report.account import Account
from interlock.report.rates import Rate, percent


def markdown(accounts: Sequence[Account], rates: Sequence[Rate], threshold: str, above: Sequence[str]) -> str:
    """Return the report's text. Takes: `threshold`, as the user gave it; `above`, guards that blocked more often."""
    lines = ["# Exit report", ""]
    lines += [f"- {one}" for one in words.PROVES]
    lines += ["", "## How often each guard blocked", ""]
    rows = [
        (one.guard, str(one.looked), str(one.blocked), percent(one.share), str(one.undecided))
        for one in rates
    ]
    lines += _table(("guard", "actions", "blocked", "share", "not decided by it"), rows)
    if threshold:
        said = f"above it: {', '.join(above)}" if above else "none is above it"
        lines += ["", f"Threshold: {threshold}; {said}."]
    for account in accounts:
        lines += ["", *_one(account)]
    return "\n".join(lines) + "\n"


def _one(account: Account) -> Iterable[str]:
    verified = account.verified
    yield f"## Run {account.run or _line(account.source)}"
    yield ""
    yield f"**{verified.verdict}.** {words.VERDICTS[verified.verdict]}"
    if broken := words.broke(account):
        yield f"Broken: {_line(broken)}"
    yield ""
    yield from _table(
        ("", ""),
        [
            ("asked", words.shown(account.task)),
            ("command", words.shown(account.command)),
            ("begun", words.when(account)),
            ("outcome", f"{verified.outcome or 'none'}"),
            ("policy", words.shown(account.policy)),
            ("plan", f"signed by {', '.join(verified.signers)}" if account.plan else "none"),
            ("oracle", words.shown(account.oracle)),
            ("nodes", f"{verified.nodes}, {account.hidden} without their payload"),
            ("key", verified.public_key),
            ("sealed by", f"{verified.level}. {words.LEVELS.get(verified.level, '')}"),
        ],
    )
    if account.plan:
        yield ""
        yield "### What the manifest allowed"
        for title, text in account.plan:
            yield ""
            yield f"{_line(title)}:"
            yield ""
            yield from (f"    {line}" for line in text.splitlines())
    yield from _section(
        "Blocked and held",
        ("node", "what", "fate", "guard", "rule", "why", "who"),
        [
            (str(one.seq), one.object, one.fate, one.guard, one.rule, one.reason, one.by)
            for one in account.kept
        ],
        account.more.get("kept", 0),
    )
    yield from _section(
        "Disclosures",
        ("sender", "recipient", "subject", "information", "on what terms", "judged", "by", "provision"),
        [
            (*(value for _name, value in one.flow), one.label, one.by, one.provision)
            for one in account.disclosed
        ],
        account.more.get("disclosed", 0),
    )
    yield from _section(
        "Models",
        ("who asked", "model", "calls", "tokens", "bound to"),
        [(one.role, one.name, str(one.calls), str(one.tokens), one.bound) for one in account.models],
        0,
    )
    yield from _section("What the kernel enforced", ("part", "as installed"), list(account.receipt), 0)
    yield from _section("Stopped", ("why",), [(one,) for one in account.interrupts], 0)
    yield from _section(
        "Checks of the evidence",
        ("check", "found", "reason"),
        [(one.name, one.status.value, one.reason) for one in verified.checks],
        0,
    )


def _section(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], more: int) -> Iterable[str]:
    if not rows:
        return
    yield ""
    yield f"### {title}"
    yield ""
    yield from _table(heads, rows)
    if more:
        yield f"\n{more} more are counted and not listed."


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(heads) + " |",
        "| " + " | ".join("---" for _ in heads) + " |",
        *("| " + " | ".join(_line(cell) for cell in row) + " |" for row in rows),
    ]


def _line(text: str) -> str:
    """Return text that stands in one cell and is not read as Markdown or HTML."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    for char in "\\`*_{}[]<>|#":
        flat = flat.replace(char, "\\" + char)
    return flat
