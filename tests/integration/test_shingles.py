"""A sensitive text is known again in an edited copy of it, in a later run, whole, in parts and in pieces."""

import shlex
from collections.abc import Iterator

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import Standing, interpreter_for

from interlock.bench.documents import prose_from

HOSTS = {"hosts": [{"host": "api.test", "methods": ["*"], "clearance": "internal"}]}
PLACES = [{"place": "private/"}]
MEMO = prose_from(11)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture
def standing(world: World) -> Iterator[Standing]:
    interpreter = interpreter_for(0)
    assert interpreter
    made = Standing(world, 0, interpreter)
    made.put("private/plan.md", MEMO)
    yield made
    made.close()


def sends(*texts: str) -> str:
    told = "curl -s -o /dev/null -w '%{http_code} ' --data-binary"
    return "cat notes.md > /dev/null\n" + "".join(
        f"{told} {shlex.quote(text)} https://api.test/x\n" for text in texts
    )


def test_parts_of_an_edited_copy_do_not_leave_in_a_later_run(standing: Standing) -> None:
    copied = standing.sh(
        "sed -e 's/workers/people/; s/union/council/; 4,9d; s/^/> /' private/plan.md > notes.md\n",
        HOSTS,
        sensitive=PLACES,
    )
    assert copied.returncode == 0, copied.stderr.decode()
    words = MEMO.splitlines()[14].replace("workers", "people").replace("union", "council").split()
    harmless = "We discussed the weather and the new coffee machine at length."
    pieces = [" ".join(words[at : at + 3]) for at in range(0, 18, 3)]
    done = standing.sh(
        sends(" ".join(words[:12]), " ".join(words[6:16]).upper(), harmless, words[3], *pieces),
        HOSTS,
        sensitive=PLACES,
    )
    part, upper, other, word, *dealt = done.stdout.decode().split()
    assert (part, upper, other, word) == ("403", "403", "200", "200"), done.stderr.decode()
    # At the latest when eight of its words have left together.
    assert dealt[0] == "200"
    assert "403" in dealt[:4]
