"""What is counted of what nothing keeps in HOME."""

from interlock.runtime.thrown_away import ThrownAway


def test_files_are_counted_and_the_first_are_named_but_no_caches() -> None:
    thrown = ThrownAway()
    for path in (
        "notes.md",
        "work/report.txt",
        ".cache/pip/http/1",
        ".npm/_cacache/index/2",
        ".npm/_logs/3.log",
        "Library/Caches/4",
        "go/pkg/mod/cache/5",
        "cache",
        *(f"many/{number}" for number in range(100)),
    ):
        thrown.take(path)
    assert thrown.count == 103
    assert thrown.names[:4] == ["notes.md", "work/report.txt", "cache", "many/0"]
    assert len(thrown.names) == 12
