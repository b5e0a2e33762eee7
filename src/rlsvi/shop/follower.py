"""Follows the events of a shop with a learner, and keeps what it has learned in files."""

import contextlib
import logging
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rlsvi.core.archive import ArchiveError
from rlsvi.shop.event import Event
from rlsvi.shop.events import Events
from rlsvi.shop.model.draws import Draws
from rlsvi.shop.model.draws_file import write_draws
from rlsvi.shop.model.learner import ShopLearner
from rlsvi.shop.model.snapshots import load_learner, save_learner
from rlsvi.shop.settings import ShopSettings

DRAWS, SNAPSHOT = "draws.rlsvi", "learner.rlsvi"
CHUNK = 10_000  # events that are read at once
log = logging.getLogger("rlsvi.shop")


def draws_file(settings: ShopSettings) -> Path:
    """Return where the samples of a shop are."""
    return settings.draws_folder / DRAWS


class Follower:
    """The one learner of a shop: it takes events in order, and draws samples of the posterior.

    Parameters
    ----------
    settings : the shop's settings.
    events : the shop's events. If None, they are opened, and closed by `stop`.

    A second learner of the same shop is refused with a StoreError.
    """

    def __init__(self, settings: ShopSettings, events: Events | None = None) -> None:
        self.settings = settings
        with contextlib.ExitStack() as stack:
            self.events = events or stack.enter_context(Events(settings.database, sync=settings.sync))
            self._held = stack.enter_context(self.events.learner_lock())
            self.learner = self._restored()
            self._seen, self._changed = self.learner.last, True  # whether the catalogue has
            self.catch_up()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def last(self) -> int:
        """The number of the last event taken."""
        return self.learner.last

    def catch_up(self) -> int:
        """Take all events that are new, and return how many. One that makes no sense is left out and logged."""
        count = 0
        while events := self.events.since(self._seen, CHUNK):
            for event in events:
                self._seen, self._changed = event.id, self._changed or event.visit == ""
                try:
                    self.learner.take(event)
                except ValueError as error:
                    log.warning("event left out", extra={"why": str(error)})
            count += len(events)
        return count

    def held(self) -> bool:
        """Return whether this is still the only learner: a restart of PostgreSQL lets another one begin."""
        return bool(self._held())

    @property
    def due(self) -> bool:
        """Whether the data have grown enough for new samples, or the catalogue has changed."""
        return self._changed or self.learner.due

    def refresh(self) -> tuple[Draws, dict[str, Any]]:
        """Return new samples of the posterior, and what they are of."""
        draws = self.learner.refresh()
        self._changed = False
        return draws, self.learner.header()

    def publish(self) -> None:
        """Draw new samples, and write them for the processes that serve."""
        draws, header = self.refresh()
        write_draws(draws_file(self.settings), draws, header)
        if self.settings.share_draws:
            self.events.put_draws(header["event"], draws_file(self.settings).read_bytes())

    def close_idle(self, now: float) -> None:
        """Close the visits without an event for `idle` seconds."""
        limit = now - self.settings.idle
        names = self.learner.idle(limit)
        if not names:
            return
        with self.events.writing() as transaction:
            idle = [name for name, events in transaction.visits(names).items() if _idle(events, limit)]
            transaction.append([Event("closed", visit=name) for name in idle])

    def save(self) -> None:
        """Write a snapshot of the learner, so that its next start is quick."""
        save_learner(self.settings.draws_folder / SNAPSHOT, self.learner)

    def stop(self) -> None:
        """Save, and let another process learn."""
        try:
            self.save()
        finally:
            self._stack.close()

    def _restored(self) -> ShopLearner:
        """Return the learner of the snapshot, or a new one if there is none that can be used."""
        path, why = self.settings.draws_folder / SNAPSHOT, ""
        if path.exists():
            try:
                learner = load_learner(path, self.settings)
                if learner.last <= self.events.last():
                    return learner
                why = "it has learned from events that the database does not have"
            except (ArchiveError, OSError) as error:
                why = str(error)
            log.warning("snapshot left out, all events are learned anew", extra={"why": why})
        return ShopLearner(self.settings)


def _idle(events: list[Event], limit: float) -> bool:
    return bool(events) and events[-1].at < limit and all(event.kind != "closed" for event in events)
