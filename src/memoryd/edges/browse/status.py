"""The room of status: what the daemon holds and does, with pictures where people would rather look."""

import time
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from memoryd.edges.browse.rooms import Room
from memoryd.edges.browse.words import DIM, line
from memoryd.edges.cli import times
from memoryd.edges.cli.output import now_ms, size
from memoryd.edges.stats import figures, gather
from memoryd.edges.stats.figures import (
    SIGNS,
    WEEKDAYS,
    bar,
    counted,
    heatmap,
    month_line,
    sparkline,
)
from memoryd.edges.stats.gather import Figures

if TYPE_CHECKING:
    from memoryd.client import Client

_AGAIN_SECONDS: Final = 3.0
_DAYS_SECONDS: Final = 20.0
_WIDE: Final = 114  # from here on a week takes two characters
_SHADES: Final = (
    "$line",
    "$primary 40%",
    "$primary 60%",
    "$primary 80%",
    "bold $primary",
)
_SQUARES: Final = ("·", "■", "■", "■", "■")
_AGENTS: Final = 8
_NAME: Final = 16


class _Told(NamedTuple):
    """What one look at the daemon gives."""

    figures: Figures
    hours: list[float]
    jobs: list[dict[str, Any]]
    search: dict[str, Any]


class StatusRoom(Room):
    """Status and jobs."""

    NAME = "status"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "year(-1)", "Earlier", priority=True),
        Binding("right", "year(1)", "Later", priority=True),
        Binding("escape", "app.leave", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._year: int | None = None  # None: the year up to today
        self._told: _Told | None = None
        self._days_at = 0.0  # when the days were read, which takes longer than all the rest

    def body(self) -> ComposeResult:
        """Pictures, then words."""
        with VerticalScroll(id="status"):
            for name in ("heat", "agents", "pulse", "daemon", "jobs"):
                yield Static(id=name)

    def on_mount(self) -> None:
        """Look again and again."""
        super().on_mount()
        self.query_one("#status").focus()
        self.set_interval(_AGAIN_SECONDS, self.load)

    def load(self) -> None:
        """Look at the daemon."""
        self._read()

    def on_resize(self) -> None:
        """Draw as wide as there is room."""
        self._draw()

    @work(exclusive=True, group="status")
    async def _read(self) -> None:
        span = figures.calendar_year(self._year) if self._year else figures.last_year(_today())
        project, now = self.browser.note_project, now_ms()
        known = self._told.figures if self._told else None
        fresh = time.monotonic() - self._days_at < _DAYS_SECONDS
        days = known.days if known and fresh and (known.first, known.last) == span else None

        def look(client: "Client") -> _Told:
            return _Told(
                gather.figures(client, *span, project=project, days=days),
                gather.events_per_hour(client, now),
                client.jobs(),
                client.index_status(),
            )

        told = await self.ask(look)
        if told is not None:
            self._told = told
            self._days_at = self._days_at if days is not None else time.monotonic()
            self._draw()

    def _draw(self) -> None:
        told = self._told
        if told is None:
            return
        width = self.size.width - 4
        parts = {
            "heat": _heat(told.figures, self._heading(), wide=width >= _WIDE, signs=self._signs()),
            "agents": _agents(told.figures, width),
            "pulse": _pulse(told.hours, list(self.browser.pulse)[-max(10, width - _NAME - 8) :]),
            "daemon": _daemon(told.figures, told.search),
            "jobs": _jobs(told.jobs, now_ms()),
        }
        for name, content in parts.items():
            self.query_one(f"#{name}", Static).update(content.rstrip())

    def _heading(self) -> str:
        return str(self._year) if self._year else "the last year"

    def _signs(self) -> tuple[str, ...]:
        return SIGNS if self.app.native_ansi_color else _SQUARES

    def action_year(self, by: int) -> None:
        """The heatmap of another year."""
        this = _today().year
        year = (self._year or this + 1) + by
        self._year = None if year > this else max(1970, year)
        self._read()


def _today() -> date:
    return date.fromisoformat(times.stamp(now_ms())[:10])


def _heat(found: Figures, title: str, *, wide: bool, signs: tuple[str, ...]) -> Content:
    width = 2 if wide else 1
    heat = heatmap(found.days, found.first, found.last)
    habits = found.habits
    told = f"{counted(habits.events, 'event')} on {counted(habits.active_days, 'day')}"
    parts: list[Any] = [
        ("Events per day, ", "bold"),
        (title, "bold $primary"),
        (f"   {told}\n", DIM),
    ]
    parts.append((f"    {month_line(heat, width)}\n", DIM))
    for weekday, name in enumerate(WEEKDAYS):
        parts.append((f"{name if weekday % 2 == 0 else '':<4}", DIM))
        parts += [
            (f"{signs[cell.shade]:<{width}}", _SHADES[cell.shade]) if cell else " " * width
            for cell in heat.row(weekday)
        ]
        parts.append("\n")
    parts.append(("    less ", DIM))
    parts += [(sign, style) for sign, style in zip(signs, _SHADES, strict=True)]
    parts.append((" more", DIM))
    if habits.busiest:
        parts.append((f"   most on {habits.busiest:%d %b %Y}: {habits.busiest_count:,}", DIM))
    return Content.assemble(*parts)


def _agents(found: Figures, width: int) -> Content:
    parts: list[Any] = [("Who\n", "bold")]
    most = max((int(agent["event_count"]) for agent in found.agents), default=0)
    room = max(8, min(60, width - _NAME - 30))
    for agent in found.agents[:_AGENTS]:
        count = int(agent["event_count"])
        name = (line(agent["agent"]) or "(unnamed)")[: _NAME - 1]
        told = f" {counted(count, 'event')}, {counted(int(agent['session_count']), 'session')}\n"
        parts += [
            f"{name:<{_NAME}}",
            (f"{bar(count, most, room):<{room}}", "$primary"),
            (told, DIM),
        ]
    if len(found.agents) > _AGENTS:
        parts.append((f"and {len(found.agents) - _AGENTS} more\n", DIM))
    if not found.agents:
        parts.append(("nobody yet\n", DIM))
    return Content.assemble(*parts)


def _pulse(hours: list[float], seconds: list[int]) -> Content:
    return Content.assemble(
        ("Ingest\n", "bold"),
        f"{'24 hours':<{_NAME}}",
        (sparkline(hours), "$success"),
        (f" {round(sum(hours)):,}\n", DIM),
        f"{f'{len(seconds)} seconds':<{_NAME}}",
        (sparkline(seconds), "$success"),
        (f" {sum(seconds):,}\n", DIM),
    )


def _daemon(found: Figures, index: dict[str, Any]) -> Content:
    status = found.status
    state = index["state"].replace("_", " ")
    rows = [
        (
            "holds",
            f"{status['sequence']:,} events, {status['sessions']:,} sessions, {counted(found.notes, 'note')}",
        ),
        (
            "daemon",
            f"{status['version']}, pid {status['pid']}, up {times.length(status['uptime_ms'])}",
        ),
        (
            "takes",
            f"{size(status['disk_bytes'])} on disk, {size(status['memory_bytes'])} of memory",
        ),
        ("search", f"{state}, {index['documents']:,} documents {index['reason']}"),
    ]
    if status["pump_lag_events"] or status["toc_waiting"]:
        rows.append(
            ("waiting", f"{status['pump_lag_events']:,} events, {status['toc_waiting']:,} periods")
        )
    if status["spool_bad"]:
        rows.append(("set aside", f"{counted(status['spool_bad'], 'payload')} that cannot be read"))
    parts: list[Any] = [("Daemon\n", "bold")]
    for name, words in rows:
        parts += [(f"{name:<{_NAME}}", DIM), f"{line(words)}\n"]
    if not status["writable"]:
        parts.append((f"takes no events: {line(status['write_error'])}\n", "bold $error"))
    for error in status["last_errors"][:3]:
        parts.append((f"{line(error['operation'])}: {line(error['message'])}\n", "$error"))
    return Content.assemble(*parts)


def _jobs(jobs: list[dict[str, Any]], now: int) -> Content:
    parts: list[Any] = [("Jobs\n", "bold")]
    for job in jobs:
        state = "running" if job["is_running"] else "paused" if job["is_paused"] else ""
        bad = job["last_result"] == "failed"
        ran = f"ran {times.ago(job['last_run_ms'], now)}" if job["last_run_ms"] else "has not run"
        if job["last_run_ms"]:
            ran += f", {job['last_result']}"
        following = f"next {times.ago(job['next_run_ms'], now)}" if job["next_run_ms"] else ""
        parts += [
            f"{line(job['job_name']):<{_NAME}}",
            (f"{ran:<26} ", "$error" if bad else DIM),
            (f"{state or following}\n", "$warning" if state else DIM),
        ]
    return Content.assemble(*parts)
