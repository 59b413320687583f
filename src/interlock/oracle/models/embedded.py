"""A model on this machine: GGUF weights on the processor, in a process of its own, offline."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from interlock.model.records import dataclass
from interlock.oracle.models.client import Completion, Identity, Kind, ModelError, Price, Request, Usage
from interlock.oracle.models.schemas import AnswerError, check_schema
from interlock.oracle.models.weights import Weights, engine_identity, find_in_package, mark_of, open_weights
from interlock.oracle.models.wire_openai import OpenAIWire
from interlock.oracle.models.wires import Endpoint, WireError, answer_of, counted, usage_of

ENGINE = "xllamacpp"
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "embedded_child.py")
"""It imports nothing of Interlock, and is started by its path: where this runs from does not matter."""
_LENGTH_BYTES = 4
_ANSWER_LIMIT_BYTES = 8 << 20
_PROVIDER = "embedded"
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", "OMP_NUM_THREADS": "1"}
"""All that the child sees of an environment: no key can be in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """Where a model on this machine lies. Takes: `file`, or the `package` that carries one."""

    file: str = ""
    package: str = ""
    context_tokens: int = 4096
    threads: int = 1
    timeout_s: float = 60.0
    seed: int | None = None


class EmbeddedModel:
    """A model on this machine.

    Holds: the weights are read through the descriptor that was hashed, so the answer is theirs; a call that takes too
    long is killed; the same request gets the same bytes.
    """

    price = Price()

    def __init__(self, name: str, local: Local) -> None:
        self.name = name
        self.local = local
        self.context_tokens = local.context_tokens
        self._weights: Weights | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._asked = Lock()
        self._looked = Lock()

    @property
    def identity(self) -> Identity:
        """Return who answers; the file is hashed when this is first asked for. Raises: ModelError."""
        weights = self._opened()
        return Identity(
            provider=_PROVIDER,
            model=os.path.basename(weights.path),
            weights_hash=weights.digest,
            engine=engine_identity(),
            sampling=f"temperature 0, the request's seed, no cache, threads {self.local.threads},"
            f" context {self.context_tokens}, the weights' own chat template: the same"
            " bytes each time",
        )

    def close(self) -> None:
        """End the process and close the weights."""
        self._end()
        if self._weights is not None:
            os.close(self._weights.number)
            self._weights = None

    def complete(self, request: Request, *, deadline_s: float) -> Completion:
        """Answer within so many seconds, the loading of the weights counted. Raises: ModelError."""
        until = time.monotonic() + min(deadline_s, self.local.timeout_s)
        schema = request.answer_schema()
        if schema is not None:
            check_schema(schema)
        weights = self._opened()
        if self.local.seed is not None and request.seed is not None:
            request = replace(request, seed=self.local.seed)
        endpoint = Endpoint(provider=_PROVIDER, base_url="", model=os.path.basename(weights.path))
        document = {**OpenAIWire().write(endpoint, request, "").document, "cache_prompt": False}
        if not self._asked.acquire(timeout=max(0.0, until - time.monotonic())):
            raise self._failed("timeout", "it was busy with another question until the time was up")
        try:
            self._start(weights, until)
            answer = self._exchange(_halves_escaped(document), until)
        except ModelError:
            self._end()
            raise
        except (OSError, ValueError) as error:
            self._end()
            raise self._failed("unavailable", "the engine's process broke off") from error
        finally:
            self._asked.release()
        return self._heard(request, answer, endpoint.model)

    def _opened(self) -> Weights:
        """Return the weights, opened and hashed anew where the file is another than before."""
        path = self.local.file or find_in_package(self.local.package)
        with self._looked:
            if self._weights is not None:
                try:
                    found = os.stat(path)
                except OSError:
                    found = None
                is_there = found is not None and (found.st_dev, found.st_ino) == self._weights.mark[:2]
                if is_there and mark_of(self._weights.number) == self._weights.mark:
                    return self._weights
                self.close()
            self._weights = open_weights(path)
            return self._weights

    def _start(self, weights: Weights, until: float) -> None:
        if self._child is not None and self._child.poll() is None:
            return
        self._end()
        engine_identity()  # says how to install it, where it is missing
        self._child = subprocess.Popen(
            [sys.executable, "-I", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(_ENVIRONMENT),
            cwd="/",
            pass_fds=(weights.number,),
            start_new_session=True,
        )
        settings = {
            "weights": weights.number,
            "context_tokens": self.local.context_tokens,
            "threads": self.local.threads,
            "folder": _engine_folder(),
        }
        self._exchange(settings, until)

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not written yet is for nobody
                    pipe.close()
        child.wait()

    def _exchange(self, value: Mapping[str, object], until: float) -> dict[str, object]:
        """Write a frame and read the next one."""
        assert self._child is not None
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        body = json.dumps(value).encode()
        self._write(self._child.stdin.fileno(), len(body).to_bytes(_LENGTH_BYTES, "big") + body, until)
        reader = self._child.stdout.fileno()
        size = int.from_bytes(self._read(reader, _LENGTH_BYTES, until), "big")
        if size > _ANSWER_LIMIT_BYTES:
            raise self._failed("too-large", f"the answer is larger than {_ANSWER_LIMIT_BYTES >> 20} MiB")
        answer = json.loads(self._read(reader, size, until))
        if not isinstance(answer, dict):
            raise self._failed("garbage", "the engine answers what is no answer")
        if "fault" in answer:
            raise self._failed("unavailable", str(answer["fault"]))
        return answer

    def _write(self, number: int, body: bytes, until: float) -> None:
        os.set_blocking(number, False)
        view = memoryview(body)
        while view:
            self._wait(number, select.POLLOUT, until)
            view = view[os.write(number, view[: 64 << 10]) :]

    def _read(self, number: int, size: int, until: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait(number, select.POLLIN, until)
            piece = os.read(number, size - len(found))
            if not piece:
                raise self._failed("unavailable", "the engine's process ended")
            found += piece
        return bytes(found)

    def _wait(self, number: int, what: int, until: float) -> None:
        poll = select.poll()
        poll.register(number, what)
        rest_s = until - time.monotonic()
        if rest_s <= 0 or not poll.poll(rest_s * 1000):
            raise self._failed("timeout", "no answer came in time, and its process was killed")

    def _heard(self, request: Request, answer: Mapping[str, object], model: str) -> Completion:
        document = answer.get("answer")
        if isinstance(document, dict) and isinstance(document.get("error"), dict):
            kind = document["error"].get("type")
            if kind == "exceed_context_size_error":
                raise self._failed("context", f"the prompt does not fit into {self.context_tokens} tokens")
            raise self._failed("unavailable", "the engine refused the request")
        try:
            heard = OpenAIWire().read(document, request)
            text = answer_of(heard, request)
        except (WireError, AnswerError) as error:
            said = document.get("usage") if isinstance(document, dict) else None
            raise self._failed(
                "garbage", f"the answer cannot be used: {error}", usage=_usage(said)
            ) from error
        return Completion(text=text, usage=heard.usage or Usage(), model=model, finish=heard.finish)

    def _failed(self, kind: Kind, message: str, *, usage: Usage | None = None) -> ModelError:
        hints = {
            "timeout": "raise `timeout_s`, or ask a smaller model",
            "context": "show less, or raise `context_tokens`",
            "unavailable": "interlock models check NAME",
        }
        return ModelError(
            kind, f"`{self.name}`: {message}", hint=hints.get(kind, ""), attempts=1, usage=usage
        )


def _usage(said: object) -> Usage:
    try:
        found = usage_of(counted(said, "prompt_tokens"), counted(said, "completion_tokens"))
    except WireError:
        found = None
    return found or Usage()


def _engine_folder() -> str:
    """Return the folder that holds the engine, since the child is started without the monitor's own search path."""
    from importlib.util import find_spec

    spec = find_spec(ENGINE)
    if spec is None or spec.origin is None:
        return ""
    return os.path.dirname(os.path.dirname(spec.origin))


def _halves_escaped(value: object) -> dict[str, object]:
    from interlock.oracle.models.remote import writable

    whole = writable(value)
    assert isinstance(whole, dict)
    return whole
