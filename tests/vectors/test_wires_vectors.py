"""The answers in `wires/` are read as their file of expectations says, and spliced as the committed files are."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from spec.model_answers import calls_in
from tests.fakes.model_answers import WIRES, request
from tests.vectors.make_wires import FORMS, HERE, REFUSED, WAYS, spliced

from interlock.boundary.lens.auditing import AnswerAudit, Passes

with open(os.path.join(HERE, "expected.json"), encoding="utf-8") as _file:
    EXPECTED: dict[str, Any] = json.load(_file)
RECORDED = [
    f"{wire}/recorded-{what}.{end}" for wire in WIRES for end in ("sse", "json") for what in ("call", "text")
]


def read(name: str) -> bytes:
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()


def test_every_file_is_expected() -> None:
    there = {f"{wire}/{name}" for wire in WIRES for name in os.listdir(os.path.join(HERE, wire))}
    assert there == {*EXPECTED, *RECORDED}


@pytest.mark.parametrize("name", [*EXPECTED, *RECORDED])
def test_a_vector_is_read_as_it_says(name: str) -> None:
    wire, data = name.partition("/")[0], read(name)
    audit = AnswerAudit(wire, json.dumps(request(wire)).encode())
    passed = b"".join(audit.feed(data[at : at + 50]) for at in range(0, len(data), 50))
    told = audit.finish()
    expected = EXPECTED.get(name)
    if isinstance(told, Passes):
        assert passed + told.rest == data
        assert expected == [] or name.rpartition("recorded-")[2].startswith("text")
        return
    assert calls_in(wire, passed) == set()
    assert calls_in(wire, passed + audit.over((REFUSED,) * len(told.calls))) == set()
    found = [(one.call_id, one.tool, False if one.fault else json.loads(one.arguments)) for one in told.calls]
    if expected is not None:
        assert [tuple(one) for one in expected] == found
    else:
        ((_, tool, arguments),) = found
        assert (tool, arguments) == ("bash", {"command": "ls -l"})
    if not any(one.fault for one in told.calls):
        assert passed + audit.released((None,) * len(told.calls)) == data
        assert audit.facts.whole or wire == "openai-chat"


@pytest.mark.parametrize("wire", WIRES)
def test_the_committed_spliced_answers_are_those_that_are_made(wire: str) -> None:
    for end, streamed in FORMS.items():
        for way in WAYS:
            assert read(f"spliced/{wire}-{way}.{end}") == spliced(wire, way, streamed=streamed)


def test_client_libraries_read_one_answer_with_the_usage_of_both() -> None:
    told = json.loads(read("spliced/read.json"))
    assert len(told) == len(WIRES) * len(FORMS) * len(WAYS)
    for name, got in told.items():
        way = name.partition(".")[0].rpartition("-")[2]
        assert got["calls"] == ([["edit", {"n": 1}]] if way == "call" else []), name
        assert got["tokens"] == (15 if way == "over" else 30), name
        assert ("the task does not name it" in got["text"]) is (way == "over"), name
        assert ("I look" in got["text"]) is name.endswith("sse"), name
