"""Ids by how they begin."""

from collections.abc import Iterator

import pytest

from memoryd.domain.errors import InvalidInput
from memoryd.services.resolve import IdKind, Resolver
from tests.services.rig import NOON, Rig, event


class Notes:
    """Stands in for the notes of a store that has none."""

    def heads(self, wanted: object) -> Iterator[object]:
        """No note."""
        return iter(())


@pytest.fixture
def resolver(tmp_path: object) -> Iterator[Resolver]:
    """A resolver over two sessions with twelve events."""
    rig = Rig(str(tmp_path))
    rig.append(event(n, NOON + n, "talk-1" if n % 2 else "talk-22") for n in range(12))
    rig.settle()
    yield Resolver(rig.store.log, rig.nodes, Notes())  # type: ignore[arg-type]
    rig.close()


def ids(resolver: Resolver, prefix: str, *kinds: IdKind, limit: int = 0) -> list[str]:
    """The ids that are found, without their kinds."""
    return [name for _, name in resolver.resolve(prefix, frozenset(kinds), limit, "")[0]]


def test_unique_beginning_is_enough(resolver: Resolver) -> None:
    """A beginning that one id has finds that id, whatever it stands for."""
    assert ids(resolver, "talk-2") == ["talk-22"]
    assert ids(resolver, "e000007") == ["e000007"]
    assert ids(resolver, "toc:day:") == ["toc:day:2026-06-01"]
    assert len(ids(resolver, "grip:", IdKind.GRIP)) >= 1


def test_ambiguous_beginning_lists_what_it_may_mean(resolver: Resolver) -> None:
    """Several ids come in order, and it is said if there are more than asked for."""
    assert ids(resolver, "talk") == ["talk-1", "talk-22"]
    found, more = resolver.resolve("e0000", frozenset((IdKind.EVENT,)), 3, "")
    assert [name for _, name in found] == ["e000000", "e000001", "e000002"]
    assert more


def test_exact_id_is_no_beginning(resolver: Resolver) -> None:
    """An id that is there is meant, also if another one begins with it."""
    assert ids(resolver, "talk-1") == ["talk-1"]
    assert ids(resolver, "toc:day:2026-06-01", IdKind.NODE) == ["toc:day:2026-06-01"]


def test_kinds_keep_others_out(resolver: Resolver) -> None:
    """Only ids of the kinds that are asked for are found."""
    assert ids(resolver, "e", IdKind.SESSION) == []
    assert ids(resolver, "talk", IdKind.EVENT, IdKind.NODE) == []


def test_bad_questions_are_refused(resolver: Resolver) -> None:
    """No beginning, what cannot be printed, and a kind that nobody knows are refused."""
    for prefix, kinds in (("", ()), ("a\nb", ()), ("a", (9,))):
        with pytest.raises(InvalidInput):
            resolver.resolve(prefix, frozenset(kinds), 0, "")
