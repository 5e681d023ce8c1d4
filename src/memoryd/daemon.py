"""memoryd, the program: the only place that wires.

Lock, store, committer, pump, jobs, server, drain, signals: made here in this order, taken down in
reverse. No business rule lives here.
"""

import argparse
import gc
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stdout, suppress
from types import FrameType
from typing import TYPE_CHECKING, Final

from memoryd import __version__, config, nodump, spool
from memoryd.domain.errors import MemorydError, ReadOnly
from memoryd.project import UNIFIED, global_notes_dir, private_dir

if TYPE_CHECKING:
    from memoryd.domain.calendar import Calendar
    from memoryd.rpc.server import Health
    from memoryd.services.context import ContextBlocks
    from memoryd.services.drain import Drain
    from memoryd.services.indexer import Indexer
    from memoryd.services.ingest import Ingest
    from memoryd.services.note_query import NoteQuery
    from memoryd.services.note_stores import Stores
    from memoryd.services.query import Query
    from memoryd.services.resolve import Resolver
    from memoryd.services.search import Search
    from memoryd.services.status import ErrorBook
    from memoryd.services.toc import Contents
    from memoryd.storage.committer import Committer
    from memoryd.storage.notebook import NoteStore
    from memoryd.storage.store import Store

_log = logging.getLogger("memoryd")

_WATCHDOG_SHARE: Final = 3
_STOP_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.5
_SWITCH_SECONDS: Final = 0.0005  # a busy thread must not hold up the committer for 5 ms


def main() -> None:
    """Run the command line."""
    arguments = _parser().parse_args()
    try:
        sys.exit(arguments.run(arguments))
    except (config.ConfigError, ValueError) as error:
        print(f"memoryd: {error}", file=sys.stderr)
        sys.exit(2)
    except (MemorydError, OSError) as error:
        print(f"memoryd: {error}", file=sys.stderr)
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memoryd", description="The daemon that remembers what AI coding agents did."
    )
    parser.add_argument("--version", action="version", version=f"memoryd {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, text in (
        ("serve", serve, "run the daemon of a project in the foreground"),
        ("status", status, "say whether the daemon of a project runs"),
        ("stop", stop, "stop the daemon of a project and wait until it has ended"),
        ("verify", verify, "check everything of a project whose daemon does not run"),
        ("restore", restore, "put a backup in the place of a project's store"),
        ("repair", repair, "save what is left of a damaged store"),
    ):
        command = commands.add_parser(name, help=text, description=text.capitalize() + ".")
        command.set_defaults(run=run)
        command.add_argument("--project", metavar="DIR", help="a directory of the project")
        command.add_argument("--data-dir", metavar="DIR", help="where the data is")
        command.add_argument("--unified", action="store_true", default=None, help="all projects")
    serving = commands.choices["serve"]
    serving.add_argument("--runtime-dir", metavar="DIR", help="where the socket is")
    serving.add_argument("--listen", metavar="HOST:PORT", help="also listen on loopback TCP")
    serving.add_argument(
        "--no-token", dest="token", action="store_false", default=None, help="TCP without a token"
    )
    serving.add_argument("--foreground-log", dest="log_format", choices=("text", "json"))
    serving.add_argument("--log-level", choices=("debug", "info", "warning", "error"))
    commands.choices["verify"].add_argument(
        "--accept", action="store_true", help="if the log is whole, write HIGHWATER anew"
    )
    restoring = commands.choices["restore"]
    restoring.add_argument("source", metavar="SRC", help="a backup, or a directory of backups")
    restoring.add_argument(
        "--name", default="", help="which backup of a directory; else the newest"
    )
    restoring.add_argument("--list", action="store_true", help="say which backups there are")
    restoring.add_argument("--stop", action="store_true", help="stop the daemon first")
    restoring.add_argument(
        "--other-store", action="store_true", help="even if the backup is of another store"
    )
    restoring.add_argument(
        "--global-notes", action="store_true", help="the global notes of the backup too"
    )
    for name in ("verify", "restore", "repair"):
        commands.choices[name].add_argument(
            "--json", action="store_true", help="a line of JSON for everything that is told"
        )
    return parser


def _settings(arguments: argparse.Namespace) -> config.Settings:
    given = vars(arguments)
    names = ("data_dir", "unified", "runtime_dir", "listen", "token", "log_format", "log_level")
    flags = {name: given[name] for name in names if given.get(name) is not None}
    settings, _ = config.load(arguments.project or os.getcwd(), flags)
    return settings


def serve(arguments: argparse.Namespace) -> int:
    """Run until a signal comes."""
    os.umask(0o077)
    settings = _settings(arguments)
    _start_log(settings)
    sys.setswitchinterval(_SWITCH_SECONDS)
    if settings.listen and not settings.token:
        _log.warning("TCP IS OPEN TO EVERY USER OF THIS MACHINE: token = false")
    nodump.forbid()
    daemon = Daemon(settings)
    daemon.run()
    return 0


class Daemon:
    """Everything that runs, and the order in which it ends."""

    def __init__(self, settings: config.Settings) -> None:
        self._settings = settings
        self._stop = threading.Event()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Start, serve until told to stop, and end in order."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        with ExitStack() as stack:
            self._start(stack)
            _notify("READY=1")
            self._wait()
            _notify("STOPPING=1")
            _log.info("stopping", extra={"project": self._settings.project})
        _log.info("stopped", extra={"project": self._settings.project})

    def _start(self, stack: ExitStack) -> None:
        from memoryd import care
        from memoryd.storage.committer import Committer
        from memoryd.storage.store import Lock

        settings = self._settings
        lock = Lock(settings.data_dir)
        stack.callback(lock.release)
        _remember_root(settings)
        store = care.open_store(settings, clock_ms())
        stack.callback(store.close)
        committer = Committer(store, clock_ms)
        committer.start()
        stack.callback(committer.stop)
        self._serve(stack, store, committer)
        gc.collect()
        gc.freeze()  # what lives as long as the daemon need not be looked at again
        _log.info(
            "serving",
            extra={
                "project": settings.project,
                "socket": settings.socket_path,
                "events": committer.synced,
                "pid": os.getpid(),
            },
        )

    def _serve(self, stack: ExitStack, store: "Store", committer: "Committer") -> None:
        """Wire services to the server, bind it, and arrange for its end."""
        from memoryd import care, erasing, scheduler, writing
        from memoryd.rpc.interceptors import Guard
        from memoryd.rpc.notes import NoteServicer
        from memoryd.rpc.server import Health, build
        from memoryd.rpc.servicers import Identity, MemoryServicer, Services
        from memoryd.services.archivist import Archivist
        from memoryd.services.erasure import Parts
        from memoryd.services.ingest import Ingest
        from memoryd.services.note_query import NoteQuery
        from memoryd.services.notes import Notes
        from memoryd.services.query import Query
        from memoryd.services.status import ErrorBook, figures
        from memoryd.services.toc import Contents
        from memoryd.storage.store import FORMAT_VERSION

        settings = self._settings
        redactor = config.redactor(settings)
        errors = ErrorBook(clock_ms)
        name = "" if settings.unified else settings.project
        ingest = Ingest(committer, clock_ms, name, redactor)
        guard = Guard(erasing.token_of(settings), settings.max_streams, errors)
        model = writing.model_of(settings, store, errors)
        deriving = scheduler.start(stack, settings, store, committer, errors, clock_ms)
        derived = writing.Derived(store, deriving.pump, deriving.calendar, deriving.summarizer)
        written = writing.start(stack, settings, model, derived, errors, clock_ms)
        contents = Contents(store.nodes, store.log, deriving.calendar)
        stores = _note_stores(stack, settings, store, committer)
        notes, note_query = (
            Notes(stores, clock_ms, deriving.calendar.moment, redactor),
            NoteQuery(stores),
        )
        search, indexer = _search(settings, store, committer, stores, deriving.calendar, errors)
        ingest.on_compaction = Archivist(notes, errors, unified=settings.unified).keep
        eraser = erasing.eraser_of(
            Parts(store, committer, deriving.pump, indexer, lambda: _there(stores)),
            ingest,
            errors,
            clock_ms,
        )
        services = Services(
            ingest=ingest,
            query=Query(store.log, committer),
            contents=contents,
            pump=deriving.pump,
            jobs=deriving.jobs,
            scheduler_running=deriving.running,
            writing=written,
            search=search,
            indexer=indexer,
            context=_context(store, note_query, contents, search, deriving.calendar, errors),
            resolver=_resolver(store, note_query),
            figures=lambda: figures(store, committer, clock_ms()),
            errors=errors,
            clock_ms=clock_ms,
            open_streams=lambda: guard.open_streams,
            stopping=self._stopping.is_set,
        )
        pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="rpc")
        server = build(pool, settings, guard)
        endpoints = server.bind(settings.socket_path, settings.listen)
        stack.callback(_remove_socket, settings.socket_path)
        identity = Identity(
            project=settings.project,
            project_root=settings.project_root,
            version=__version__,
            format_version=FORMAT_VERSION,
            store_id=store.store_id,
            data_dir=settings.data_dir,
            pid=os.getpid(),
            started_ms=clock_ms(),
            endpoints=endpoints,
        )
        health = Health(server)
        committer.on_fault = lambda fault: _on_fault(fault, health, errors)
        server.add(
            MemoryServicer(services, identity),
            NoteServicer(notes, note_query),
            care.servicer(deriving.care, self._stopping.is_set),
            erasing.servicer(eraser, settings, guard),
        )
        erasing.start(stack, indexer, eraser)
        server.start()
        health.set(serving=True)
        stack.callback(server.stop, settings.grace_seconds)
        stack.callback(self._stopping.set)
        stack.callback(health.leave)
        drain = _drain(settings, ingest, services.query, errors)
        stack.callback(drain.stop)
        drain.start()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._stop.is_set():
            os._exit(128 + number)
        self._stop.set()

    def _wait(self) -> None:
        """Sleep until the signal, feeding systemd's watchdog."""
        period = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6 / _WATCHDOG_SHARE
        # a signal that a thread of an engine takes does not wake this one: look now and then
        while not self._stop.wait(min(period or _LOOK_SECONDS, _LOOK_SECONDS)):
            if period:
                _notify("WATCHDOG=1")


def status(arguments: argparse.Namespace) -> int:
    """Say whether the daemon runs."""
    from memoryd.storage.store import owner

    settings = _settings(arguments)
    pid = owner(settings.data_dir)
    if pid is None:
        print(
            f"daemon for project {settings.project} is not running: start it with `memoryd serve`"
        )
        return 3
    print(f"daemon for project {settings.project} runs as process {pid}: {settings.socket_path}")
    return 0


def stop(arguments: argparse.Namespace) -> int:
    """Send SIGTERM and wait."""
    from memoryd.storage.store import owner

    settings = _settings(arguments)
    pid = owner(settings.data_dir)
    if not pid:
        print(f"daemon for project {settings.project} is not running")
        return 0
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while owner(settings.data_dir) == pid:
        if time.monotonic() > deadline:
            print(f"process {pid} has not ended after {_STOP_SECONDS:.0f} s: see its log")
            return 1
        time.sleep(0.05)
    print(f"daemon for project {settings.project} has stopped")
    return 0


def verify(arguments: argparse.Namespace) -> int:
    """Check a store that is not in use."""
    from memoryd import care

    return care.verify(_settings(arguments), arguments)


def restore(arguments: argparse.Namespace) -> int:
    """Put a backup in the place of a store that is not in use."""
    from memoryd import care

    settings = _settings(arguments)
    if arguments.list:
        return care.list_backups(arguments)
    if arguments.stop:
        with redirect_stdout(sys.stderr):
            stop(arguments)
    return care.restore(settings, arguments, clock_ms())


def repair(arguments: argparse.Namespace) -> int:
    """Save what is left of a damaged store that is not in use."""
    from memoryd import care

    return care.repair(_settings(arguments), arguments, clock_ms())


def _search(
    settings: config.Settings,
    store: "Store",
    committer: "Committer",
    notes: "Stores",
    calendar: "Calendar",
    errors: "ErrorBook",
) -> "tuple[Search, Indexer]":
    """Wire the index to what it follows: the log, the nodes, the notes of both stores."""
    from memoryd.services.feeds import NodeSource, NoteSource
    from memoryd.services.hits import Hits
    from memoryd.services.indexer import Indexer
    from memoryd.services.search import Search
    from memoryd.services.whereabouts import Whereabouts
    from memoryd.storage.global_notes import FILE

    own = "" if settings.unified else settings.project
    shared = f"{global_notes_dir()}/{FILE}"  # not made by looking for it
    where = Whereabouts(store.nodes, store.log, calendar)
    sources = (
        NodeSource(store.nodes, store.log, where),
        NoteSource("notes", notes.own.book, own),
        NoteSource("global-notes", notes.shared.book, "", lambda: os.path.exists(shared)),
    )
    path = f"{settings.data_dir}/index"
    indexer = Indexer(path, store.log, committer, errors.add, sources)
    hits = Hits(store.log, store.nodes, where, notes.own.book, notes.shared.book)
    return Search(store.log, indexer, hits, clock_ms), indexer


def _note_stores(
    stack: ExitStack, settings: config.Settings, store: "Store", committer: "Committer"
) -> "Stores":
    """The stores of notes: the project's own, and the one that all projects share."""
    from memoryd.services.note_stores import Stores
    from memoryd.storage.global_notes import GlobalNotes
    from memoryd.storage.notes import ProjectNotes

    shared = GlobalNotes(global_notes_dir())
    stack.callback(shared.close)
    own = "" if settings.unified else settings.project
    return Stores(ProjectNotes(store, committer), shared, own)


def _resolver(store: "Store", notes: "NoteQuery") -> "Resolver":
    from memoryd.services.resolve import Resolver

    return Resolver(store.log, store.nodes, notes)


def _there(stores: "Stores") -> "tuple[NoteStore, ...]":
    """The stores of notes; the shared one is not made by looking for it."""
    from memoryd.storage.global_notes import FILE

    shared = os.path.exists(f"{global_notes_dir()}/{FILE}")
    return (stores.own, stores.shared) if shared else (stores.own,)


def _context(
    store: "Store",
    notes: "NoteQuery",
    contents: "Contents",
    search: "Search",
    calendar: "Calendar",
    errors: "ErrorBook",
) -> "ContextBlocks":
    """Wire what gathers the block for a prompt."""
    from memoryd.services.context import ContextBlocks, Hits, Since
    from memoryd.services.context_notes import NoteSections

    gatherers = (
        NoteSections(notes, lambda time_ms: calendar.moment(time_ms)[0]),
        Since(contents, calendar),
        Hits(search, contents, calendar),
    )
    return ContextBlocks(gatherers, store.injections, clock_ms, errors.add)


def clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _on_fault(fault: ReadOnly | None, health: "Health", errors: "ErrorBook") -> None:
    health.set(serving=fault is None)
    if fault is None:
        _log.warning("the log takes events again")
    else:
        errors.add("write", str(fault))
        _log.error("the log takes no events", extra={"reason": str(fault)})


def _drain(
    settings: config.Settings, ingest: "Ingest", query: "Query", errors: "ErrorBook"
) -> "Drain":
    """What empties the inbox, and reads the replies that Copilot's hooks do not carry."""
    from memoryd.services.drain import Drain
    from memoryd.services.replies import Replies

    replies = Replies(os.environ.get("COPILOT_HOME") or os.path.expanduser("~/.copilot"))
    return Drain(settings.data_dir, ingest, query.nearby, errors, replies)


def _remember_root(settings: config.Settings) -> None:
    """Keep the project's directory, for those who know only its id."""
    private_dir(spool.inbox(settings.data_dir))
    private_dir(spool.aside(settings.data_dir))
    if settings.project != UNIFIED and settings.project_root:
        with open(f"{settings.data_dir}/{config.ROOT_FILE}", "w", encoding="utf-8") as file:
            file.write(settings.project_root + "\n")


def _remove_socket(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _notify(state: str) -> None:
    """Tell systemd, if it listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode(), address)


class _Formatter(logging.Formatter):
    """One line per record: words for people, or JSON."""

    _STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        extra = {k: v for k, v in vars(record).items() if k not in self._STANDARD}
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        stamp = f"{when}.{int(record.msecs):03d}Z"
        level = record.levelname.lower()
        if self._as_json:
            head = {"time": stamp, "level": level, "message": record.getMessage()}
            return json.dumps({**head, **extra}, default=str)
        fields = "".join(f" {k}={json.dumps(v, default=str)}" for k, v in extra.items())
        return f"{stamp} {level:7} {record.getMessage()}{fields}"


def _start_log(settings: config.Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(as_json=settings.log_format == "json"))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)


if __name__ == "__main__":
    main()
