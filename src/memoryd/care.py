"""Looking after the data, as the program does it: part of the wiring.

The commands of `memoryd` that work without a daemon, each behind the store's lock, and what a
running daemon needs for backups. With --json they print a line for everything they tell, which
is how `memory` shows their progress.
"""

import argparse
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from memoryd.config import Settings
from memoryd.domain.errors import StoreError
from memoryd.project import config_file, global_notes_dir
from memoryd.rpc.care import CareServicer
from memoryd.services import repair as repairing
from memoryd.services import restore as restoring
from memoryd.services import verifier
from memoryd.services.backup import Made, backups_in, keep_old_format
from memoryd.services.care import Care, Surroundings
from memoryd.services.verify import Place, Problem, Verdict
from memoryd.services.verify import verify as check
from memoryd.storage.gaps import Gap
from memoryd.storage.migrate import open_store as opened
from memoryd.storage.stage import clear_stages
from memoryd.storage.store import FORMAT_VERSION, Lock, Store

_log = logging.getLogger("memoryd")


def open_store(settings: Settings, now_ms: int) -> Store:
    """Open the store of a daemon; one of an older format is backed up and brought up to date."""
    clear_stages(settings.data_dir)

    def keep(version: int) -> None:
        path = keep_old_format(settings.data_dir, settings.project, version, now_ms)
        told = {"from": version, "to": FORMAT_VERSION, "backup": path}
        _log.info("the store gets a newer format", extra=told)

    return opened(settings.data_dir, keep, now_ms)


def of(settings: Settings, store: Store, clock_ms: Callable[[], int]) -> Care:
    """What looks after the store of a running daemon."""
    files = tuple(path for path in (config_file(), settings.redact_rules) if path)
    index = f"{settings.data_dir}/index"
    around = Surroundings(settings.project, index, global_notes_dir(), files)
    return Care(store, around, clock_ms)


def servicer(care: Care, stopping: Callable[[], bool]) -> CareServicer:
    """The same on the wire."""
    return CareServicer(care, stopping)


def daily_backup(settings: Settings, care: Care, alive: Callable[[], bool]) -> dict[str, str]:
    """Back up to where the settings say; what was done. Raises what `Care.backup` raises."""
    destination = f"{settings.backup_dir}/{settings.project}"
    for told in care.backup(destination, settings.backup_keep, alive):
        if isinstance(told, Made):
            copied = str(told.copied)
            return {"path": told.path, "events": str(told.sequence), "copied": copied}
    raise StoreError(f"the backup to {destination} has not been finished")


def verify(settings: Settings, arguments: argparse.Namespace) -> int:
    """Check a store that is not in use; 1 if something is wrong with it."""
    data_dir = settings.data_dir
    if not os.path.isdir(f"{data_dir}/db"):
        raise StoreError(f"there is no store in {data_dir}")
    verdict = Verdict()
    with _locked(data_dir):
        place = Place(data_dir, f"{data_dir}/index", global_notes_dir())
        for told in check(place, accept=arguments.accept):
            if arguments.json:
                print(verifier.to_line(told), flush=True)
            elif isinstance(told, Problem):
                print(f"{told.text}: {told.remedy}")
            if isinstance(told, Verdict):
                verdict = told
    if not arguments.json:
        _report(data_dir, verdict)
    return 1 if verdict.problems else 0


def list_backups(arguments: argparse.Namespace) -> int:
    """Say which backups there are, the oldest first."""
    found = []
    for backup in backups_in(os.path.realpath(os.path.expanduser(arguments.source))):
        facts = backup.manifest
        size = sum(file["size"] for file in facts["files"].values())
        told = {"name": backup.name, "made_ms": facts["made_ms"], "size": size}
        found.append({**told, "sequence": facts["sequence"], "project": facts["project"]})
    words = "\n".join(f"{one['name']}  {one['sequence']} events" for one in found)
    _say(arguments, "backups", {"backups": found}, words or "there are no backups")
    return 0


def restore(settings: Settings, arguments: argparse.Namespace, now_ms: int) -> int:
    """Put a backup in the place of a store that is not in use."""
    source = os.path.realpath(os.path.expanduser(arguments.source))
    backup = restoring.choose(source, arguments.name)
    with _locked(settings.data_dir):
        for told in restoring.restore(
            backup,
            settings.data_dir,
            global_notes_dir(),
            now_ms,
            other_store=arguments.other_store,
            global_notes=arguments.global_notes,
        ):
            if isinstance(told, restoring.Restored):
                _say(arguments, "restored", told._asdict(), _restored(told))
            elif arguments.json:
                _say(arguments, "progress", told._asdict(), "")
    return 0


def repair(settings: Settings, arguments: argparse.Namespace, now_ms: int) -> int:
    """Save what is left of a damaged store that is not in use."""
    with _locked(settings.data_dir):
        for told in repairing.repair(settings.data_dir, now_ms):
            if isinstance(told, repairing.Repaired):
                plain = told._asdict()
                for name in ("gone", "notes_gone"):
                    plain[name] = [[gap.first, gap.last] for gap in getattr(told, name)]
                _say(arguments, "repaired", plain, _repaired(told))
            elif arguments.json:
                _say(arguments, "progress", told._asdict(), "")
    return 0


@contextmanager
def _locked(data_dir: str) -> Iterator[None]:
    """The store for us alone, and what is written for its owner alone."""
    os.umask(0o077)
    lock = Lock(data_dir)
    try:
        yield
    finally:
        lock.release()


def _say(arguments: argparse.Namespace, kind: str, fields: dict[str, Any], words: str) -> None:
    print(json.dumps({kind: fields}) if arguments.json else words, flush=True)


def _report(place: str, verdict: Verdict) -> None:
    counts = f"{verdict.events} events"
    counts += f", {verdict.revisions} revisions of notes" if verdict.revisions else ""
    for noun, gaps in (("events", verdict.event_gaps), ("revisions", verdict.note_gaps)):
        gone = sum(gap.size for gap in gaps)
        if gone:
            print(f"{gone} {noun} are gone since a repair: {_spans(gaps)}")
    shared = sum(problem.part == "global notes" for problem in verdict.problems)
    if shared or verdict.global_revisions:
        notes = f"{verdict.global_revisions} revisions of notes"
        print(f"{global_notes_dir()}: {notes}, {_judged(shared)}")
    print(f"{place}: {counts}, {_judged(len(verdict.problems) - shared)}")


def _judged(problems: int) -> str:
    return f"{problems} problems" if problems else "whole"


def _restored(told: restoring.Restored) -> str:
    words = [f"{told.events} events restored from {told.backup} to {told.data_dir}"]
    if told.aside:
        words.append(f"what was there before is in {told.aside}")
    if told.global_notes == "kept":
        words.append("the global notes were left as they are (--global-notes restores them)")
    return "\n".join(words)


def _repaired(told: repairing.Repaired) -> str:
    words = [*told.told, f"{told.events} events and {told.revisions} revisions of notes are saved"]
    words.append(f"events that are gone: {_spans(told.gone) or 'none'}")
    if told.notes_gone:
        words.append(f"revisions of notes that are gone: {_spans(told.notes_gone)}")
    return "\n".join([*words, f"the damaged store is in {told.aside}"])


def _spans(gaps: tuple[Gap, ...]) -> str:
    return ", ".join(
        f"{gap.first} to {gap.last}" if gap.last > gap.first else str(gap.first) for gap in gaps
    )
