"""How RocksDB is set up, and what its complaints mean.

Truth depends on both: damage to the write-ahead log refuses, and an error says what to do next.
"""

import faulthandler
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompactionStyle,
    DBCompressionType,
    DBRecoveryMode,
    Options,
)

from memoryd.domain.errors import DiskFull, ReadOnly, StoreDamaged, StoreError, StoreLocked

REMEDY: Final = "run `memory verify`, then `memory restore` or `memory repair`"

MIB: Final = 1024 * 1024
_OPEN_SECONDS: Final = 25


def db_options(*, create: bool, tolerant: bool) -> Options:
    """Options of the whole database."""
    options = Options(raw_mode=True)
    options.create_if_missing(create)
    # a store that is older than a family gets it; what is lost shows against the marks
    options.create_missing_column_families(True)
    if tolerant:
        options.set_wal_recovery_mode(DBRecoveryMode.skip_any_corrupted_record())
    else:
        options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    options.set_paranoid_checks(not tolerant)
    # all families flush together, so that a lost end of the MANIFEST shows in the journal
    options.set_atomic_flush(True)
    options.set_max_total_wal_size(64 * MIB)
    options.set_db_write_buffer_size(32 * MIB)
    # after a full disk RocksDB waits for this much space; the default family's own is 64 MiB
    options.set_write_buffer_size(16 * MIB)
    options.set_max_open_files(256)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(MIB)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options


def family_options(name: str, cache: Cache) -> Options:
    """Options of one family."""
    options = Options(raw_mode=True)
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    if name == "events":
        options.set_compaction_style(DBCompactionStyle.universal())
        table.set_block_size(16 * 1024)
    if name in {"event_ids", "sessions", "agents", "toc_latest", "grips"}:
        table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.zstd())
    options.set_write_buffer_size(16 * MIB)
    return options


def open_error(path: str, text: str) -> StoreError:
    """What RocksDB's complaint at open means to a user."""
    if "lock file" in text or "LOCK" in text:
        return StoreLocked(f"another process has the store at {path} open: stop it first")
    if "Too many open files" in text:
        return StoreError(f"cannot open {path}: too many open files; raise `ulimit -n` to 1024")
    if "No space left" in text:
        return StoreError(f"cannot open {path}: no space left on the disk; free some, start again")
    return StoreDamaged(f"the store at {path} is damaged ({text.splitlines()[0][:300]}): {REMEDY}")


def read_error(family: str, error: Exception) -> StoreError:
    """What RocksDB's complaint at reading means."""
    text = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
    return StoreDamaged(
        f"cannot read {family}: {text}; run `memory verify` to see what is affected"
    )


def write_error(error: Exception) -> ReadOnly:
    """What RocksDB's complaint at writing means."""
    text = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
    if "No space left" in text or "SpaceLimit" in text:
        return DiskFull("the disk is full: free some space; the log goes on by itself")
    return ReadOnly(f"the log takes no writes: {text}")


@contextmanager
def guarded(*, trusted: bool = False) -> Iterator[None]:
    """End the process if RocksDB does not come back from opening, unless that is to be trusted.

    One damaged MANIFEST in a thousand makes it loop for ever, holding the GIL.
    """
    if trusted:
        yield
        return
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback_later(_OPEN_SECONDS, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
