"""A monitor whose runs lie below a test's own folder, and what their ledgers say."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from interlock import Monitor
from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle import Question
from interlock.runtime.story import Fate, RunStory, tell
from interlock.sdk.scope import Scope
from interlock.verify import read_nodes, verify_path

TASK = "send the summary to ann@a.test"
MAIL: dict[str, Any] = {"effect": "send", "steers": {"to": "email"}, "carries": ["body"], "asks": ["send"]}
READ: dict[str, Any] = {"effect": "read", "carries": ["query"]}


@contextmanager
def quick_folder() -> Iterator[str]:
    """Give a folder in memory where there is such a place: each run waits a dozen times for its disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        yield folder


class Answers:
    """An oracle that says the same on every effect, and remembers what it was asked."""

    def __init__(self, *, releases: bool = True, name: str = "test") -> None:
        self.name = name
        self.releases = releases
        self.questions: list[Question] = []

    def resolve(self, question: Question) -> OracleAnswered:
        self.questions.append(question)
        decision = Decision.RELEASE if self.releases else Decision.REFUSE
        return OracleAnswered(
            oracle=self.name,
            answers=tuple(
                Answer(effect_id=effect.id, decision=decision, reason="as the test says")
                for effect, _verdict in question.deferred
            ),
        )


def monitor(**options: Any) -> Monitor:
    return Monitor(**{"task": TASK, **options})


def story(scope: Scope) -> RunStory:
    """Verify a run's ledger with a replay, and tell it."""
    report = verify_path(f"{scope.path}/ledger", replay=True)
    assert report.verdict == "complete", report
    return tell(scope.path)


def fates(scope: Scope) -> list[tuple[str, Fate]]:
    return [(one.effect.object.removeprefix("tool:"), one.fate) for one in story(scope).effects.values()]


def results(scope: Scope) -> list[dict[str, Any]]:
    """Return what the ledger holds of what came back, in order."""
    payloads: list[Any] = [node.payload or {} for node in read_nodes(f"{scope.path}/ledger")]
    return [payload["result"] for payload in payloads if "result" in payload]


def later(**options: Any) -> dict[str, Any]:
    """Return the roles of a call that waits for its scope's end."""
    return {**MAIL, "parks": True, **options}
