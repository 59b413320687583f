"""Step 3: each recorded call of a model names who answered, what it was asked and what it said, all by digest.

An oracle's call stands for itself; an exchange of the agent's own model stands between its request and its answer, and
must have the digests of both.

Source: KNOX §4.4, inference binding; docs/formats/evidence-v1.md §10.
"""

import re
from collections.abc import Mapping, Sequence

from interlock.verify.exchanges import wrong_exchange
from interlock.verify.judgements import Judgements, wrong_judgement
from interlock.verify.report import Flaw
from interlock.verify.walk import Header

_DIGEST = re.compile(r"[0-9a-f]{64}")
_WEIGHTS = re.compile(r"sha256:[0-9a-f]{64}")
_NO_ACTOR = re.compile(r"[^ !#-\[\]-~]")
_TEXTS = ("oracle", "provider", "model", "weights_hash", "engine", "sampling", "request", "answer", "fault")
_NEEDED = ("oracle", "provider", "model", "request")
_COUNTS = ("prompt_tokens", "completion_tokens", "calls", "elapsed_ms")
_FAULTS = frozenset(
    ("timeout", "status", "garbage", "too-large", "wrong-model", "no-key", "context", "budget", "unavailable")
)
_EVENTS = frozenset(
    ("model-asked", "exchange-recorded", "request-made", "response-received", "oracle-answered")
)


class Inferences:
    """What the walk saw of calls of models.

    Holds: `fault` is the first that is not of the form; it is kept and not raised, since a fault of the record, found
    later, weighs more. Nodes of the kind that tell of no event are passed over.
    """

    def __init__(self) -> None:
        self.count = 0
        self.fault: Flaw | None = None
        self._judgements = Judgements()
        self._requests: dict[int, object] = {}
        self._answers: dict[object, tuple[int, object]] = {}

    def add(
        self, first: int, headers: Sequence[Header], bodies: Sequence[Mapping[str, object] | None]
    ) -> None:
        """Check the next nodes; one whose payload was taken out is passed over."""
        for place, (header, body) in enumerate(zip(headers, bodies, strict=True)):
            event = None if body is None else body.get("event")
            if body is None and header[5] == b"inference":
                self._judgements.hide()
            if body is None or event not in _EVENTS:
                continue
            if event == "oracle-answered":
                if wrong := self._judgements.answered(body):
                    self._found(first + place, wrong)
                continue
            if event == "request-made":
                self._requests[first + place] = _digest_in(body.get("request"), "body_digest")
                continue
            if event == "response-received":
                self._ended(body)
                continue
            self.count += 1
            self._check(first + place, header, body)

    def _check(self, seq: int, header: Header, body: Mapping[str, object]) -> None:
        if header[5] != b"inference":
            wrong = "it is another kind of node"
        elif body["event"] == "model-asked":
            wrong = _wrong(header, body)
            record = body.get("inference")
            if not wrong and isinstance(record, dict):
                self._judgements.add(record)
        else:
            wrong = wrong_exchange(header, body) or self._unlike_its_request(header, body)
            self._answers[body.get("effect_id")] = (seq, body.get("answer", ""))
        if wrong:
            self._found(seq, wrong)

    def _unlike_its_request(self, header: Header, body: Mapping[str, object]) -> str:
        parent = int(header[6]) if header[6].isdigit() else -1
        asked = self._requests.get(
            parent, body.get("request")
        )  # one that was taken out is compared with nothing
        return "" if asked == body.get("request") else "it has another request's digest"

    def _ended(self, body: Mapping[str, object]) -> None:
        seq, said = self._answers.pop(body.get("effect_id"), (-1, ""))
        if seq >= 0 and _digest_in(body.get("response"), "digest") != said:
            self._found(seq, "it has another answer's digest")

    def _found(self, seq: int, wrong: str) -> None:
        if self.fault is None:
            self.fault = Flaw("inference", f"a call of a model: {wrong}", node=seq)


def _digest_in(record: object, key: str) -> object:
    return record.get(key, "") if isinstance(record, dict) else ""


def _wrong(header: Header, body: Mapping[str, object]) -> str:
    """Say what is wrong with a call's record, `""` where nothing is."""
    record = body.get("inference")
    if not isinstance(record, dict) or body.keys() != {"event", "inference"}:
        return "there is no record of it"
    texts = {key: record.get(key, "") for key in _TEXTS}
    counts = {key: record.get(key, 0) for key in _COUNTS}
    trimmed = record.get("trimmed", [])
    if unknown := record.keys() - texts.keys() - counts.keys() - {"trimmed", "judged"}:
        return f"an unknown field `{min(unknown)}`"
    if missing := [key for key in _NEEDED if not record.get(key)]:
        return f"`{missing[0]}` is missing"
    for key, text in texts.items():
        if not isinstance(text, str):
            return f"`{key}` is no text"
    for key, number in counts.items():
        if type(number) is not int or number < 0:
            return f"`{key}` is no count"
    if not isinstance(trimmed, list) or not all(isinstance(item, str) for item in trimmed):
        return "`trimmed` is no list of texts"
    if "judged" in record and (wrong := wrong_judgement(record["judged"])):
        return wrong
    return _unbound(header, texts, counts["calls"])


def _unbound(header: Header, texts: Mapping[str, str], calls: int) -> str:
    if not _DIGEST.fullmatch(texts["request"]):
        return "`request` is no digest"
    if texts["weights_hash"] and not _WEIGHTS.fullmatch(texts["weights_hash"]):
        return "`weights_hash` is no digest"
    if texts["fault"] and texts["fault"] not in _FAULTS:
        return "there is no such fault"
    if texts["fault"] and texts["answer"]:
        return "it failed, and has an answer"
    if not texts["fault"] and (not _DIGEST.fullmatch(texts["answer"]) or not calls):
        return "it has no answer, and did not fail"
    if header[0].decode() != _NO_ACTOR.sub("?", f"oracle:{texts['oracle']}")[:256]:
        return "another one acted than asked"
    return ""
