"""What the report says of each step, and what it never says."""

import re
import subprocess
import sys
from pathlib import Path

from tests.vectors.forge import Files, Forge, tar
from tests.vectors.stories import small

from interlock.verify import REASONS, verify_path


def judge(tmp_path: Path, files: Files) -> dict[str, tuple[str, str]]:
    (tmp_path / "b.tar").write_bytes(tar(files))
    report = verify_path(str(tmp_path / "b.tar"))
    return {check.name: (check.status.value, check.reason) for check in report.checks} | {
        "verdict": (report.verdict.value, report.reason)
    }


def test_a_complete_ledger_passes_what_can_be_checked(tmp_path: Path) -> None:
    assert judge(tmp_path, Forge(items=small()).files()) == {
        "evidence": ("pass", ""),
        "chain": ("pass", ""),
        "inference binding": ("not checked", "no-inference-evidence"),
        "policy consistency": ("pass", ""),
        "topology": ("pass", ""),
        "replay": ("not checked", "not-asked"),
        "manifest": ("not checked", "no-plan"),
        "verdict": ("complete", "ok"),
    }


def test_without_a_seal_the_evidence_step_is_not_passed(tmp_path: Path) -> None:
    said = judge(tmp_path, Forge(items=small(), sealed=False).files())
    assert said["evidence"] == ("not checked", "no-seal")
    assert said["chain"] == ("pass", "")
    assert said["verdict"] == ("unfinished", "no-seal")


def test_what_was_not_reached_is_not_passed(tmp_path: Path) -> None:
    files = Forge(items=small()).files()
    files["nodes/00000000.jsonl"] = files["nodes/00000000.jsonl"].replace(b'"agent"', b'"human"', 1)
    said = judge(tmp_path, files)
    assert said["evidence"] == ("pass", "")
    assert said["chain"] == ("fail", "chain")
    assert said["policy consistency"] == said["topology"] == ("not checked", "not-reached")


def test_a_fault_of_the_record_weighs_more_than_one_of_its_meaning(tmp_path: Path) -> None:
    items = small()
    items[5] = type(items[5])(kind="check", parent=4)
    files = Forge(items=items).files()
    assert judge(tmp_path, files)["verdict"] == ("tampered", "parent-kind")
    broken = bytearray(files["payloads/00000000.jsonl"])
    broken[-20] ^= 1
    assert judge(tmp_path, {**files, "payloads/00000000.jsonl": bytes(broken)})["verdict"][1] != "parent-kind"


def test_the_report_names_run_key_and_level(tmp_path: Path) -> None:
    forge = Forge(items=small(), run="run-7")
    (tmp_path / "b.tar").write_bytes(tar(forge.files()))
    report = verify_path(str(tmp_path / "b.tar"))
    assert report.run_id == "run-7"
    assert report.public_key == bytes(forge.key.verify_key).hex()
    assert (report.level, report.outcome, report.nodes) == ("software", "committed", 17)


def test_a_replay_is_not_passed_where_payloads_are_gone(tmp_path: Path) -> None:
    files = Forge(items=small()).files()
    rows = files["payloads/00000000.jsonl"].splitlines(keepends=True)
    rows[3] = b'{"removed":true,"seq":3}\n'
    (tmp_path / "b.tar").write_bytes(tar({**files, "payloads/00000000.jsonl": b"".join(rows)}))
    report = verify_path(str(tmp_path / "b.tar"), replay=True)
    assert report.verdict == "complete"
    assert (report.checks[5].status, report.checks[5].reason) == ("not checked", "payloads-removed")
    assert "1 payloads" in report.detail


def test_the_format_document_lists_every_reason() -> None:
    text = (Path(__file__).parents[2] / "docs/formats/evidence-v1.md").read_text(encoding="utf-8")
    listed = re.findall(r"`([a-z-]+)`", text.split("## 8. Reasons")[1].split("Without fault")[0])
    assert len(listed) == len(set(listed))
    assert set(listed) == REASONS


def test_the_verifier_loads_neither_the_writer_nor_the_network(tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_bytes(tar(Forge(items=small()).files()))
    code = (
        "import sys\nfrom interlock.verify import read_nodes, verify_path\n"
        "assert verify_path(sys.argv[1]).verdict == 'complete'\nlist(read_nodes(sys.argv[1]))\n"
        "rooms = {'evidence', 'boundary', 'staging', 'oracle', 'runtime', 'cli'}\n"
        "refused = {f'interlock.{room}' for room in rooms} | {'socket', '_socket', 'ssl', 'http'}\n"
        "print(sorted(refused & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "b.tar")], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"
