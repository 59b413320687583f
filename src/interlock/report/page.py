"""A report as one HTML page: no script, nothing fetched, fit to print."""

from collections.abc import Iterable, Sequence
from html import escape

from interlock.report import words
from interlock.report.account import Account
from interlock.report.graph import svg
from interlock.report.rates import Rate, percent

_STYLE = """
body{font:15px/1.45 sans-serif;color:#111;max-width:1080px;margin:2em auto;padding:0 1em}
h1{font-size:1.6em}h2{margin-top:2em;border-top:2px solid #111;padding-top:.6em}h3{margin:1.4em 0 .4em}
table{border-collapse:collapse;width:100%;font-size:13px}th,td{border:1px solid #bbb;padding:4px 7px;text-align:left;
vertical-align:top;overflow-wrap:break-word;max-width:30em}th{background:#f2f2f2}
pre{margin:0;white-space:pre-wrap;font:12px monospace}
.verdict{font-size:1.15em;padding:.5em .8em;border-left:6px solid}.complete{border-color:#2a7d3c;background:#eef7f0}
.unfinished{border-color:#b57b00;background:#fdf6e6}.tampered{border-color:#a11;background:#fbe9e7}
.graph{overflow-x:auto;border:1px solid #ddd;padding:8px}.small{color:#444;font-size:13px}
@media print{body{max-width:none;margin:0}h2{break-before:page}h2:first-of-type{break-before:auto}tr{break-inside:avoid}
.graph{overflow:visible;border:0}.graph svg{max-width:100%;height:auto}}
"""
_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Exit report</title>'
)
_FATES = {
    "open": "held, not answered",
    "released": "released by an oracle",
    "refused": "refused",
    "blocked": "blocked",
}


def page(accounts: Sequence[Account], rates: Sequence[Rate], threshold: str, above: Sequence[str]) -> str:
    """Return the page. Takes: `threshold`, as the user gave it; `above`, guards that blocked more often."""
    parts = [_HEAD, f"<style>{_STYLE}</style></head><body><h1>Exit report</h1>"]
    parts += [f'<p class="small">{escape(one)}</p>' for one in words.PROVES]
    parts.append("<h2>How often each guard blocked</h2>")
    parts.append(
        _table(
            ("guard", "actions", "blocked", "share", "not decided by it"),
            [
                (one.guard, str(one.looked), str(one.blocked), percent(one.share), str(one.undecided))
                for one in rates
            ],
        )
    )
    if threshold:
        said = f"above it: {', '.join(above)}" if above else "none is above it"
        parts.append(f"<p>Threshold: {escape(threshold)}; {escape(said)}.</p>")
    if len(accounts) > 1:
        parts.append(f"<p>Over {len(accounts)} runs.</p>")
    for account in accounts:
        parts += _one(account)
    parts.append("</body></html>\n")
    return "".join(parts)


def _one(account: Account) -> Iterable[str]:
    verified = account.verified
    yield f"<h2>Run {escape(account.run or account.source)}</h2>"
    yield (
        f'<p class="verdict {verified.verdict}"><b>{verified.verdict}</b>. {escape(words.VERDICTS[verified.verdict])}'
        f"{_broken(account)}</p>"
    )
    yield _table(
        (),
        [
            ("asked", words.shown(account.task)),
            ("command", words.shown(account.command)),
            ("begun", words.when(account)),
            ("outcome", verified.outcome or "none"),
            ("policy", words.shown(account.policy)),
            ("plan", f"signed by {', '.join(verified.signers)}" if account.plan else "none"),
            ("who answered what was held", words.shown(account.oracle)),
            ("promises that the machine could not keep", ", ".join(account.degraded) or "none"),
            ("nodes", f"{verified.nodes:,}, {account.hidden:,} without their payload"),
            ("key", verified.public_key),
            ("sealed by", f"{verified.level}. {words.LEVELS.get(verified.level, '')}"),
        ],
    )
    yield "<h3>What happened, as a graph</h3>"
    yield f'<div class="graph">{svg(account)}</div>'
    if account.plan:
        rows = "".join(
            f"<tr><th>{escape(title)}</th><td><pre>{escape(_flat(text))}</pre></td></tr>"
            for title, text in account.plan
        )
        yield f"<h3>What the manifest allowed</h3><table>{rows}</table>"
    yield _section(
        "Blocked and held",
        ("node", "what", "fate", "guard", "rule", "why", "who answered"),
        [
            (
                str(one.seq),
                one.object,
                _FATES.get(one.fate, one.fate),
                one.guard,
                one.rule,
                one.reason,
                one.by,
            )
            for one in account.kept
        ],
        account.more.get("kept", 0),
        "Nothing was blocked or held.",
    )
    yield _section(
        "Disclosures",
        ("sender", "recipient", "subject", "information", "on what terms", "judged", "by", "provision"),
        [
            (*(value for _name, value in one.flow), one.label, one.by, one.provision)
            for one in account.disclosed
        ],
        account.more.get("disclosed", 0),
        "No disclosure was looked at by a regulation guard.",
    )
    yield _section(
        "Models",
        ("who asked", "model", "calls", "tokens", "bound to"),
        [(one.role, one.name, str(one.calls), f"{one.tokens:,}", one.bound) for one in account.models],
        0,
        "No call of a model is on record.",
    )
    if account.interrupts:
        yield _section("Stopped", ("why",), [(one,) for one in account.interrupts], 0, "")
    yield _section(
        "What the kernel enforced", ("part", "as installed"), account.receipt, 0, "No receipt is on record."
    )
    yield _section(
        "Checks of the evidence",
        ("check", "found", "reason"),
        [(one.name, one.status.value, one.reason) for one in verified.checks],
        0,
        "",
    )


def _broken(account: Account) -> str:
    broken = words.broke(account)
    return f"<br>Broken: {escape(broken)}" if broken else ""


def _section(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], more: int, none: str) -> str:
    body = _table(heads, rows) if rows else f"<p>{escape(none)}</p>"
    rest = f"<p>{more:,} more are counted and not listed.</p>" if more else ""
    return f"<h3>{escape(title)}</h3>{body}{rest}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "<tr>" + "".join(f"<th>{escape(one)}</th>" for one in heads) + "</tr>" if heads else ""
    lines = []
    for row in rows:
        cells = [f"<td>{escape(_flat(cell))}</td>" for cell in row]
        if not heads:
            cells[0] = f"<th>{escape(row[0])}</th>"
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return f"<table>{top}{''.join(lines)}</table>"


def _flat(text: str) -> str:
    """Return text without what is not seen: controls and marks of direction could make it read otherwise."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)
