import random
from collections.abc import Iterator

import pytest

from tests.faults.driver import House
from tests.soak.damage import IndexSpecimen
from tests.soak.specimen import KINDS, Damage, Specimen, silent, tally


@pytest.fixture(scope="module")
def specimen() -> Iterator[Specimen]:
    """A store with tables and a WAL; only copies of it are damaged."""
    house = House()
    yield Specimen(house)
    house.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_never_silent(specimen: Specimen, kind: str) -> None:
    """After a bit flip the store refuses or gives everything back, in each of 20 places."""
    verdicts = specimen.judge_all(specimen.flips(kind, 20, random.Random(kind)))
    print(f"{kind}: {tally(verdicts)}")
    assert silent(verdicts) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_file_is_refused(specimen: Specimen, kind: str) -> None:
    """Without any one of these files the store refuses to open or to be read."""
    verdicts = specimen.judge_all([Damage(path) for path in specimen.files(kind)])
    print(f"{kind}: {tally(verdicts)}")
    assert verdicts
    assert [v for v in verdicts if v.outcome != "refused"] == []


def test_every_other_file_can_go_without_silent_loss(specimen: Specimen) -> None:
    """Without an OPTIONS, LOG or IDENTITY file the store refuses or gives everything back."""
    known = {path for kind in KINDS for path in specimen.files(kind)}
    verdicts = specimen.judge_all([Damage(p) for p in specimen.files() if p not in known])
    print(tally(verdicts))
    assert silent(verdicts) == []


@pytest.mark.parametrize("path", ["HIGHWATER", "db"])
def test_a_store_that_lost_a_half_is_refused(specimen: Specimen, path: str) -> None:
    """Without HIGHWATER, or without its database, the store refuses to open."""
    assert specimen.judge(Damage(path)).outcome == "refused"


def test_a_deleted_wal_is_refused(specimen: Specimen) -> None:
    """A WAL that held events and is gone makes the store refuse to open."""
    wals = [Damage(path) for path in specimen.files("WAL")]
    assert specimen.judge(*wals).outcome == "refused"


def test_one_damaged_slot_of_highwater_is_survived(specimen: Specimen) -> None:
    """A flip anywhere in HIGHWATER leaves the other slot, and so loses nothing."""
    verdicts = specimen.judge_all(specimen.flips_in(["HIGHWATER"], 10, random.Random(1)))
    assert silent(verdicts) == []


def test_two_damaged_slots_of_highwater_are_refused(specimen: Specimen) -> None:
    """With neither slot of HIGHWATER whole, the store refuses to open."""
    both = Damage("HIGHWATER", 8 * 10), Damage("HIGHWATER", 8 * (512 + 10))
    assert specimen.judge(*both).outcome == "refused"


def test_a_file_that_is_cut_off_is_never_silent(specimen: Specimen) -> None:
    """With a file empty or without its end, the store refuses or gives everything back."""
    paths = [path for kind in KINDS for path in specimen.files(kind)][:8]
    paths += specimen.marks()
    damages = [Damage(path, keep=specimen.size(path) - 1) for path in paths]
    verdicts = specimen.judge_all([*damages, *(Damage(path, keep=0) for path in paths[-2:])])
    print(tally(verdicts))
    assert silent(verdicts) == []


def test_a_damaged_index_is_made_anew(house: House) -> None:
    """After a flipped bit, a lost and a cut file of the index, search answers as before."""
    index = IndexSpecimen(house)
    damages = index.flips(2, random.Random(1))
    damages += [Damage("index/meta.json"), Damage(index.files()[0], keep=100)]
    verdicts = index.judge_all(damages)
    print(tally(verdicts))
    assert {verdict.outcome for verdict in verdicts} <= {"same", "rebuilt"}
    assert verdicts[2].outcome == "rebuilt"
