"""Whatever lies in a reference's place, or comes from Git, is judged or counts as unknown; nothing raises."""

import os
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.events import Staging
from interlock.model.places import Place, path_text
from interlock.policy.executable import facets_of
from interlock.runtime.git_commits import Branches
from interlock.runtime.git_reading import Entry, UnreadableError, _entries
from interlock.staging.roots import StagedRoot

parts = st.sampled_from(
    [
        b"HEAD",
        b"packed-refs",
        b"refs",
        b"heads",
        b"replace",
        b"reftable",
        b".git",
        b"worktrees",
        b"x",
        b"\xff\\\n",
    ]
)
paths = st.lists(parts, min_size=1, max_size=6).map(b"/".join)
ids = st.sampled_from([b"a" * 40, b"B" * 64, b"0" * 40, b"c" * 39])
contents = st.one_of(
    st.binary(max_size=100),
    st.tuples(ids, st.sampled_from([b"", b"\n", b" refs/heads/x\n", b"\0", b" x"])).map(b"".join),
    st.just(b"ref: refs/heads/x\n"),
)


@settings(max_examples=int(os.environ.get("INTERLOCK_EXAMPLES", "25")), deadline=None)
@given(paths, contents, st.sampled_from(list(FileType)), st.sampled_from(list(ChangeKind)))
def test_any_reference_is_judged_or_unknown(
    path: bytes, content: bytes, type_: FileType, kind: ChangeKind
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lower, upper = Path(folder, "lower"), Path(folder, "upper")
        for side in (lower, upper):
            (side / ".git" / "objects").mkdir(parents=True)
        target = os.path.join(os.fsencode(upper), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.isdir(target):
            with open(target, "wb") as file:
                file.write(content)
        root = StagedRoot(name="workspace", lower=str(lower), upper=str(upper), mode=Staging.COPY)
        change = FileChange(
            kind=kind,
            place=Place(root="workspace", path=path_text(path)),
            after=FileStamp(type=type_, mode=0o644, uid=0, gid=0, size_bytes=1),
        )
        marked = Branches().marked(root, change)
    # no commit is there, so that nothing can be found in one
    assert marked.brings == ()
    assert not marked.brings_unknown or "unjudged" in {facet.kind for facet in facets_of(marked)}


@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.one_of(
                st.just(b":100644 000000 " + b"a" * 40 + b" " + b"0" * 40 + b" D"), st.binary(max_size=9)
            ),
            max_size=6,
        ).map(b"\0".join),
    )
)
def test_any_answer_of_git_is_read_or_refused(data: bytes) -> None:
    try:
        found = list(_entries(data))
    except (UnreadableError, ValueError):
        return
    assert all(isinstance(one, Entry) and one.path for one in found)


def test_hostile_names_in_a_tree_are_told_as_text() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lower, upper = Path(folder, "lower"), Path(folder, "upper")
        for side in (lower, upper):
            subprocess.run(["git", "init", "-q", "-b", "main", str(side)], check=True)
        blob = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"],
            cwd=upper,
            check=True,
            capture_output=True,
            input=b"import evil\n",
        ).stdout.strip()
        names = (b"\xff\n\x1b.pth", b"-x.pth", b":y.pth", b"\\z.pth", b"a b.pth")
        tree = subprocess.run(
            ["git", "mktree", "-z"],
            cwd=upper,
            check=True,
            capture_output=True,
            input=b"".join(b"100644 blob " + blob + b"\t" + name + b"\0" for name in names),
        ).stdout.strip()
        made = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.test", "commit-tree", "-m", "x", tree],
            cwd=upper,
            check=True,
            capture_output=True,
        ).stdout
        (upper / ".git" / "refs" / "heads" / "main").write_bytes(made)
        root = StagedRoot(name="workspace", lower=str(lower), upper=str(upper), mode=Staging.COPY)
        change = FileChange(
            kind=ChangeKind.CREATE,
            place=Place(root="workspace", path=".git/refs/heads/main"),
            after=FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1),
        )
        marked = Branches().marked(root, change)
    assert {one.path for one in marked.brings} == {path_text(name) for name in names}
    assert not marked.brings_unknown
