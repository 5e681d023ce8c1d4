"""A full check, as tests want it: what it found, at once."""

from memoryd.services.verify import Place, Verdict, verify


def verdict(
    data_dir: str, *, accept: bool = False, index: str = "", global_notes: str = ""
) -> Verdict:
    """What a full check of a store finds."""
    *_, found = verify(Place(data_dir, index, global_notes), accept=accept)
    assert isinstance(found, Verdict)
    return found


def problems(data_dir: str, *, accept: bool = False) -> list[str]:
    """What is wrong with a store, in words."""
    return [problem.text for problem in verdict(data_dir, accept=accept).problems]
