"""The leaks bench holds every secret in every carrier, and lets ordinary text pass."""

from interlock.bench import leaks


def test_every_transform_is_held_in_every_carrier() -> None:
    rows = leaks.recall()
    assert len(rows) == 20
    assert [row for row in rows if row.held < row.cases or row.cases != 30] == []


def test_ordinary_text_passes() -> None:
    texts = ['{"name": "app", "version": "1.2.3"}', "def main() -> None:\n    print('hello')\n", "a" * 500]
    assert leaks.false_alarms(texts).held == 0
