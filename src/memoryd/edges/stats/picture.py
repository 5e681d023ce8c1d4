"""The figures as one SVG picture, readable on light and on dark. Pure.

Text from the log (the names of agents) is escaped and shortened: it is data, never markup.
"""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from memoryd.edges.stats.figures import WEEKDAYS, Heatmap, counted, heatmap, months
from memoryd.edges.stats.gather import Figures

_CELL: Final = 11
_STEP: Final = 14
_LEFT: Final = 56
_TOP: Final = 84
_EDGE: Final = 24
_NAMED_DAYS: Final = (0, 2, 4)
_BARS: Final = 8
_BAR_STEP: Final = 24
_BAR_LEFT: Final = 150
_NAME: Final = 18
_MONTH_GAP: Final = 3
_STYLE: Final = """
  .card { fill: #ffffff; stroke: #d0d7de } .text { fill: #1f2328 } .dim { fill: #59636e }
  .s0 { fill: #ebedf0 } .s1 { fill: #a9d4f5 } .s2 { fill: #58a6e0 } .s3 { fill: #1f74bd } .s4 { fill: #0b3f73 }
  .bar { fill: #1f74bd } .rail { fill: #ebedf0 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #30363d } .text { fill: #e6edf3 } .dim { fill: #9198a1 }
    .s0 { fill: #1b212a } .s1 { fill: #0f3a63 } .s2 { fill: #1863a6 } .s3 { fill: #3b9be6 } .s4 { fill: #a5d8ff }
    .bar { fill: #3b9be6 } .rail { fill: #1b212a }
  }
  text { font: 12px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }
  .title { font-size: 18px; font-weight: 600 } .small { font-size: 10px } .end { text-anchor: end }
"""


def svg(found: Figures, title: str) -> str:
    """The heatmap of the days, the bars of the agents and what it all comes to."""
    heat = heatmap(found.days, found.first, found.last)
    width = _LEFT + len(heat.weeks) * _STEP + _EDGE
    agents = found.agents[:_BARS]
    below = _TOP + len(WEEKDAYS) * _STEP + 34
    height = below + 28 + len(agents) * _BAR_STEP + (0 if agents else -20)
    parts = [
        _opening(width, height, title),
        f"<style>{_STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        _text(_EDGE, 34, _plain(title), "text title"),
        _text(_EDGE, 54, _told(found), "dim"),
        *_heat(heat),
        *_legend(width, _TOP + len(WEEKDAYS) * _STEP + 14),
        *_bars(agents, below + 20, width - _BAR_LEFT - 150),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _opening(width: int, height: int, title: str) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    label = f'role="img" aria-label="{escape(_plain(title))}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label}>'


def _told(found: Figures) -> str:
    habits = found.habits
    said = [
        f"{counted(habits.events, 'event')} on {counted(habits.active_days, 'day')}",
        f"{found.first:%d %b %Y} to {found.last:%d %b %Y}",
    ]
    if habits.busiest:
        said.append(f"most on {habits.busiest:%d %b}: {habits.busiest_count:,}")
        said.append(f"longest run {counted(habits.longest_streak, 'day')}")
    return " · ".join(said)


def _heat(heat: Heatmap) -> list[str]:
    parts = [
        _text(_LEFT + place * _STEP, _TOP - 8, day.strftime("%b"), "dim small")
        for place, day in months(heat, _MONTH_GAP)
    ]
    for weekday in _NAMED_DAYS:
        y = _TOP + weekday * _STEP + _CELL - 2
        parts.append(_text(_LEFT - 8, y, WEEKDAYS[weekday], "dim small end"))
    for place, week in enumerate(heat.weeks):
        for weekday, cell in enumerate(week):
            if cell is not None:
                x, y = _LEFT + place * _STEP, _TOP + weekday * _STEP
                events = counted(cell.events, "event")
                parts.append(
                    f'<rect class="s{cell.shade}" x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" '
                    f'rx="2"><title>{cell.day:%a %d %b %Y}: {events}</title></rect>'
                )
    return parts


def _legend(width: int, y: int) -> list[str]:
    right = width - _EDGE
    first = right - 30 - 5 * _STEP
    cells = [
        f'<rect class="s{shade}" x="{first + shade * _STEP}" y="{y - 9}" width="{_CELL}" '
        f'height="{_CELL}" rx="2"/>'
        for shade in range(5)
    ]
    return [
        _text(first - 6, y, "less", "dim small end"),
        *cells,
        _text(right, y, "more", "dim small end"),
    ]


def _bars(agents: Sequence[dict[str, Any]], y: int, width: int) -> list[str]:
    most = max((int(agent["event_count"]) for agent in agents), default=0)
    parts = []
    for place, agent in enumerate(agents):
        top = y + place * _BAR_STEP
        count = int(agent["event_count"])
        name = _plain(agent["agent"]) or "(unnamed)"
        short = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
        length = max(2, round(width * count / most)) if most and count else 0
        told = f"{counted(count, 'event')} · {counted(int(agent['session_count']), 'session')}"
        parts += [
            _text(_BAR_LEFT - 10, top, short, "text end"),
            f'<rect class="rail" x="{_BAR_LEFT}" y="{top - 10}" width="{width}" height="12" rx="3"/>',
            f'<rect class="bar" x="{_BAR_LEFT}" y="{top - 10}" width="{length}" height="12" rx="3"/>',
            _text(_BAR_LEFT + width + 10, top, told, "dim small"),
        ]
    return parts


def _text(x: int, y: int, words: str, style: str) -> str:
    return f'<text class="{style}" x="{x}" y="{y}">{escape(words)}</text>'


def _plain(text: str) -> str:
    """The text in one line without what XML cannot hold or a reader cannot see."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
