"""All checks, in the order in which they are told."""

from collections.abc import Iterator

from memoryd import client
from memoryd.config import Settings
from memoryd.edges.cli.output import now_ms
from memoryd.edges.doctor import hooks, places, running, setup
from memoryd.edges.doctor.finding import Finding, problem


def examined(start_dir: str) -> Iterator[Finding]:
    """What there is to say of this installation and of the project of a directory."""
    yield from setup.package()
    yield from setup.commands()
    settings, found = setup.configuration(start_dir)
    yield from found
    yield from places.hook_log(now_ms() / 1000)
    if settings is None:
        return
    yield from places.permissions(settings)
    yield from places.disk(settings)
    yield from running.service(settings)
    answer, found = running.socket(settings)
    yield from found
    yield from places.inbox(settings, running=answer is not None)
    if answer is not None:
        yield from _inside(settings, answer)
    yield from hooks.hooks(settings, start_dir, running=answer is not None)


def _inside(settings: Settings, answer: dict[str, object]) -> Iterator[Finding]:
    """What the daemon says of itself."""
    now = now_ms()
    yield from running.daemon(answer, now)
    yield from running.lag(answer)
    try:
        with client.Client(settings) as daemon:
            yield from running.index(daemon)
            yield from running.jobs(daemon.jobs())
    except client.ClientError as error:
        yield problem("daemon", str(error), running.START)
    yield from running.clock(answer, now, running.began(int(str(answer["pid"])), now))
