"""Step 3 of verification: a call of a model is bound to who answered, or the bundle is not believed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.vectors.cases_models import asked
from tests.vectors.edits import honest
from tests.vectors.forge import tar

from interlock.monitor.writing import oracle_actor
from interlock.verify import Report, verify_path


def judged(path: Path, **fields: object) -> Report:
    items = asked()
    seq = next(seq for seq, item in enumerate(items) if item.kind == "inference")
    record = items[seq].payload["inference"]
    assert isinstance(record, dict)
    changed = {key: value for key, value in {**record, **fields}.items() if value is not None}
    items[seq] = replace(items[seq], payload={**items[seq].payload, "inference": changed})
    bundle = path / "bundle.tar"
    bundle.write_bytes(tar(honest(items=items, heads=(3,), outcome="nothing-committed").files()))
    return verify_path(str(bundle))


def test_a_call_as_it_was_passes_the_step(tmp_path: Path) -> None:
    report = judged(tmp_path)
    assert (report.verdict, report.checks[2].status) == ("complete", "pass")


@pytest.mark.parametrize(
    "fields",
    [
        {"model": None},
        {"provider": ""},
        {"request": "12"},
        {"request": "AB" * 32},
        {"fault": "gave up"},
        {"answer": "34" * 32},
        {"weights_hash": "md5:00"},
        {"prompt_tokens": -1},
        {"calls": True},
        {"elapsed_ms": "1"},
        {"trimmed": "notes.md"},
        {"trimmed": [1]},
        {"engine": 1},
        {"prompt": "what was asked"},
        {"oracle": "visor:local"},
    ],
)
def test_a_call_of_another_form_is_tampered(tmp_path: Path, fields: dict[str, object]) -> None:
    report = judged(tmp_path, **fields)
    assert (report.verdict, report.reason, report.node) == ("tampered", "inference", 7), report.detail


@pytest.mark.parametrize(
    "name", ["human", "answers:é.yaml", 'a"b\\c', "all(" + "seeing:a, " * 60 + ")", "\n"]
)
def test_an_oracle_of_any_name_is_an_actor_that_a_header_can_carry(name: str) -> None:
    actor = oracle_actor(name)
    assert re.fullmatch(r"[ !#-\[\]-~]{1,256}", actor)
    assert actor.startswith("oracle:")
    assert actor == "oracle:human" or name != "human"
