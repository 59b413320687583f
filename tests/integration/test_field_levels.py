"""A field of a file does not leave while the rest does: in the run that read it, and in a later one from a copy."""

import json
import os
from collections.abc import Iterator

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import Standing, interpreter_for

HOSTS = {"hosts": [{"host": "api.test", "methods": ["*"], "clearance": "internal"}]}
SENSITIVE = [{"file": f"people.{ending}", "fields": ["iban"]} for ending in ("json", "csv")]
IBAN, NAME = "DE89370400440532013000", "heron-4417-wren"
PEOPLE = json.dumps(
    [{"name": NAME, "iban": IBAN}, {"name": "osprey-2209-tern", "iban": "FR7630006000011234567890189"}]
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture(params=[0, pytest.param(1000, marks=pytest.mark.slow)])
def standing(world: World, request: pytest.FixtureRequest) -> Iterator[Standing]:
    interpreter = interpreter_for(request.param)
    if not interpreter:
        pytest.skip("not run: no Python that an ordinary user can execute")
    made = Standing(world, request.param, interpreter)
    yield made
    made.close()


def sends(path: str, *texts: str) -> str:
    """Read a file, then send each text."""
    send = "curl -s -o /dev/null -w '%{http_code} ' --data-binary"
    return f"cat {path} > /dev/null\n" + "".join(f"{send} '{text}' https://api.test/x\n" for text in texts)


def ledger(standing: Standing) -> str:
    done = standing("verify", "last", "--replay", "--json")
    return str(json.loads(done.stdout)["verdict"])


@pytest.mark.parametrize("ending", ["json", pytest.param("csv", marks=pytest.mark.slow)])
def test_a_field_does_not_leave_and_the_rest_does(standing: Standing, ending: str) -> None:
    text = (
        PEOPLE
        if ending == "json"
        else f"name,iban\n{NAME},{IBAN}\nosprey-2209-tern,FR7630006000011234567890189\n"
    )
    standing.put(f"people.{ending}", text)
    script = sends(f"people.{ending}", f"hi {NAME}", f"to {IBAN}", IBAN[::-1])
    done = standing.sh(script, HOSTS, sensitive=SENSITIVE)
    assert done.stdout.decode().split() == ["200", "403", "403"], done.stderr.decode()
    assert ledger(standing) == "complete"


def test_a_file_that_cannot_be_read_as_a_structure_does_not_leave_at_all(standing: Standing) -> None:
    standing.put("people.json", PEOPLE[:-1])
    done = standing.sh(sends("people.json", f"hi {NAME}", IBAN), HOSTS, sensitive=SENSITIVE)
    assert done.stdout.decode().split() == ["403", "403"], done.stderr.decode()


def test_a_copy_keeps_the_level_of_the_field_alone_in_a_later_run(standing: Standing) -> None:
    standing.put("people.json", PEOPLE)
    os.makedirs(os.path.join(standing.project, "old"))
    standing.put("old/people.json", PEOPLE.replace("4417", "8812").replace(IBAN, "NL91ABNA0417164300"))
    copied = standing.sh(
        "cp people.json copy.json; sed 's/ //g' people.json | head -c 60 > part.txt; grep -o 'heron[^\"]*' people.json > names.txt\n"
        "mv old archive\n",
        HOSTS,
        sensitive=SENSITIVE,
    )
    assert copied.returncode == 0, copied.stderr.decode()
    told = json.loads(standing("labels", "--json").stdout)["labels"]
    labels = {os.path.basename(one["path"]): (one["level"], one["fields"]) for one in told}
    assert labels["copy.json"] == ("secret", ["iban"])
    assert labels["part.txt"] == ("secret", [])
    assert labels["names.txt"] == ("public", [])
    # An ordinary user has no file events: what lies there counts as read.
    for name in ("people.json", "part.txt"):
        os.unlink(os.path.join(standing.project, name))
    done = standing.sh(sends("copy.json", f"hi {NAME}", IBAN), HOSTS)
    assert done.stdout.decode().split() == ["200", "403"], done.stderr.decode()
    moved = standing.sh(
        sends("archive/people.json", f"hi {NAME.replace('4417', '8812')}", "NL91ABNA0417164300"), HOSTS
    )
    assert moved.stdout.decode().split() == ["200", "403"], moved.stderr.decode()
    assert ledger(standing) == "complete"
