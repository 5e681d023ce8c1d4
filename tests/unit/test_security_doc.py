import os
import re

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMED = re.compile(r"`(tests/[a-z0-9_/]+\.py)::(test_[a-z0-9_]+)`")


def read(path: str) -> str:
    """The text of a file of the project."""
    with open(f"{ROOT}/{path}", encoding="utf-8") as file:
        return file.read()


PAIRS = sorted(set(NAMED.findall(read("docs/security.md"))))


def test_the_page_names_tests() -> None:
    """Every line of a table of threats names at least one test."""
    rows = [line for line in read("docs/security.md").split("\n") if line.startswith("| ")]
    threats = [row for row in rows if "what could happen" not in row]
    assert len(threats) > 25
    assert [row for row in threats if not NAMED.search(row)] == []


@pytest.mark.parametrize(("path", "name"), PAIRS)
def test_what_is_named_exists(path: str, name: str) -> None:
    """A test that docs/security.md names is there."""
    assert re.search(rf"^(?:async )?def {name}\(", read(path), re.MULTILINE)
