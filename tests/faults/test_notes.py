import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from memoryd.domain import notetext
from memoryd.pb import note_pb2 as pb
from memoryd.pb.note_pb2_grpc import NoteServiceStub
from tests.faults.driver import Daemon, House

Key = tuple[str, str, str]
State = tuple[str, tuple[str, ...]]  # content and aliases
NAMES = st.sampled_from(["plan", "Größe", "a/b", "x y", "日報"])
LINES = st.lists(st.sampled_from(["- a", "- b", " -  a", "", "tail"]), max_size=4).map("\n".join)
ALIASES = st.lists(st.sampled_from(["alias 1", "alias 2", "alias 3"]), max_size=2, unique=True)
PLACES = st.sampled_from([("project", ""), ("global", ""), ("session", "s1"), ("session", "s2")])


@pytest.fixture
def two(house: House) -> Iterator[tuple[Daemon, Daemon]]:
    """Two daemons of two projects of one user."""
    other = House()
    other.env["XDG_DATA_HOME"] = house.env["XDG_DATA_HOME"]
    yield house.serve(), other.serve()
    other.close()


def test_two_daemons_lose_no_global_note(two: tuple[Daemon, Daemon], house: House) -> None:
    """Two daemons that write 1,000 global notes each at once lose none, and both see all."""
    stubs = [NoteServiceStub(daemon.channel) for daemon in two]

    def write(number: int) -> None:
        which = number % 2
        request = pb.RememberRequest(name=f"d{which} {number}", content="x", scope="global")
        stubs[which].Remember(request, timeout=60)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(2_000)))
    expected = {f"d{number % 2} {number}" for number in range(2_000)}
    for stub in stubs:
        assert set(all_names(stub)) == expected
    two[0].terminate()
    verdict = house.run("verify")
    assert "2000 revisions of notes, whole" in verdict.stdout
    assert verdict.returncode == 0


def test_what_one_daemon_writes_the_other_knows_at_once(two: tuple[Daemon, Daemon]) -> None:
    """A global note is read, found, changed and forgotten by the other daemon without delay."""
    here, there = (NoteServiceStub(daemon.channel) for daemon in two)
    for number in range(20):
        here.Remember(pb.RememberRequest(name="n", content=f"w{number}", scope="global"))
        assert there.Get(pb.GetNoteRequest(name="n")).note.content.endswith(f"w{number}")
        found = there.Recall(pb.RecallRequest(query=f"w{number}")).notes
        assert [hit.note.name for hit in found] == ["n"]
    there.Forget(pb.ForgetRequest(name="n"))
    assert not here.Recall(pb.RecallRequest(query="w1")).notes
    with pytest.raises(grpc.RpcError):
        here.Get(pb.GetNoteRequest(name="n"))


def all_names(stub: NoteServiceStub) -> Iterator[str]:
    """The names of all notes, page by page."""
    token = ""
    while True:
        page = stub.List(pb.ListNotesRequest(limit=1000, continuation_token=token), timeout=30)
        yield from (note.name for note in page.notes)
        token = page.continuation_token
        if not page.has_more:
            return


class NotesLikeADict(RuleBasedStateMachine):
    """Does to a daemon what it does to a dict, and expects the same."""

    def __init__(self) -> None:
        super().__init__()
        self.house = House()
        self.model: dict[Key, State] = {}
        self.history: dict[Key, list[State | None]] = {}
        self.bursts = 0

    @initialize()
    def begin(self) -> None:
        """Start the daemon."""
        self.daemon = self.house.serve()

    @property
    def stub(self) -> NoteServiceStub:
        """The daemon's calls."""
        return NoteServiceStub(self.daemon.channel)

    def _set(self, key: Key, state: State | None) -> None:
        if state is None:
            self.model.pop(key)
        else:
            self.model[key] = state
        self.history.setdefault(key, []).append(state)

    def _taken(self, key: Key, aliases: tuple[str, ...]) -> bool:
        """Whether another note of the same place has one of the aliases."""
        others = [s for k, s in self.model.items() if k != key and k[:2] == key[:2]]
        return any(alias in state[1] for state in others for alias in aliases)

    @rule(place=PLACES, name=NAMES, content=LINES, mode=st.sampled_from(["append", "overwrite"]))
    def remember(self, place: tuple[str, str], name: str, content: str, mode: str) -> None:
        """Write a note."""
        key = (*place, name)
        old, aliases = self.model.get(key, (None, ()))
        new, dropped = content, 0
        if mode == "append" and old:
            new, dropped = notetext.append(old, content)
        answer = self.stub.Remember(pb.RememberRequest(content=content, mode=mode, **fields(key)))
        assert answer.created == (old is None)
        assert answer.changed == (old != new)
        assert (answer.note.content, answer.dropped_lines) == (new, dropped)
        if old != new:
            self._set(key, (new, aliases))

    @rule(place=PLACES, name=NAMES, old=st.sampled_from(["- a", "tail", "b"]))
    def edit(self, place: tuple[str, str], name: str, old: str) -> None:
        """Replace a text, if it occurs once."""
        key = (*place, name)
        request = pb.EditNoteRequest(old=old, new="changed", **fields(key))
        content, aliases = self.model.get(key, ("", ()))
        if key not in self.model:
            assert refusal(self.stub.Edit, request) is grpc.StatusCode.NOT_FOUND
        elif content.count(old) != 1:
            assert refusal(self.stub.Edit, request) is grpc.StatusCode.INVALID_ARGUMENT
        else:
            self.stub.Edit(request)
            self._set(key, (content.replace(old, "changed"), aliases))

    @rule(place=PLACES, name=NAMES, aliases=ALIASES)
    def set_aliases(self, place: tuple[str, str], name: str, aliases: list[str]) -> None:
        """Give a note aliases, if no other note has them."""
        key = (*place, name)
        request = pb.SetAliasesRequest(aliases=aliases, **fields(key))
        if key not in self.model:
            assert refusal(self.stub.SetAliases, request) is grpc.StatusCode.NOT_FOUND
            return
        content, present = self.model[key]
        if self._taken(key, tuple(aliases)):
            assert refusal(self.stub.SetAliases, request) is grpc.StatusCode.ALREADY_EXISTS
            return
        self.stub.SetAliases(request)
        if present != tuple(aliases):
            self._set(key, (content, tuple(aliases)))
        for alias in aliases:
            found = self.stub.Get(pb.GetNoteRequest(**fields((*place, alias)))).note
            assert found.name == name

    @rule(place=PLACES, name=NAMES)
    def forget(self, place: tuple[str, str], name: str) -> None:
        """Forget a note, if there is one."""
        key = (*place, name)
        try:
            self.stub.Forget(pb.ForgetRequest(**fields(key)))
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.NOT_FOUND  # noqa: PT017 - no error is fine too
            assert key not in self.model
        else:
            self._set(key, None)

    @rule(place=PLACES, name=NAMES, back=st.integers(1, 3))
    def restore(self, place: tuple[str, str], name: str, back: int) -> None:
        """Bring an earlier revision back, if it lived."""
        key = (*place, name)
        past = self.history.get(key, [])
        number = max(1, len(past) + 1 - back)
        try:
            self.stub.Restore(pb.RestoreNoteRequest(revision=number, **fields(key)))
        except grpc.RpcError:
            state = past[number - 1] if past else None
            assert state is None or self._taken(key, state[1])
        else:
            self._set(key, past[number - 1])

    @rule(kill=st.booleans())
    def restart(self, kill: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
        """End the daemon, gently or not, and start it again."""
        if kill:
            self.daemon.kill()
        else:
            self.daemon.terminate()
        self.daemon = self.house.serve()
        self.compare()

    @rule(after=st.floats(0.0, 0.05))
    def kill_while_writing(self, after: float) -> None:
        """Kill the daemon under load: what it acknowledged is there, and nothing half."""
        self.bursts += 1
        acknowledged: list[Key] = []
        tried: list[Key] = []
        stub = self.stub

        def write() -> None:
            with suppress(grpc.RpcError, ValueError):
                for number in range(200):
                    key = (("project", "global")[number % 2], "", f"b{self.bursts} {number}")
                    tried.append(key)
                    stub.Remember(pb.RememberRequest(content=key[2], **fields(key)), timeout=10)
                    acknowledged.append(key)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join(after)
        self.daemon.process.kill()
        thread.join(30)
        self.daemon.kill()
        self.daemon = self.house.serve()
        found = self.read()
        for key in tried:
            if key in acknowledged or key in found:
                self._set(key, (key[2], ()))
        self.compare()

    def read(self) -> dict[Key, State]:
        """All notes of the daemon."""
        page = self.stub.List(pb.ListNotesRequest(limit=1000))
        assert not page.has_more
        return {
            (n.scope, n.session_id if n.scope == "session" else "", n.name): state_of(n)
            for n in page.notes
        }

    def compare(self) -> None:
        """The daemon holds what the model holds, with every revision."""
        assert self.read() == self.model
        for key, past in self.history.items():
            answer = self.stub.History(pb.NoteHistoryRequest(**fields(key)))
            told = [None if r.forgotten else state_of(r) for r in answer.revisions]
            assert told == past[::-1]

    def teardown(self) -> None:
        """Check once more, and have the files verified."""
        try:
            self.compare()
            self.daemon.terminate()
            verdict = self.house.run("verify")
            assert verdict.returncode == 0, verdict.stdout
        finally:
            self.house.close()


def fields(key: Key) -> dict[str, Any]:
    """How to name a note."""
    scope, session_id, name = key
    return {"scope": scope, "session_id": session_id, "name": name}


def state_of(note: pb.Note) -> State:
    """What the model knows of a note."""
    return note.content, tuple(note.aliases)


def refusal(call: Any, request: object) -> grpc.StatusCode:
    """How a call is refused, which it must be."""
    with pytest.raises(grpc.RpcError) as caught:
        call(request)
    error: Any = caught.value
    code: grpc.StatusCode = error.code()
    return code


NotesLikeADict.TestCase.settings = settings(
    max_examples=4,
    stateful_step_count=25,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
TestNotesLikeADict = NotesLikeADict.TestCase
TestNotesLikeADict.__doc__ = "Any operations, restarts and kills leave what a dict would hold."
