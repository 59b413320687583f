"""Small plots as SVG, without a library: the same values give the same bytes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from interlock.model.records import dataclass

WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 190, 36, 50
COLOURS = ("#1b6ca8", "#b5432b", "#3a7d44", "#7a4f9a", "#8a6d1d", "#4a4a4a", "#c06090")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points with a name.

    Takes: `points`, x and y; `joined`, whether a line goes through them; `theirs`, whether others published them: these
    are hollow.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    joined: bool = False
    theirs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A plot. Takes: `x_most`, `y_most`, where the axes end (they begin at 0); `level`, a line across, y and name."""

    title: str
    x_name: str
    y_name: str
    series: tuple[Series, ...]
    x_most: float = 100.0
    y_most: float = 100.0
    level: tuple[float, str] | None = None


def svg(chart: Chart) -> str:
    """Return a chart as an SVG document."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(_LEFT, 20, chart.title, size=13),
        *_axes(chart),
    ]
    if chart.level is not None:
        y = _y(chart, chart.level[0])
        lines.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#888" stroke-dasharray="4 3"/>'
        )
        lines.append(_text(_LEFT + 4, y - 4, chart.level[1], colour="#555", size=10))
    for at, series in enumerate(chart.series):
        lines += _drawn(chart, series, COLOURS[at % len(COLOURS)], at)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _axes(chart: Chart) -> list[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    lines = [
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#333"/>',
        _text((_LEFT + right) / 2, HEIGHT - 12, chart.x_name, anchor="middle"),
        f'<text transform="translate(16 {(_TOP + bottom) / 2:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(chart.y_name)}</text>",
    ]
    for step in range(6):
        x, y = chart.x_most * step / 5, chart.y_most * step / 5
        lines.append(_text(_x(chart, x), bottom + 16, f"{x:g}", anchor="middle"))
        lines.append(_text(_LEFT - 6, _y(chart, y) + 4, f"{y:g}", anchor="end"))
        lines.append(
            f'<line x1="{_LEFT}" y1="{_y(chart, y):.1f}" x2="{right}" y2="{_y(chart, y):.1f}" stroke="#eee"/>'
        )
    return lines


def _drawn(chart: Chart, series: Series, colour: str, at: int) -> list[str]:
    places = [(_x(chart, x), _y(chart, y)) for x, y in series.points]
    lines = []
    if series.joined and len(places) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    x, y = WIDTH - _RIGHT + 14, _TOP + 8 + 18 * at
    lines += [_mark(place, colour, series.theirs) for place in [*places, (x, y)]]
    return [*lines, _text(x + 10, y + 4, series.name, size=10)]


def _mark(place: tuple[float, float], colour: str, theirs: bool) -> str:
    x, y = place
    if theirs:
        box = f'x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"'
        return f'<rect {box} fill="none" stroke="{colour}" stroke-width="1.5"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _x(chart: Chart, value: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * min(value / chart.x_most, 1)


def _y(chart: Chart, value: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * min(value / chart.y_most, 1)


def _text(
    x: float, y: float, said: str, *, anchor: str = "start", size: int = 11, colour: str = "#222"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">'
        f"{escape(said)}</text>"
    )


def plotted(found: Sequence[Series], most: Sequence[float] = (1, 2, 5, 10, 20, 50, 100)) -> float:
    """Return where the y axis ends, so that each point of some series is below it."""
    highest = max((y for series in found for _, y in series.points), default=0)
    return next((each for each in most if highest <= each), most[-1])
