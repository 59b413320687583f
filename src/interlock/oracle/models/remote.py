"""A model behind HTTP: asked strictly, repeated with patience, and believed only in what fits."""

import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import parsedate_to_datetime

import orjson

from interlock.model.records import dataclass
from interlock.oracle.models.client import (
    Completion,
    Identity,
    ModelError,
    Price,
    Request,
    Usage,
    estimated_tokens,
)
from interlock.oracle.models.exchange import Answered, Call, exchange
from interlock.oracle.models.keys import KeySource, without_key
from interlock.oracle.models.schemas import AnswerError, check_schema
from interlock.oracle.models.wires import Endpoint, Heard, Wire, WireError, answer_of, is_same_model

_PASSING = frozenset((408, 429, 500, 502, 503, 504, 529))
"""Statuses that may be another one the next time."""
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_SAID_CHARACTERS = 200
_TOO_LONG = (
    b"context_length",
    b"context length",
    b"context size",
    b"context window",
    b"prompt is too long",
    b"maximum number of tokens",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a model is dealt with.

    Takes: `timeout_s`, for one call with its repetitions; `answers_as`, another name that it may answer with.
    """

    timeout_s: float = 60.0
    retries: int = 2
    context_tokens: int = 128_000
    price: Price = Price()
    seed: int | None = None
    answers_as: str = ""
    proxy: str = ""
    ca: str = ""


class RemoteModel:
    """A model of a provider. Takes: `name`, the user's own for it; `key`, None where it needs none.

    Holds: the key is read anew for each call and kept nowhere; an answer that is not wholly of the form that was asked
    for is an error.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        wire: Wire,
        *,
        key: KeySource | None = None,
        terms: Terms | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.key = key
        self.terms = Terms() if terms is None else terms
        self._wire = wire
        self._pause = pause
        self.identity = Identity(
            provider=endpoint.provider,
            model=endpoint.model,
            engine=endpoint.base_url,
            sampling=endpoint.sampling,
        )

    @property
    def context_tokens(self) -> int:
        """Return how many tokens prompt and answer have together at most."""
        return self.terms.context_tokens

    @property
    def price(self) -> Price:
        """Return what a call costs."""
        return self.terms.price

    def complete(self, request: Request, *, deadline_s: float) -> Completion:
        """Answer within so many seconds, repetitions counted. Raises: ModelError."""
        until = time.monotonic() + min(deadline_s, self.terms.timeout_s)
        if self.terms.seed is not None and request.seed is not None:
            request = replace(request, seed=self.terms.seed)
        schema = request.answer_schema()
        if schema is not None:
            check_schema(schema)
        # The count is a guess on the safe side: only what cannot fit at all is not sent.
        if request.estimated_tokens() // 2 > self.terms.context_tokens:
            raise ModelError(
                "context",
                f"the prompt does not fit into the {self.terms.context_tokens} tokens of `{self.name}`",
                hint="show less, or set `context_tokens`",
            )
        key = self.key.text() if self.key is not None else ""
        sent = self._wire.write(self.endpoint, request, key)
        body = orjson.dumps(writable(sent.document))
        attempts = 0
        while True:
            attempts += 1
            call = Call(
                url=self.endpoint.base_url + sent.path,
                body=body,
                headers=sent.headers,
                deadline_s=max(0.001, until - time.monotonic()),
                proxy=self.terms.proxy,
                ca=self.terms.ca,
            )
            try:
                answered = exchange(call)
            except ModelError as error:
                failure, asked_s = error, None
                passing = error.kind == "unavailable"
            else:
                if answered.status == 200:
                    return self._heard(request, answered, attempts, key)
                failure, asked_s = self._status(answered, key), _retry_after(answered)
                passing = answered.status in _PASSING
            pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (attempts - 1))
            pause_s = max(pause_s, asked_s or 0.0)
            if not passing or attempts > self.terms.retries or time.monotonic() + pause_s >= until:
                raise self._named(failure, attempts)
            self._pause(pause_s)

    def _named(self, error: ModelError, attempts: int) -> ModelError:
        times = f" ({attempts} times)" if attempts > 1 else ""
        named = ModelError(
            error.kind, f"`{self.name}`: {error.message}{times}", hint=error.hint, attempts=attempts
        )
        named.__cause__ = error.__cause__
        return named

    def _status(self, answered: Answered, key: str) -> ModelError:
        said = _one_line(answered.body, key)
        if answered.status in (400, 413) and any(word in answered.body.lower() for word in _TOO_LONG):
            return ModelError(
                "context", "the prompt does not fit", hint="set `context_tokens` to what it takes"
            )
        hints = {
            401: "check the key",
            403: "check the key and what it may do",
            404: "check `base_url` and `model`",
            429: "too many calls: wait, or raise the limit there",
        }
        hint = hints.get(answered.status, "no redirect is followed" if 300 <= answered.status < 400 else "")
        return ModelError(
            "status",
            f"it answered {answered.status}",
            hint="; ".join(part for part in (hint, f"it says: {said}" if said else "") if part),
        )

    def _heard(self, request: Request, answered: Answered, attempts: int, key: str) -> Completion:
        usage = Usage()
        try:
            heard = self._read(answered, request)
            usage = heard.usage or _guessed(request, heard.text)
            if not self._is_asked(heard.model):
                raise ModelError(
                    "wrong-model",
                    f"another model answered than `{self.endpoint.model}`",
                    hint=f"set `answers_as` if this is the same: {_one_line(heard.model.encode(), key)[:80]}",
                    usage=usage,
                )
            text = answer_of(heard, request)
        except (WireError, AnswerError) as error:
            raise ModelError(
                "garbage",
                f"`{self.name}`: the answer cannot be used: {error}",
                attempts=attempts,
                usage=usage,
            ) from error
        except ModelError as error:
            named = self._named(error, attempts)
            named.usage = error.usage
            raise named from error
        return Completion(text=text, usage=usage, model=heard.model, finish=heard.finish, attempts=attempts)

    def _read(self, answered: Answered, request: Request) -> Heard:
        try:
            document = orjson.loads(answered.body)
        except orjson.JSONDecodeError as error:
            raise WireError("it is no JSON") from error
        return self._wire.read(document, request)

    def _is_asked(self, answered: str) -> bool:
        return is_same_model(self.endpoint.model, answered) or (
            bool(self.terms.answers_as) and is_same_model(self.terms.answers_as, answered)
        )


def _guessed(request: Request, text: str) -> Usage:
    return Usage(prompt_tokens=request.estimated_tokens(), completion_tokens=estimated_tokens(text))


def _retry_after(answered: Answered) -> float | None:
    """Return how many seconds the provider asks to wait, None where it says nothing that can be read."""
    told = answered.headers.get("retry-after", "").strip()
    if told.isdecimal() and len(told) < 7:
        return float(told)
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _one_line(body: bytes, key: str) -> str:
    """Return the beginning of what a provider said as one harmless line, without the key."""
    text = without_key(body[: 8 * _SAID_CHARACTERS].decode("utf-8", "replace"), key)
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= _SAID_CHARACTERS else line[:_SAID_CHARACTERS] + "…"


def writable(value: object) -> object:
    """Return a document whose texts are all whole characters: half of one cannot be sent."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {str(key): writable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [writable(one) for one in value]
    return value
