from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.domain.capture import AGENTS, Received, from_hook
from memoryd.domain.capture.transcripts import READERS, Place, from_transcript
from memoryd.domain.errors import InvalidInput
from memoryd.domain.event import checked
from tests.unit.capture.samples import PAYLOADS, TRANSCRIPTS

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["user", "text", "tool_use", "\ud800", "<system-reminder>", "2026-01-01"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["type", "text", "content", "id", "message"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [here]
    if isinstance(value, dict):
        found += [p for key, inner in value.items() for p in paths(inner, (*here, key))]
    elif isinstance(value, list):
        found += [p for key, inner in enumerate(value) for p in paths(inner, (*here, key))]
    return found


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another one at a place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def hooked(agent: str, event: str, payload: object) -> None:
    """A hook's payload gives sound events or is refused."""
    try:
        events = from_hook(Received(agent, event, 1, "/x"), payload)
    except InvalidInput:
        return
    for made in events:
        assert checked(made) == made
        made.text.encode()


def imported(agent: str, records: list[Any]) -> None:
    """A transcript gives sound events, and every record has a fate."""
    reader = READERS[agent](Place("n", "f"))
    if reader.surveys:
        for record in records:
            if reader.survey(record):
                break
    for made in from_transcript(reader, enumerate(records, 1)):
        assert checked(made) == made
        made.text.encode()
    assert reader.unexplained == 0


@QUIET
@given(st.sampled_from(AGENTS), st.text(max_size=10), JSON)
def test_any_json_is_taken_or_refused(agent: str, event: str, payload: Any) -> None:
    """Any JSON value as a payload gives events or InvalidInput, and no other error."""
    hooked(agent, event, payload)


@settings(QUIET, max_examples=200)
@given(st.data())
def test_payloads_with_one_wrong_field_are_taken_or_refused(data: st.DataObject) -> None:
    """A true payload with anything in one of its places does, too."""
    agent, event, payload = data.draw(st.sampled_from(PAYLOADS))
    path = data.draw(st.sampled_from(paths(payload)))
    hooked(agent, event, changed(payload, path, data.draw(JSON)))


@QUIET
@given(st.sampled_from(list(READERS)), st.lists(JSON, max_size=5))
def test_any_records_are_accounted_for(agent: str, records: list[Any]) -> None:
    """Any JSON values as records end in an event or with a reason."""
    imported(agent, records)


@settings(QUIET, max_examples=200)
@given(st.data())
def test_transcripts_with_wrong_fields_are_accounted_for(data: st.DataObject) -> None:
    """A true transcript with anything in some of its places does, too."""
    agent = data.draw(st.sampled_from(list(READERS)))
    records: Any = TRANSCRIPTS[agent]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths(records)[1:]))
        records = changed(records, path, data.draw(JSON))
    imported(agent, records)
