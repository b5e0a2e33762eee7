"""The learner of a shop: it follows the events, keeps what it has learned in files, and draws new samples."""

import contextlib
import logging
import math
import os
import threading
import time
from typing import Any

from rlsvi.core.archive import ArchiveError
from rlsvi.core.regression import FactorError
from rlsvi_shop.events import Event, Events, StoreError
from rlsvi_shop.model.draws import Draws, DrawsFileError, write_draws
from rlsvi_shop.model.learner import ShopLearner
from rlsvi_shop.model.snapshots import load_learner, save_learner
from rlsvi_shop.samples import SampleFile
from rlsvi_shop.settings import ShopSettings, fingerprint

CHUNK = 10_000  # events that are read at once
CLOSED = 500  # visits that are closed in one transaction
NOTED = 5.0  # the least seconds between two notes that the learner works
LEAST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # the least seconds between two steps, and the most after steps that failed
SNAPSHOT = 120.0  # the least seconds between two snapshots
LAG = 60.0  # seconds that new samples may take
FAILURES = (StoreError, OSError, FactorError)  # of the database, the disk, the numbers: they may pass
log = logging.getLogger("rlsvi_shop")


def learn(settings: ShopSettings, stop: threading.Event, parent: int | None = None) -> None:
    """Learn until `stop` is set, or until the process `parent` has died.

    A step that fails is logged and tried again after longer and longer pauses; the samples stay as they were. What
    fails is noted in the database, so that the service can tell.
    """
    with Events(settings.database, sync=settings.sync) as events:
        try:
            with Follower(settings, events) as follower:
                _learn_steps(follower, stop, parent)
        except StoreError:  # the database is away, or another learner works
            raise
        except Exception as error:
            with contextlib.suppress(StoreError):
                events.note_failure(type(error).__name__)
            raise


def _learn_steps(follower: "Follower", stop: threading.Event, parent: int | None) -> None:
    log.info("learning", extra={"last": follower.last})
    pause = LEAST_PAUSE
    while not stop.is_set() and (parent is None or os.getppid() == parent):
        begun = time.monotonic()
        try:
            follower.step()
            pause = LEAST_PAUSE
        except LearnerReplaced as error:
            log.error("replaced", extra={"why": str(error)})
            raise
        except FAILURES as error:
            pause = min(2 * pause, LONGEST_PAUSE)
            follower.note_failure(error)
            log.error("a step failed", extra={"why": f"{type(error).__name__}: {error}", "again_in": pause})
        stop.wait(max(pause, time.monotonic() - begun))  # at most half of the time is spent learning
    follower.stop()
    log.info("ended", extra={"last": follower.last})


class LearnerReplaced(StoreError):
    """Another process has become the learner of the shop."""


class Follower(contextlib.AbstractContextManager["Follower"]):
    """The one learner of a shop: it takes events in order, and draws samples of the posterior.

    A second learner of the same shop is refused with a StoreError. One that is started again goes on as if it had
    not ended: the file of samples tells after which events samples were drawn since the snapshot, and they are
    drawn there again.

    Parameters
    ----------
    settings
        The shop's settings.
    events
        The shop's events. If None, they are opened, and closed by `stop`.
    """

    learner: ShopLearner
    samples: tuple[Draws, dict[str, Any]] | None
    changed: bool

    def __init__(self, settings: ShopSettings, events: Events | None = None) -> None:
        self.settings = settings
        with contextlib.ExitStack() as stack:
            self.events = events or stack.enter_context(Events(settings.database, sync=settings.sync))
            self._held = stack.enter_context(self.events.learner_lock())
            self._refreshed = -math.inf  # when, by the clock that is never set
            self._saved = time.monotonic()  # when there was a snapshot or a start
            self._waiting = math.inf  # when the first of the visits ended that the samples do not know
            self._noted = time.monotonic() if self.events.learner_state()[1] else -math.inf
            self._complete = time.time()  # when there was no event that it had not read
            self._stopped, self._working = False, True  # it is still working later if it failed or was interrupted
            self.catch_up()
            self._stack = stack.pop_all()

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def last(self) -> int:
        """The number of the last event taken."""
        return self.learner.last

    def step(self) -> None:
        """Take what has happened, and write new samples if they are due."""
        begun = time.monotonic()
        self.check()
        self.close_idle(time.time())
        self.catch_up()
        if self.due:
            behind = self.publish()
            log.info(
                "refreshed",
                extra={"last": self.last, "seconds": round(time.monotonic() - begun, 3), "behind": behind},
            )
            if is_behind(behind, self.settings):
                log.warning("learning falls behind", extra={"seconds": behind})
        self.save(after=SNAPSHOT)
        self.note()

    def catch_up(self) -> int:
        """Take all events that are new, and return how many. One that makes no sense is left out and logged.

        A learner that failed or was interrupted may be half changed: it is restored, and takes all events since
        its snapshot again.
        """
        if self._working:
            self._restart()
        count, complete = 0, time.time()
        while events := self.events.since(self._seen, CHUNK):
            self._working = True
            self._take(events)
            self._working = False
            count, complete = count + len(events), time.time()
        self._complete = complete
        return count

    def _take(self, events: list[Event]) -> None:
        for event in events:
            try:
                self.learner.take(event)
            except ValueError as error:
                log.warning("event left out", extra={"why": str(error)})
            self._seen, self.changed = event.id, self.changed or event.visit == ""
            if self.learner.fresh:
                self._waiting = min(self._waiting, max(event.at, self._complete))

    def _restart(self) -> None:
        """Become the learner that has drawn the samples in the file, if its snapshot is there.

        `samples` are then these, and what they are of, or else None. `changed` is whether there is another reason
        for new samples than visits that have ended.
        """
        self._working, self.samples, self.changed = True, None, True
        self.learner, self._drawn = self._restore(), list[tuple[int, int]]()  # drawn since the snapshot
        self._seen = self.learner.last
        found, drawn = self._stored_samples()
        for number, last in drawn:
            if number > self.learner.chains.refreshes:
                while events := [event for event in self.events.since(self._seen, CHUNK) if event.id <= last]:
                    self._take(events)
                self._draw()
        if found is not None and drawn[-1] == (self.learner.chains.refreshes, self.learner.refreshed_event):
            last_change = max((event.id for event in self.events.catalogue().values()), default=0)
            self.samples, self.changed = found, last_change > self.learner.refreshed_event
            self._refreshed = time.monotonic() - max(0.0, time.time() - found[1]["at"])
        elif found is not None:
            why = "the file of the learner is missing or does not fit them: keep it with the database in backups"
            log.warning("samples not continued", extra={"why": why})
        self._working, self._waiting = False, math.inf

    def _stored_samples(self) -> tuple[tuple[Draws, dict[str, Any]] | None, list[tuple[int, int]]]:
        """Return the samples in the file, and when they and others since the snapshot were drawn: see `_draw`."""
        try:
            found = SampleFile(self.settings, self.events).newer()
            if found is not None:
                header = found[1]
                drawn = [(int(number), int(last)) for number, last in header["drawn"]]
                known = self._has_event(header["event"], header["event_at"])
                if drawn and known and header["settings"] == self._asked():
                    return found, drawn
        except (DrawsFileError, OSError, KeyError, TypeError, ValueError) as error:
            log.debug("samples not continued", extra={"why": str(error)})
        return None, []

    def _asked(self) -> dict[str, Any]:
        """Return the settings with which samples are drawn: with others, there are new ones at once."""
        return {**fingerprint(self.settings), **self.settings.learning.model_dump(mode="json")}

    def _draw(self) -> Draws:
        """Return new samples, and note how many times they have been drawn, and after which event."""
        draws = self.learner.refresh()
        self._drawn.append((self.learner.chains.refreshes, self.learner.refreshed_event))
        return draws

    def check(self) -> None:
        """Raise an error unless this is the only learner: still, or again after a restart of PostgreSQL."""
        if not self._held():
            raise LearnerReplaced("another process has become the learner of this shop: this one ends")

    def note(self) -> None:
        """Note in the database that the learner works, if it has done so for a while: the service looks at it."""
        if time.monotonic() - self._noted >= NOTED:
            self.events.note_learner()
            self._noted = time.monotonic()

    def note_failure(self, error: BaseException) -> None:
        """Note in the database that a step failed, if that can be written."""
        self._noted = time.monotonic()
        with contextlib.suppress(StoreError):
            self.events.note_failure(type(error).__name__)

    @property
    def due(self) -> bool:
        """Whether new samples are due: there is much to learn, or something for long, or the catalogue changed."""
        late = time.monotonic() - self._refreshed >= self.settings.learning.refresh
        return self.changed or self.learner.due or (late and self.learner.fresh > 0)

    def refresh(self) -> tuple[Draws, dict[str, Any]]:
        """Return new samples of the posterior, and what they are of."""
        if self._working:
            self.catch_up()
        self._working = True
        draws = self._draw()
        self._working, self.samples = False, None
        self.changed, self._refreshed = False, time.monotonic()
        behind, self._waiting = max(0.0, round(time.time() - self._waiting, 3)), math.inf
        return draws, {
            **self.learner.header(),
            "shop": self.events.shop,
            "behind": behind,
            "drawn": self._drawn.copy(),
            "event_at": self.learner.last_at,
            "settings": self._asked(),
        }

    def publish(self) -> float:
        """Draw new samples, write them for the processes that serve, and return how far behind they are.

        These are the seconds since the end of the first visit that the samples before them did not know, or since
        all events had been read if that was later: past events that are imported or learned anew are not late.
        """
        self.check()
        draws, header = self.refresh()
        self.changed = True  # until they are written
        self.write(draws, header)
        return float(header["behind"])

    def write(self, draws: Draws, header: dict[str, Any]) -> None:
        """Write samples for the processes that serve."""
        self.check()
        path = self.settings.file("draws")
        write_draws(path, draws, header)
        if self.settings.share_draws:
            self.events.put_draws(path.read_bytes())
        self.changed = False

    def close_idle(self, now: float) -> None:
        """Close the visits without an event for `idle` seconds, some at a time, so that nobody waits for long."""
        limit = now - self.settings.idle
        names = self.learner.idle(limit)
        for start in range(0, len(names), CLOSED):
            with self.events.writing() as transaction:
                found = transaction.visits(names[start : start + CLOSED])
                transaction.append(
                    Event("closed", visit=name)
                    for name, events in found.items()
                    if events and all(event.at < limit and event.kind != "closed" for event in events)
                )

    def save(self, after: float = 0.0) -> None:
        """Write a snapshot of the learner, so that its next start is quick, unless it is to be restored itself.

        With `after`, it is written only if the last one is so many seconds old.
        """
        self.check()
        if not self._working and time.monotonic() - self._saved >= after:
            save_learner(self.settings.file("learner"), self.learner, self.events.shop)
            self._drawn, self._saved = [], time.monotonic()

    def stop(self) -> None:
        """Save, and let another process learn. If that fails, the next start takes longer, and nothing is lost."""
        if self._stopped:
            return
        self._stopped = True
        with self._stack:
            try:
                self.save()
            except (StoreError, OSError) as error:
                log.warning("snapshot not written", extra={"why": str(error)})

    def _restore(self) -> ShopLearner:
        path, why = self.settings.file("learner"), ""
        if path.exists():
            try:
                learner = load_learner(path, self.settings, self.events.shop)
                if self._has_event(learner.last, learner.last_at):
                    return learner
                why = "it has learned from events that the database does not have"
            except (ArchiveError, OSError) as error:
                why = str(error)
            log.warning("snapshot left out, all events are learned anew", extra={"why": why})
        return ShopLearner(self.settings)

    def _has_event(self, number: int, at: float) -> bool:
        """Return whether the database has an event: not if it is an older copy, or another one went on with it."""
        found = self.events.since(number - 1, 1) if number else []
        return number == 0 or [(event.id, event.at) for event in found] == [(number, at)]


def is_behind(seconds: float, settings: ShopSettings) -> bool:
    """Return whether samples that are so far behind come later than the settings promise, by a minute or more."""
    return seconds > settings.learning.refresh + LAG
