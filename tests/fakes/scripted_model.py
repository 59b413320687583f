"""A model that says what a test wrote down for it, and remembers what it was shown."""

from collections.abc import Callable, Iterable

from interlock.oracle.models import (
    Completion,
    Identity,
    ModelError,
    Price,
    Request,
    Usage,
    estimated_tokens,
)

Said = str | ModelError | Completion
Script = Iterable[Said] | Callable[[Request], Said]

IDENTITY = Identity(provider="scripted", model="scripted-1", engine="tests", sampling="none")


class ScriptedModel:
    """Answers from a list, in order, or by a function of the request; an error in the script is raised.

    Holds: a script that ran out answers nothing more: `unavailable`.
    """

    def __init__(
        self,
        script: Script,
        *,
        identity: Identity = IDENTITY,
        context_tokens: int = 8192,
        price: Price | None = None,
    ) -> None:
        self.identity = identity
        self.context_tokens = context_tokens
        self.price = Price() if price is None else price
        self._answer: Callable[[Request], Said]
        if callable(script):
            self._answer = script
        else:
            lines = iter(script)
            self._answer = lambda _request: next(lines, ModelError("unavailable", "the script ran out"))
        self.requests: list[Request] = []
        self.deadlines_s: list[float] = []

    def complete(self, request: Request, *, deadline_s: float) -> Completion:
        self.requests.append(request)
        self.deadlines_s.append(deadline_s)
        said = self._answer(request)
        if isinstance(said, ModelError):
            raise said
        if isinstance(said, Completion):
            return said
        usage = Usage(
            prompt_tokens=request.estimated_tokens(),
            completion_tokens=estimated_tokens(said),
        )
        return Completion(text=said, usage=usage, model=self.identity.model, finish="stop")
