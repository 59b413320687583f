"""Honest ledgers that the vectors and the fuzzer start from."""

from tests.vectors.forge import Item


def small() -> list[Item]:
    """Every kind but the branches, in the shape of a run that held something and refused something."""
    return [
        Item(
            kind="prompt",
            parent=None,
            actor="principal",
            payload={"task": "mend the parser", "é": ["\u2028", "\x7f", "\x01"]},
        ),
        Item(kind="apm", parent=0, payload={"policy": "coding", "limits": {"a": -1, "b": 9007199254740991}}),
        Item(kind="agent_step", parent=1, actor="agent", payload={"argv": ["agent", "run"]}),
        Item(kind="inference", parent=2, actor="agent", payload={"model": "m", "tokens": 12}),
        Item(
            kind="tool_output",
            parent=2,
            actor="agent",
            payload={"reads": [{"path": "a,e[.]:e", "staged": False}]},
        ),
        Item(kind="tool_call", parent=2, actor="agent", payload={"path": "src/parser.py", "mode": 420}),
        Item(kind="check", parent=5, payload={"guard": "rules"}, verdict="release"),
        Item(kind="tool_output", parent=6, payload={"staged": True, "text": None}),
        Item(kind="tool_call", parent=2, actor="agent", payload={"path": ".git/hooks/pre-commit"}),
        Item(kind="check", parent=8, payload={"guard": "rules"}, verdict="refuse"),
        Item(kind="blocked", parent=9, payload={"rule": "no-hooks"}, verdict="refuse"),
        Item(kind="tool_call", parent=2, actor="agent", payload={"path": "Makefile"}),
        Item(kind="check", parent=11, payload={"guard": "provenance"}, verdict="defer"),
        Item(kind="deferred", parent=12, verdict="defer", payload={"effect": "e3"}),
        Item(
            kind="resolution",
            parent=13,
            actor="oracle:human",
            verdict="release",
            payload={"answer": "release"},
        ),
        Item(kind="interrupt", parent=2, payload={"trigger": "timeout"}),
        Item(kind="final_output", parent=2, actor="agent", payload={"exit": 0}),
    ]


def branching() -> list[Item]:
    """Two sub-agents, and enough nodes for a head that no barrier asked for."""
    items = [
        Item(kind="prompt", parent=None, actor="principal", payload={"task": "two things"}),
        Item(kind="apm", parent=0),
        Item(kind="agent_step", parent=1, branches=(3, 4)),
        Item(kind="agent_branch", parent=2, actor="agent:1"),
        Item(kind="agent_branch", parent=2, actor="agent:2"),
    ]
    for seq in range(5, 300):
        items.append(
            Item(kind="inference", parent=3 + seq % 2, actor=f"agent:{1 + seq % 2}", payload={"n": seq})
        )
    return items
