"""Vectors of meaning and of packing: a dishonest signer's graphs, and broken archives."""

from collections.abc import Iterator

from tests.vectors.edits import Vector, honest, tampered, with_item
from tests.vectors.forge import Files, Item, tar, tar_entry


def shapes() -> Iterator[Vector]:
    """A dishonest or faulty signer: all hashes and signatures hold, the meaning does not."""

    def patched(seq: int, old: bytes, new: bytes) -> list[Item]:
        return with_item(seq, patch=lambda line: line.replace(old, new, 1))

    cases: list[tuple[str, str, list[Item], int, str]] = [
        (
            "header-duplicate",
            "duplicate-key",
            patched(5, b'"kind"', b'"kind":"check","kind"'),
            5,
            "a key twice",
        ),
        ("header-space", "non-canonical", patched(5, b',"kind"', b', "kind"'), 5, "white space"),
        ("header-field", "header", patched(5, b'"verdict"', b'"v":1,"verdict"'), 5, "a field too many"),
        (
            "header-verdict",
            "header",
            patched(5, b'"verdict":""', b'"verdict":"allow"'),
            5,
            "an unknown verdict",
        ),
        ("header-zero", "header", patched(5, b'"seq":5', b'"seq":05'), 5, "a number with a leading zero"),
        ("header-text", "header", patched(5, b'{"actor"', b'"actor"'), 5, "no JSON"),
        ("sequence-gap", "sequence", patched(5, b'"seq":5', b'"seq":6'), 5, "a gap"),
        ("kind-unknown", "kind", with_item(5, kind="tool_cull"), 5, "an unknown kind"),
        ("parent-forward", "parent-order", with_item(5, parent=9), 5, "a parent that comes later"),
        ("parent-self", "parent-order", with_item(5, parent=5), 5, "its own parent"),
        ("parent-none", "parent-kind", with_item(5, parent=None), 5, "a second root"),
        ("root-kind", "parent-kind", with_item(0, kind="apm"), 0, "a root that is no prompt"),
        ("prompt-twice", "parent-kind", with_item(5, kind="prompt"), 5, "a second prompt"),
        ("check-astray", "parent-kind", with_item(6, parent=4), 6, "a check that hangs off no call"),
        ("blocked-astray", "parent-kind", with_item(10, parent=8), 10, "a block that hangs off no check"),
        ("after-interrupt", "parent-kind", with_item(16, parent=15), 16, "a node after an interrupt"),
        ("output-refused", "parent-verdict", with_item(10, kind="tool_output"), 10, "output after a refusal"),
        ("check-refused", "parent-verdict", with_item(10, kind="check"), 10, "a check after a refusal"),
        (
            "blocked-released",
            "parent-verdict",
            with_item(9, verdict="release"),
            10,
            "a block after a release",
        ),
        (
            "deferred-released",
            "parent-verdict",
            with_item(12, verdict="release"),
            13,
            "a deferral after a release",
        ),
        (
            "blocked-missing",
            "blocked-missing",
            with_item(10, kind="agent_step", parent=2),
            9,
            "a refusal without a block",
        ),
        ("branch-missing", "branch-missing", with_item(2, branches=(40,)), 2, "a branch that never came"),
        ("branch-other", "branch-missing", with_item(2, branches=(5,)), 5, "a branch that is something else"),
        ("branch-order", "branch-order", with_item(2, branches=(9, 8)), 2, "branches out of order"),
        ("branch-back", "branch-order", with_item(2, branches=(1,)), 2, "a branch that came before"),
        (
            "branch-unlisted",
            "branch-unlisted",
            with_item(3, kind="agent_branch"),
            3,
            "a branch that nobody sent",
        ),
    ]
    for name, reason, items, node, why in cases:
        yield tampered(name, reason, honest(items=items).files(), node, f"signed, but {why}")


def archives(base: Files) -> Iterator[Vector]:
    """The one-file form."""

    def broken(name: str, reason: str, content: bytes, why: str) -> Vector:
        return Vector(name=name, why=why, content=content, verdict="tampered", reason=reason)

    whole = tar(base)
    yield broken("archive-empty", "archive", b"", "nothing at all")
    yield broken("archive-text", "archive", b"not an archive\n" * 100, "no archive")
    yield broken("archive-short", "archive", whole[:-512], "the end breaks off")
    yield broken("archive-cut", "archive", whole[:1536], "the middle breaks off")
    yield broken("archive-long", "archive", whole + b"\0", "a byte after the end")
    link = tar_entry("seal.dsse.json", b"", type_flag=b"2", link=b"/etc/passwd") + bytes(1024)
    parts = [tar_entry(name, base[name]) for name in sorted(base) if name != "seal.dsse.json"]
    yield broken("archive-link", "archive", b"".join(parts) + link, "a symbolic link")
    yield broken("archive-twice", "archive", b"".join([*parts[:1], *parts]) + bytes(1024), "an entry twice")
    yield broken(
        "archive-climbing",
        "file-extra",
        tar_entry("../seal.dsse.json", b"x") + bytes(1024),
        "a name that climbs out",
    )
    yield broken(
        "archive-absolute", "file-extra", tar_entry("/etc/passwd", b"x") + bytes(1024), "an absolute name"
    )
    yield broken(
        "file-extra", "file-extra", tar({**base, "README.md": b"hello"}), "a file that does not belong"
    )
    yield broken(
        "file-temporary", "file-extra", tar({**base, "heads.note.tmp": b""}), "sealed, with a leftover"
    )
    yield broken(
        "segment-missing",
        "file-missing",
        tar({**base, "nodes/00000002.jsonl": b""}),
        "a gap between segments",
    )
    yield broken("note-large", "file-size", tar({**base, "heads.note": b"x" * 5000}), "a note of 5,000 bytes")
