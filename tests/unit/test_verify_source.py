"""Where bundles come from: folders with things that do not belong there, paths that are none."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.vectors.forge import Files, Forge, tar
from tests.vectors.stories import small

from interlock.model.errors import InputError
from interlock.verify import read_nodes, read_witness, verify_path


def files() -> Files:
    return Forge(items=small(), heads=(3, 9)).files()


def lay_out(root: Path, content: Files) -> Path:
    for name, body in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return root


def _link_file(root: Path) -> None:
    target = root.parent / "elsewhere"
    shutil.move(root / "seal.dsse.json", target)
    (root / "seal.dsse.json").symlink_to(target)


def _link_folder(root: Path) -> None:
    target = root.parent / "elsewhere"
    shutil.move(root / "nodes", target)
    (root / "nodes").symlink_to(target)


def _fifo(root: Path) -> None:
    (root / "heads.note").unlink()
    os.mkfifo(root / "heads.note")


def _folder(root: Path) -> None:
    (root / "sigs/00000001.bin").mkdir()


def _strange_folder(root: Path) -> None:
    (root / "extra").mkdir()


@pytest.mark.parametrize("plant", [_link_file, _link_folder, _fifo, _folder, _strange_folder])
def test_links_folders_and_special_files_are_refused(plant: Callable[[Path], None], tmp_path: Path) -> None:
    root = lay_out(tmp_path / "l", files())
    assert verify_path(str(root)).verdict == "complete"
    plant(root)
    report = verify_path(str(root))
    assert (report.verdict, report.reason) == ("tampered", "file-type")


@pytest.mark.parametrize(
    "name", ["README", "nodes/1.jsonl", "nodes/00000000.jsonl~", "sigs/00000000.jsonl", "index.sqlite", "n\n"]
)
def test_foreign_files_are_refused(name: str, tmp_path: Path) -> None:
    root = lay_out(tmp_path / "l", {**files(), name: b"x"})
    assert verify_path(str(root)).reason == "file-extra"


@pytest.mark.parametrize("name", sorted(files()))
def test_every_file_is_needed(name: str, tmp_path: Path) -> None:
    root = lay_out(tmp_path / "l", files())
    (root / name).unlink()
    report = verify_path(str(root))
    expected = "unfinished" if name == "seal.dsse.json" else "tampered"
    assert report.verdict == expected


@pytest.mark.parametrize("name", sorted(files()))
def test_every_file_may_break_off_anywhere_and_is_never_accepted(name: str, tmp_path: Path) -> None:
    content = files()
    root = lay_out(tmp_path / "l", content)
    for size in range(0, len(content[name]), max(1, len(content[name]) // 40)):
        (root / name).write_bytes(content[name][:size])
        assert verify_path(str(root)).verdict == "tampered", size


def test_folder_and_file_say_the_same(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "l", files())
    (tmp_path / "l.tar").write_bytes(tar(files()))
    assert verify_path(str(root)) == verify_path(str(tmp_path / "l.tar"))
    assert list(read_nodes(str(root))) == list(read_nodes(str(tmp_path / "l.tar")))


def test_a_path_that_is_none_is_an_input_error(tmp_path: Path) -> None:
    for call in (verify_path, lambda path: list(read_nodes(path)), read_witness):
        with pytest.raises(InputError) as caught:
            call(str(tmp_path / "nowhere"))
        assert caught.value.hint
    with pytest.raises(InputError):
        read_witness(str(tmp_path))
    (tmp_path / "w").write_bytes(b"no note")
    with pytest.raises(InputError):
        read_witness(str(tmp_path / "w"))


def test_a_device_is_no_bundle() -> None:
    assert verify_path("/dev/null").reason == "file-type"


def test_a_line_without_end_does_not_fill_memory(tmp_path: Path) -> None:
    import resource

    content = files()
    root = lay_out(tmp_path / "l", content)
    for name in ("nodes/00000000.jsonl", "payloads/00000000.jsonl", "heads.note", "seal.dsse.json"):
        with open(root / name, "r+b") as file:
            file.truncate(4 << 30)  # sparse
            file.seek(0)
            file.write(b"{" * 10)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert verify_path(str(root)).verdict == "tampered"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10
        (root / name).write_bytes(content[name])


def test_witnessed_heads_up_to_the_end_are_told(tmp_path: Path) -> None:
    forge = Forge(items=small(), heads=(3, 9), sealed=False)
    root = lay_out(tmp_path / "l", forge.files())
    (tmp_path / "w").write_bytes(forge.note(9) + forge.note(17) + forge.note(3))
    heads = read_witness(str(tmp_path / "w"))
    assert [head.count for head in heads] == [9, 17, 3]
    report = verify_path(str(root), witness=heads)
    assert report.verdict == "unfinished"
    assert "truncation" not in report.detail
