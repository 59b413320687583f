"""One call, one record: whatever a model says or fails to say is told to the ledger by digest, never by text."""

from hashlib import sha256

from interlock.model.inferences import Inference
from interlock.oracle.models.budget import Budget
from interlock.oracle.models.client import Completion, Identity, ModelClient, ModelError, Request, Usage


def recorded(
    client: ModelClient,
    request: Request,
    *,
    budget: Budget,
    deadline_s: float,
    oracle: str = "",
    trimmed: tuple[str, ...] = (),
) -> tuple[Completion | ModelError, Inference]:
    """Put a request to a model within the budget of its scope.

    Takes: `oracle`, the name of who asks (`changed` can set it later); `trimmed`, what the prompt had to leave out.
    Returns: the answer, or the error where there is none, and the record of the call; a call that the budget did not
    admit has a record with `calls=0`.
    Holds: raises nothing of a model's.
    """
    began = budget.clock()
    answer = b""
    usage = Usage()
    attempts = 0
    identity: Identity | None = None
    outcome: Completion | ModelError
    try:
        left_s = budget.admit(client, request, deadline_s)
        identity = client.identity
        attempts = 1
        outcome = client.complete(request, deadline_s=left_s)
        answer = outcome.text.encode("utf-8", "backslashreplace")
        usage, attempts = outcome.usage, outcome.attempts
    except ModelError as error:
        outcome = error
        usage, attempts = error.usage, error.attempts
    elapsed_s = max(0.0, budget.clock() - began)
    if attempts:
        budget.charge(usage=usage, price=client.price, seconds=elapsed_s, calls=attempts)
    who = identity if identity is not None else _told(client)
    return outcome, Inference(
        oracle=oracle,
        provider=who.provider,
        model=who.model,
        weights_hash=who.weights_hash,
        engine=who.engine,
        sampling=who.sampling,
        request=request.digest(),
        answer=sha256(answer).hexdigest() if isinstance(outcome, Completion) else "",
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        calls=attempts,
        elapsed_ms=round(elapsed_s * 1000),
        fault=outcome.kind if isinstance(outcome, ModelError) else "",
        trimmed=trimmed,
    )


def _told(client: ModelClient) -> Identity:
    """Return who would have answered, as far as it can be told: a file of weights may be gone."""
    try:
        return client.identity
    except ModelError:
        return Identity(provider="unknown", model="unknown")
