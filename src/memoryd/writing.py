"""The writing half of the daemon: the model that is set up, its budget and the scribe.

Part of the wiring; only here are models known. Without ``model.provider`` nothing of them is
loaded, and nothing ever leaves the machine.
"""

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from memoryd.config import Settings
from memoryd.domain.summarize import Summarizer
from memoryd.domain.toc import Level
from memoryd.services.costs import Budget, Writing
from memoryd.services.pump import Pump
from memoryd.services.rollup import Steps
from memoryd.services.scribe import Scribe
from memoryd.services.status import ErrorBook

if TYPE_CHECKING:
    from memoryd.domain.calendar import Calendar
    from memoryd.models.client import Client
    from memoryd.storage.store import Store

_log = logging.getLogger("memoryd")


class Derived(NamedTuple):
    """What the scribe works on: the store, the pump that writes it, and its summarizer."""

    store: "Store"
    pump: Pump
    calendar: "Calendar"
    summarizer: Summarizer


class Model(NamedTuple):
    """A model that can be asked, and how to have it stop waiting."""

    client: "Client"
    stop: threading.Event


def model_of(settings: Settings, store: "Store", errors: ErrorBook) -> Model | None:
    """The model that the settings name, or None; from now on, finished nodes are marked for it.

    To be called before the pump starts. A model that cannot be asked is an error that is shown and
    logged, and no reason not to remember.
    """
    if not settings.model_provider:
        return None
    from memoryd.models.client import Unready

    stop = threading.Event()
    try:
        client = _client(settings, stop)
    except Unready as error:
        errors.add("model", str(error))
        _log.warning("no model: summaries are extractive", extra={"reason": str(error)})
        return None
    store.nodes.to_write = frozenset(
        Level[name.upper()] for name in settings.model_levels.split(",")
    )
    _log.info("a model writes summaries", extra={"model": client.name})
    return Model(client, stop)


def start(
    stack: ExitStack,
    settings: Settings,
    model: Model | None,
    derived: Derived,
    errors: ErrorBook,
    clock_ms: Callable[[], int],
) -> Writing:
    """Start the scribe, if there is a model, and arrange for its end, before the pump's."""
    store, pump, calendar, summarizer = derived
    budget = Budget(store.ledger, calendar, clock_ms, settings.model_daily_tokens)
    stack.callback(budget.close)
    if model is not None:
        from memoryd.models.written import Written

        writer = Written(
            model.client,
            summarizer,
            budget,
            settings.model_input_tokens,
            time.monotonic,
            errors.add,
        )
        scribe = Scribe(store, pump, calendar, writer, Steps(on_error=errors.add))
        scribe.start()
        stack.callback(scribe.stop)
        stack.callback(model.stop.set)
    nodes = store.nodes
    return Writing(
        budget,
        model.client.name if model else "",
        lambda: sum(len(nodes.unwritten(level)) for level in nodes.to_write),
    )


def _client(settings: Settings, stop: threading.Event) -> "Client":
    """The client of the provider. Raises Unready."""
    from memoryd.models import anthropic, openai
    from memoryd.models.client import Access, Unready
    from memoryd.models.key import read_key
    from memoryd.models.transport import Pace

    room = anthropic if settings.model_provider == "anthropic" else openai
    make = anthropic.Anthropic if settings.model_provider == "anthropic" else openai.OpenAI
    key_env = settings.model_key_env or room.KEY_ENV
    base_url = settings.model_base_url.rstrip("/")
    # a key that lies around in the environment is for its provider, not for any other address
    usual = not base_url or settings.model_key_env or settings.model_key_file
    key = read_key(settings.model_key_file, key_env, os.environ if usual else {})
    if not key and not base_url:
        raise Unready(
            f"model.provider = {settings.model_provider!r} needs a key: set {key_env} in the "
            "daemon's environment, or model.key_file"
        )
    access = Access(
        settings.model_name, base_url, settings.model_timeout_seconds, settings.model_output_tokens
    )
    return make(access, key, Pace(time.monotonic, time.time, stop.wait, random.random))
