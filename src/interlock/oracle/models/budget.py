"""What the questions of one scope may cost; past it the answer is refuse."""

import time
from collections.abc import Callable
from threading import Lock

from interlock.model.records import dataclass
from interlock.oracle.models.client import ModelClient, ModelError, Price, Request, Usage

_HINT = "what was deferred is refused; raise it under `budget:` in models.yaml, or ask a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one scope may cost, None for no limit.

    Takes: `tokens`, of prompts and answers together; `seconds`, of waiting for answers; `money_micros`, millionths of
    a USD.
    """

    calls: int | None = 20
    tokens: int | None = 200_000
    seconds: float | None = 300.0
    money_micros: int | None = None


class Budget:
    """What is left of the limits of one scope; shared by all who ask in it.

    Holds: counts only grow. A call that failed counts with its tokens, its time and its repetitions.
    """

    def __init__(self, limits: Limits | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = Limits() if limits is None else limits
        self.clock = clock
        self.calls = 0
        self.tokens = 0
        self.seconds = 0.0
        self.money_micros = 0
        self._lock = Lock()

    def renewed(self) -> "Budget":
        """Return the budget of the next scope: the same limits, nothing spent."""
        return Budget(self.limits, clock=self.clock)

    def admit(self, client: ModelClient, request: Request, deadline_s: float) -> float:
        """Let one more call pass.

        Returns: how many seconds it may take. Raises: ModelError of the kind `budget`, if the scope's budget is spent
        or the prompt alone is more than what is left of it.
        """
        limits = self.limits
        if limits.calls is not None and self.calls >= limits.calls:
            raise _spent(f"{limits.calls} calls")
        least = Usage(prompt_tokens=request.estimated_tokens() // 2)
        if limits.tokens is not None and self.tokens + least.prompt_tokens >= limits.tokens:
            raise _spent(f"{limits.tokens} tokens")
        if limits.seconds is not None and self.seconds >= limits.seconds:
            raise _spent(f"{limits.seconds:g} s")
        if limits.money_micros is not None and (
            self.money_micros + client.price.of(least) >= limits.money_micros
        ):
            raise _spent(f"{limits.money_micros / 1_000_000:g} USD")
        left = deadline_s if limits.seconds is None else limits.seconds - self.seconds
        return min(deadline_s, left)

    def charge(self, *, usage: Usage, price: Price, seconds: float, calls: int) -> None:
        """Count what a call took. Takes: `calls`, how often it was sent."""
        with self._lock:
            self.calls += max(calls, 1)
            self.tokens += usage.prompt_tokens + usage.completion_tokens
            self.seconds += seconds
            self.money_micros += price.of(usage)


def _spent(limit: str) -> ModelError:
    return ModelError("budget", f"the scope's budget of {limit} is spent", hint=_HINT)
