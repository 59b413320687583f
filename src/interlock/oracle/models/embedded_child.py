"""The process that computes an embedded model's answers: it can be killed, and then the time is really up.

It is started with nothing of the monitor's environment. Frames come in on descriptor 0 and go out on a copy of
descriptor 1: four bytes of length, then JSON. It ends when nobody writes to it any more, whatever it computes then.
"""

import json
import os
import secrets
import sys
import tempfile
from queue import Queue
from threading import Thread
from typing import Any, BinaryIO

_LENGTH_BYTES = 4
_FRAME_LIMIT_BYTES = 32 << 20


def main() -> None:
    """Read the settings, load the weights, and answer requests until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    frames: Queue[Any] = Queue()
    Thread(target=_listen, args=(sys.stdin.buffer, frames), daemon=True).start()
    settings = frames.get()
    if settings["folder"]:
        sys.path.insert(0, settings["folder"])
    try:
        server = _load(settings)
    except Exception as error:  # noqa: BLE001 - what an engine raises is its own; its type is told
        _write(out, {"fault": f"the engine did not start: {type(error).__name__}"})
        return
    _write(out, {"ready": True})
    while True:
        _write(out, _answer(server, frames.get()))


def _load(settings: dict[str, Any]) -> Any:
    import xllamacpp  # type: ignore[import-untyped,import-not-found,unused-ignore]

    params = xllamacpp.CommonParams()
    params.model.path = f"/proc/self/fd/{settings['weights']}"
    params.n_ctx = settings["context_tokens"]
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    # What was computed for one prompt would change the last digits, and so the words, of the next answer.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.warmup = False
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 0
    # The engine opens a door of its own. It gets one in a folder of ours, with a word that nobody knows, and the door
    # is taken away at once: nobody but we may ask.
    with tempfile.TemporaryDirectory(prefix="interlock-model-") as folder:
        params.hostnames = [os.path.join(folder, "door.sock")]
        params.api_keys = [secrets.token_hex(32)]
        return xllamacpp.Server(params)


def _answer(server: Any, request: Any) -> object:
    try:
        return {"answer": server.handle_chat_completions(request)}
    except Exception as error:  # noqa: BLE001 - what an engine raises is its own; its type is told
        return {"fault": f"the engine failed: {type(error).__name__}"}


def _listen(source: BinaryIO, frames: "Queue[Any]") -> None:
    while True:
        head = source.read(_LENGTH_BYTES)
        size = int.from_bytes(head, "big")
        if len(head) < _LENGTH_BYTES or size > _FRAME_LIMIT_BYTES:
            os._exit(0)
        frames.put(json.loads(source.read(size)))


def _write(out: BinaryIO, value: object) -> None:
    body = json.dumps(value).encode()
    out.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    out.flush()


if __name__ == "__main__":
    main()
