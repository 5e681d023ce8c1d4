"""`memory jobs` and `memory rebuild`: the work that the daemon does by itself."""

from typing import Any

import click

from memoryd.edges.cli import names, times
from memoryd.edges.cli import output as out
from memoryd.edges.cli.costs import costs
from memoryd.edges.cli.output import Output, one_line
from memoryd.edges.cli.pager import pages
from memoryd.wire import Failed


@click.group()
def jobs() -> None:
    """Show and steer what the daemon runs by the clock."""


jobs.add_command(costs)


@jobs.command("list", epilog="\b\nExample:\n  memory jobs list")
@out.common
@pages
def list_jobs(output: Output) -> None:
    """List the jobs, when they run and what came of them."""
    with output.connect() as client:
        found = client.jobs()
    if output.as_json:
        output.lines(found)
        return
    from rich.text import Text

    now = out.now_ms()
    table = out.table("job", "runs at", "last run", "result", "took", "next run")
    for job in found:
        state = "paused" if job["is_paused"] else times.ago(job["next_run_ms"], now)
        result = job["last_result"] if job["run_count"] else ""
        said = f"{result}: {job['last_error']}" if job["last_error"] else result
        table.add_row(
            Text(one_line(job["job_name"])),
            one_line(job["cron_expr"]),
            times.ago(job["last_run_ms"], now),
            Text(one_line(said), "red" if job["last_error"] else ""),
            times.length(job["last_duration_ms"]) if job["run_count"] else "",
            Text("running" if job["is_running"] else state, "yellow" if job["is_paused"] else ""),
        )
    output.show(table)


@jobs.command(epilog="\b\nExample:\n  memory jobs pause rollup-day")
@click.argument("name", metavar="JOB", type=names.JOB)
@out.common
def pause(output: Output, name: str) -> None:
    """Have a job wait until it is resumed, also over restarts."""
    with output.connect() as client:
        client.pause_job(name)
    _say(output, {"job_name": name, "is_paused": True}, f"{name} waits until it is resumed")


@jobs.command(epilog="\b\nExample:\n  memory jobs resume rollup-day")
@click.argument("name", metavar="JOB", type=names.JOB)
@out.common
def resume(output: Output, name: str) -> None:
    """Have a paused job run again."""
    with output.connect() as client:
        client.resume_job(name)
    _say(output, {"job_name": name, "is_paused": False}, f"{name} runs again")


@jobs.command(epilog="\b\nExample:\n  memory jobs run rollup-day")
@click.argument("name", metavar="JOB", type=names.JOB)
@out.common
def run(output: Output, name: str) -> None:
    """Run a job now and wait for its end."""
    with output.connect() as client:
        job = client.run_job(name)
    done = ", ".join(f"{key} {value}" for key, value in job["last_run_metadata"].items())
    said = f"{name}: {job['last_result']}" + (f", {done}" if done else "")
    if job["last_result"] == "failed":
        raise Failed(f"{name} failed: {job['last_error']}")
    _say(output, job, said)


@click.group()
def rebuild() -> None:
    """Derive again what follows from the log."""


@rebuild.command("toc", epilog="\b\nExample:\n  memory rebuild toc")
@out.common
def rebuild_toc(output: Output) -> None:
    """Throw all nodes and grips away and derive them again from the log."""
    with output.connect() as client:
        if output.as_json:
            for progress in client.rebuild_toc():
                output.line(progress)
            return
        with output.console.status("deriving") as status:
            last: dict[str, Any] = {}
            for last in client.rebuild_toc():
                status.update(f"{last['done']:,} of {last['total']:,} events")
    output.show(f"{last['nodes']:,} nodes from {last['total']:,} events")


def _say(output: Output, value: dict[str, Any], words: str) -> None:
    if output.as_json:
        output.line(value)
    else:
        output.show(one_line(words))
