"""A desk as a user may run one: it takes signed questions, and answers with its own key what a test decides."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from nacl.signing import SigningKey, VerifyKey
from tests.fakes.http_service import Service

Deciding = Callable[[dict[str, Any]], "dict[str, Any] | None"]
"""A question to fields of its answer that are other than usual; None while nobody has decided."""

QUESTION = "application/vnd.interlock.question+json"
ANSWER = "application/vnd.interlock.answer+json"


def signed_text(kind: str, payload: bytes) -> bytes:
    return f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload


def envelope(key: SigningKey, payload: bytes, kind: str = ANSWER) -> dict[str, Any]:
    signature = key.sign(signed_text(kind, payload)).signature
    return {
        "payloadType": kind,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": "desk", "sig": base64.b64encode(signature).decode()}],
    }


class Desk:
    """Takes: `decide`; `at_once`, whether it answers the post itself; `signs`, a key to sign with other than its own.

    Holds: `questions` that it took, each signed by `asker` or it would have been turned away.
    """

    def __init__(
        self, asker: bytes, decide: Deciding, *, at_once: bool = False, signs: SigningKey | None = None
    ) -> None:
        self.key = SigningKey.generate()
        self.questions: dict[str, tuple[bytes, dict[str, Any]]] = {}
        self.looked = 0
        self._asker = VerifyKey(asker)
        self._decide = decide
        self._at_once = at_once
        self._signs = signs or self.key
        self.service = Service(self._served)

    @property
    def public(self) -> str:
        return base64.b64encode(bytes(self.key.verify_key)).decode()

    def answer(self, mark: str) -> dict[str, Any] | None:
        payload, question = self.questions[mark]
        decided = self._decide(question)
        if decided is None:
            return None
        usual = {
            "version": 1,
            "mark": mark,
            "question": sha256(payload).hexdigest(),
            "expires_at": int(time.time()) + 60,
            "answers": [],
        }
        return envelope(self._signs, json.dumps({**usual, **decided}).encode())

    def _served(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if method == "POST":
            record = json.loads(body)
            assert record["payloadType"] == QUESTION
            payload = base64.b64decode(record["payload"])
            (signature,) = record["signatures"]
            self._asker.verify(signed_text(QUESTION, payload), base64.b64decode(signature["sig"]))
            question = json.loads(payload)
            self.questions[question["mark"]] = (payload, question)
            if self._at_once:
                return 200, self.answer(question["mark"])
            return 202, {}
        self.looked += 1
        mark = path.rsplit("/", 1)[1]
        if mark not in self.questions:
            return 404, {}
        answer = self.answer(mark)
        return (204, None) if answer is None else (200, answer)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_error: object) -> None:
        self.service.close()


def releasing(*effects: str, **more: Any) -> Deciding:
    """Return a desk's mind: it releases these effects and refuses the others."""

    def decide(question: dict[str, Any]) -> dict[str, Any]:
        ids = [one["effect"]["id"] for one in question["effects"]]
        return {
            "answers": [
                {"effect": one, "decision": "release" if one in effects else "refuse", "reason": "seen"}
                for one in ids
            ],
            **more,
        }

    return decide
