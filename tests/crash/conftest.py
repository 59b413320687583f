"""What the crash series came to, said once at the end of the run."""

from collections import Counter

import pytest

SERIES = "crash series"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many points were tried and how many of them failed, of all workers together."""
    total: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for name, told in report.user_properties:
                if name == SERIES:
                    kind, tally = told
                    total.update(tally)
                    kinds.setdefault(kind, Counter()).update(tally)
    if not kinds:
        return
    terminalreporter.section("crashes")
    for kind, tally in sorted(kinds.items()):
        terminalreporter.line(
            f"{kind}: {tally['tried']} points, {tally['again']} of them with a second crash in the recovery;"
            f" as before {tally['before']}, as after {tally['tried'] - tally['before']}; failures {tally['failures']}"
        )
    terminalreporter.line(f"kill points: {total['tried']}, failures: {total['failures']}")
