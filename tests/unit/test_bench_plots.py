"""Plots and the page of results: from result files alone, the same bytes each time."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from interlock.bench.plots import HEIGHT, WIDTH, Chart, Series, plotted, svg
from interlock.bench.published import KAIROS
from interlock.bench.worst_case import FRONTIER, GRID, PAGE, pages
from interlock.cli.bench import main
from interlock.model.errors import InputError

PLACE = Path(__file__).parents[2] / "benchmarks" / "results"


def chart(**more: Any) -> Chart:
    values: dict[str, Any] = {
        "title": "a < b",
        "x_name": "x",
        "y_name": "y",
        "series": (
            Series(name="ours & co", points=((0, 0), (100, 100)), joined=True),
            Series(name="theirs", points=((50, 50),), theirs=True),
        ),
    }
    return Chart(**values | more)


def test_a_chart_is_well_formed_and_holds_every_point_inside() -> None:
    drawn = ElementTree.fromstring(svg(chart()))
    circles = [each for each in drawn if each.tag.endswith("circle")]
    boxes = [each for each in drawn if each.tag.endswith("rect")][1:]
    assert (len(circles), len(boxes)) == (3, 2)  # with the legend's
    for each in circles:
        assert 0 < float(each.attrib["cx"]) < WIDTH
        assert 0 < float(each.attrib["cy"]) < HEIGHT
    assert "ours & co" in [each.text for each in drawn]


def test_what_others_published_is_hollow_and_ours_is_not() -> None:
    drawn = ElementTree.fromstring(svg(chart()))
    assert {each.attrib["fill"] for each in drawn if each.tag.endswith("circle")} != {"none"}
    assert {each.attrib["fill"] for each in drawn if each.tag.endswith("rect")} == {"white", "none"}


def test_the_axis_ends_above_the_highest_point() -> None:
    assert plotted([Series(name="", points=((1, 3.2),))]) == 5
    assert plotted([]) == 1


def test_the_same_chart_is_the_same_bytes() -> None:
    assert svg(chart(level=(10, "line"))) == svg(chart(level=(10, "line")))


def test_published_nrp_follows_from_the_rows_that_are_kept() -> None:
    # Both papers' tables give it too: a slip of the pen here would show.
    nrp = [round(each.utility * (100 - each.success) / 100, 1) for each in KAIROS]
    assert nrp == [82.8, 83.5, 31.5, 50.8]


@pytest.mark.skipif(not (PLACE / GRID).exists(), reason="no result files: run scripts/measure_results")
def test_the_page_in_the_docs_is_the_one_that_its_files_make(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", str(PLACE), "--to", str(PLACE.parents[1] / "docs" / "results"), "--check"]) == 0
    assert capsys.readouterr().out == "up to date\n"


@pytest.mark.skipif(not (PLACE / GRID).exists(), reason="no result files: run scripts/measure_results")
def test_the_page_is_written_names_its_commands_and_marks_what_is_theirs(tmp_path: Path) -> None:
    assert main(["results", str(PLACE), "--to", str(tmp_path)]) == 0
    page = (tmp_path / PAGE).read_text()
    assert "interlock bench agentdojo --grid --oracle strict" in page
    assert "theirs: KAIROS" in (tmp_path / FRONTIER).read_text()
    assert pages(PLACE)[PAGE] == page


def test_a_missing_or_foreign_result_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"agentdojo-grid\.json"):
        pages(tmp_path)
    for name in ("agentdojo-grid", "agentdojo-ideal", "agentdojo-sweep", "agentdyn"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"schema": "interlock-bench/1"}))
    with pytest.raises(InputError, match="another version"):
        pages(tmp_path)
