"""The execution graph as one SVG picture: a column a branch, runs of nodes folded into one box with their count."""

from collections.abc import Mapping
from html import escape

from interlock.report.account import Account

_COLUMNS = 12
"""More branches are folded into one column."""
_WIDE, _HIGH, _GAP_X, _GAP_Y, _TOP = 168, 30, 24, 12, 40
_ORDER = (
    "prompt", "apm", "agent_step", "agent_branch", "inference", "tool_call", "check", "deferred", "resolution",
    "blocked", "tool_output", "interrupt", "final_output",
)  # fmt: skip
_STOPPED = {"blocked", "interrupt"}
_WORDS = {
    "prompt": "the task", "apm": "manifest, policy", "agent_step": "steps of an agent", "agent_branch": "a sub-agent",
    "inference": "calls of models", "tool_call": "actions", "check": "checks of guards",
    "deferred": "held for an oracle",
    "resolution": "answers and intents", "blocked": "blocked", "tool_output": "results", "interrupt": "stopped",
    "final_output": "the end",
}  # fmt: skip


def svg(account: Account) -> str:
    """Return the picture, which needs nothing but itself; its text is escaped."""
    columns = list(account.branches[:_COLUMNS])
    if rest := account.branches[_COLUMNS:]:
        folded: dict[str, int] = {}
        for _name, kinds in rest:
            for kind, count in kinds.items():
                folded[kind] = folded.get(kind, 0) + count
        columns.append((f"{len(rest)} more", folded))
    boxes: list[str] = []
    deepest = 0
    for number, (name, kinds) in enumerate(columns):
        left = number * (_WIDE + _GAP_X) + 2
        boxes.append(_text(left, 18, name or "the agent", "head"))
        if number:
            # Each branch was dispatched from the first column.
            boxes.append(
                f'<path d="M {_WIDE + 2} {_TOP + _HIGH / 2} H {left + _WIDE / 2} V {_TOP}" class="line"/>'
            )
        present = [kind for kind in _ORDER if kinds.get(kind)]
        deepest = max(deepest, len(present))
        boxes += _column(left, present, kinds)
    wide = max(len(columns), 1) * (_WIDE + _GAP_X)
    high = _TOP + deepest * (_HIGH + _GAP_Y) + 4
    total = sum(sum(kinds.values()) for _name, kinds in account.branches)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img"'
        f' aria-label="the execution graph: {total} nodes in {len(account.branches)} branches">'
        "<style>.box{fill:#fff;stroke:#555}.stop{fill:#fbe3e0;stroke:#a11}.line{fill:none;stroke:#999}"
        "text{font:12px sans-serif;fill:#111}.head{font-weight:bold}.count{text-anchor:end}</style>"
        + "".join(boxes)
        + "</svg>"
    )


def _column(left: int, present: list[str], kinds: Mapping[str, int]) -> list[str]:
    drawn: list[str] = []
    for row, kind in enumerate(present):
        top = _TOP + row * (_HIGH + _GAP_Y)
        if row:
            middle = left + _WIDE // 2
            drawn.append(f'<path d="M {middle} {top - _GAP_Y} V {top}" class="line"/>')
        look = "stop" if kind in _STOPPED else "box"
        drawn.append(f'<rect x="{left}" y="{top}" width="{_WIDE}" height="{_HIGH}" rx="4" class="{look}"/>')
        drawn.append(_text(left + 8, top + 19, _WORDS[kind], ""))
        drawn.append(_text(left + _WIDE - 8, top + 19, f"{kinds[kind]:,}", "count"))
    return drawn


def _text(x: float, y: float, text: str, look: str) -> str:
    short = text if len(text) <= 26 else text[:25] + "…"
    return f'<text x="{x}" y="{y}" class="{look}">{escape(short)}</text>'
