import os
from collections.abc import Iterator

import pytest

from memoryd.storage.committer import Committer
from memoryd.storage.store import Store


@pytest.fixture
def data_dir(tmp_path: os.PathLike[str]) -> str:
    """A data directory that does not exist yet."""
    return f"{os.fspath(tmp_path)}/data"


@pytest.fixture
def store(data_dir: str) -> Iterator[Store]:
    """A new store."""
    store = Store(data_dir)
    yield store
    store.close()


@pytest.fixture
def committer(store: Store) -> Iterator[Committer]:
    """A running committer on the new store."""
    committer = Committer(store, lambda: 1_000)
    committer.start()
    yield committer
    committer.stop()
