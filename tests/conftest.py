"""What several kinds of tests need: a home with real daemons in it."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tests.faults.driver import Daemon, House

# everywhere else each run tries other examples; a landing must not depend on luck
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture
def house() -> Iterator[House]:
    """A home of its own; its daemons end with the test."""
    made = House()
    yield made
    made.close()


@pytest.fixture
def daemon(house: House) -> Daemon:
    """A daemon that answers."""
    return house.serve()
