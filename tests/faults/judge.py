"""Reads a whole store in a process of its own and says what it found.

usage: judge.py DATA_DIR IDS_FILE

Prints one line of JSON: either the error that refused the store, or a hash of everything in it.
It imports no more than it needs, because it is started once for every damaged store.
"""

import hashlib
import json
import os
import sys


def text_of(event_id: str) -> str:
    """The text of the event with this id: the id fixes every byte of it."""
    digest = hashlib.blake2b(event_id.encode()).hexdigest()
    return f"{event_id} häß\n" + digest * (1 + int(digest[:2], 16) % 6)


def judge(data_dir: str, ids: list[str]) -> str:
    """Read the truth by every way; return a hash of it. Raises what the store raises.

    How far the derived has come (the outbox) is left out: the end of a WAL that is cut off may
    lose that and nothing else, and it is then derived again.
    """
    from memoryd.storage.notebook import NoteBook
    from memoryd.storage.store import Store

    store = Store(data_dir)
    log = store.log
    seen = hashlib.blake2b()
    by_time = [recorded for _, recorded in log.by_time()]
    seen.update(repr(by_time).encode())
    for wrong in (r for r in by_time if r.event.text != text_of(r.event.event_id)):
        raise AssertionError(f"{wrong.event.event_id} has another text")
    for event_id in ids:
        if log.get(event_id).event.text != text_of(event_id):
            raise AssertionError(f"{event_id} has another text by id")
    for session_id, stats in log.sessions():
        events = [recorded for _, recorded in log.by_session(session_id)]
        seen.update(repr((session_id, stats, events)).encode())
    seen.update(repr(list(log.after(0))).encode())
    seen.update(repr((sorted(log.agents().items()), log.span())).encode())
    seen.update(repr(list(NoteBook(store.db).after(0))).encode())
    store.close()
    return seen.hexdigest()


def main() -> None:
    """Judge, print, and end at once: a damaged database need not close well."""
    from memoryd.domain.errors import NotFound, StoreError

    with open(sys.argv[2], encoding="utf-8") as file:
        ids = json.load(file)
    try:
        verdict = {"hash": judge(sys.argv[1], ids)}
    except NotFound as error:
        verdict = {"lost": str(error)}
    except AssertionError as error:
        verdict = {"lost": str(error)}
    except StoreError as error:
        verdict = {"refused": f"{type(error).__name__}: {error}"}
    except Exception as error:  # noqa: BLE001 - no error of ours, yet not silent either
        verdict = {"refused": f"{type(error).__name__}: {error}", "foreign": "yes"}
    print(json.dumps(verdict), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
