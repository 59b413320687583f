"""Nothing in the product knows a scenario: no id, title, host or file of one stands in its source."""

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = [
    path
    for path in (f"{ROOT}/tests/scenarios/harness/scenarios.json", f"{ROOT}/tests/scenarios/more.json")
    if os.path.exists(path)
]
_HOST = re.compile(r"\b[a-z0-9][a-z0-9.-]*\.test\b")


def scenarios(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        value = json.load(file)
    found = value if isinstance(value, list) else value["scenarios"]
    assert isinstance(found, list)
    return found


def product() -> Iterator[tuple[str, str]]:
    for folder, _folders, names in os.walk(f"{ROOT}/src/interlock"):
        for name in names:
            if name.endswith((".py", ".yaml", ".json")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield os.path.join(folder, name), file.read()


@pytest.mark.parametrize("path", FILES, ids=[os.path.basename(path) for path in FILES])
def test_no_scenario_is_named_in_the_product(path: str) -> None:
    told = scenarios(path)
    assert len(told) >= 20
    names = {one["id"] for one in told} | {one["title"] for one in told}
    for where, text in product():
        found = [name for name in names if name in text]
        assert not found, (where, found)
    hosts = set(_HOST.findall(json.dumps(told)))
    assert hosts
    for where, text in product():
        # Examples in messages name hosts of the reserved domain too.
        found = [host for host in set(_HOST.findall(text)) if host in hosts]
        assert set(found) <= {"app.test", "docs.test", "api.test"}, (where, found)
