"""How observations become features: scaled and tuned to the data, of the numbers that matter.

An observation is stored as a row (`Lookup.row`), and rows become features (`Lookup.features`) that change with the
data (`Lookup.follow`, `Lookup.tune`).
"""

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from rlsvi.agents.contract import warn
from rlsvi.agents.practice.parts import PartsRegression, check_weights, usual_features
from rlsvi.agents.practice.regression import EpisodeHistory, FeatureRegression
from rlsvi.bases.basis import MeasuredBasis, bound
from rlsvi.bases.layout import CODES, Layout, Seen, grown, ranges_of, seen_in, vector_of
from rlsvi.bases.observed import MOST_CROSSED, MOST_INDICATORS, Observed, is_crossed, rows_of
from rlsvi.bases.waves import Waves
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import fits
from rlsvi.core.compile import Bools, Floats, Longs, compiled
from rlsvi.core.machine import blocks
from rlsvi.envs.task import Task

# ---- The error by which features are tuned: that of predicting half of the episodes from the rest ------------
#
# It is measured at up to `SAMPLE` steps spread evenly over the history. Episodes are held out as a whole:
# successive steps are alike, and the marginal likelihood, which takes their noise to be independent, prefers
# lengths that are too short.

SAMPLE = 2000  # steps that judge features


class Sample(NamedTuple):
    """Steps that judge features."""

    x: Floats  # (n, width) their rows
    action: Longs  # (n,), or (n, k) with the numbers of the values of its parts
    episode: Longs  # the number of their episode
    b: Floats  # their targets

    def of(self, some: Any) -> "Sample":
        """Return some of the steps, given as a slice or as booleans, which are copied."""
        return Sample(self.x[some], self.action[some], self.episode[some], self.b[some])


def sample_of(history: EpisodeHistory, b: Floats) -> Sample:
    """Return the steps of a history that judge features by the targets b."""
    steps, ends, chosen = history.transitions, history.last.astype(np.int64), judges(len(b))
    episode = (ends.cumsum() - ends)[chosen]
    return Sample(history.x[steps.row[chosen]], steps.action[chosen], episode, b[chosen])


def judges(steps: int) -> Longs:
    """Return which of all steps judge features."""
    return np.unique(np.linspace(0, steps - 1, min(steps, SAMPLE)).astype(np.int64))


def held_out_error(phi: Floats, actions: int, sample: Sample, ridge: float, parts: tuple[int, ...] = ()) -> float:
    """Return the squared error of predictions of every other episode from the rest, with features phi (n, d)."""
    odd, sample = sample.episode % 2 == 1, centred(sample)
    return float(errors_of(phi, weights(phi, actions, sample, ~odd, ridge, parts), sample)[odd].sum())


def centred(sample: Sample) -> Sample:
    """Return a sample whose targets have the mean 0, as the prior has."""
    return sample._replace(b=sample.b - sample.b.mean())


def weights(
    phi: Floats,
    actions: int,
    sample: Sample,
    known: Bools,
    ridge: float,
    parts: tuple[int, ...] = (),
) -> Floats:
    """Return the weights (A, d) of a regression on the steps that are `known`."""
    action, b, row = sample.action, sample.b, np.arange(len(sample.b))
    dim = phi.shape[1]
    regression = PartsRegression(parts, dim) if parts else FeatureRegression(actions, dim)
    regression.extend(phi)
    regression.add(row[known], action[known], np.ones(np.count_nonzero(known)))
    regression.factor(ridge)
    sums = np.zeros((len(row), actions))
    np.put_along_axis(sums, action.reshape(len(row), -1), np.where(known, b, 0.0)[:, None], axis=1)
    return regression.fit(sums)


def errors_of(phi: Floats, theta: Floats, sample: Sample) -> Floats:
    """Return the squared errors of predictions of all steps by weights theta."""
    chosen = theta[sample.action]
    predicted = np.einsum("nd,nd->n", phi, chosen if chosen.ndim == 2 else chosen.sum(axis=1))
    errors: Floats = (sample.b - predicted) ** 2
    return errors


# ---- Which numbers matter: found by predicting the targets of held-out episodes ------------------------------
#
# Before that, numbers are left out that are sums of multiples of earlier ones and a constant, up to rounding:
# copies in other units, sums and differences. They tell nothing new, but features of the others would be fewer
# or coarser.
#
#     fit waves of all numbers to half of the episodes, with the length scale that predicts the other half best
#     for each number i
#         loss_i = by how much the error of predictions rises if number i is that of another step
#         if loss_i, and two standard errors more, is a small part of what is explained: i seems not to matter
#         if loss_i is more than that, and more than two standard errors: i matters
#     take back those that matter
#     leave out those that seem not to, in the order of loss_i, if a new fit without them predicts no worse
#
# Numbers are exchanged with those of the step that is half of all held-out steps away, without chance. For a
# number that is independent of all others, this changes the error by chance alone. Standard errors are over
# episodes. Where little is explained, as at the beginning, nothing changes; nor does it where no number matters,
# as when actions cost something and nothing else has been found. All are judged again when the data have
# doubled, so that a number that was left out can come back.

MOST_NUMBERS = 64  # numbers; for more of them this takes too long
ROWS_PER_NUMBER = 5  # observations that are needed to tell whether numbers are copies
COPIED = 1e-5  # standard deviations; by no more does a copy differ from a combination of others, besides rounding
MOST_ROUNDED = 1e-2  # standard deviations, to which rounding may amount
FEWEST_EPISODES = 6  # episodes that are needed to tell
JUDGING_STEPS = 1000  # steps that judge
LEAST_PART = 0.03  # of what predictions explain; what loses less may not matter
SURE_ERRORS = 2.0  # standard errors
LENGTHS = 0.125, 0.25, 0.5  # of waves, in units of the number of numbers


def copies_in(x: Floats) -> Bools:
    """Return which of the numbers x (n, m) are linear combinations of earlier ones and a constant, to rounding.

    Numbers whose values are all of single precision are taken to be rounded to it, others to double precision.
    Numbers that have never changed are no copies.
    """
    copies = np.zeros(x.shape[1], np.bool_)
    if x.shape[1] > MOST_NUMBERS or len(x) < ROWS_PER_NUMBER * x.shape[1]:
        return copies
    largest, spread = np.abs(x).max(axis=0), x.std(axis=0)
    moves = (x.min(axis=0) < x.max(axis=0)) & (spread > 0)
    with np.errstate(over="ignore"):
        single = (x.astype(np.float32) == x).all(axis=0)
    spread = np.where(moves, spread, 1.0)
    z = (x - x.mean(axis=0)) / spread
    rounding = np.finfo(np.float64).eps * largest / spread
    rounding[single] *= 2.0**29  # 24 bits instead of 53
    kept: list[int] = []
    for i in np.flatnonzero(moves):
        weight = np.linalg.lstsq(z[:, kept], z[:, i])[0]
        rounded = rounding[i] + float(np.abs(weight) @ rounding[kept])
        copies[i] = np.abs(z[:, i] - z[:, kept] @ weight).max() <= COPIED + min(rounded, MOST_ROUNDED)
        if not copies[i]:
            kept.append(int(i))
    return copies


def relevant_numbers(
    features: Callable[[Floats, float], Floats], actions: int, sample: Sample, before: Bools, ridge: float
) -> Bools:
    """Return which of the first numbers of all rows are relevant.

    Parameters
    ----------
    features
        A function of rows, and of the length scale of waves, to features of all numbers.
    before
        Which numbers were relevant before.
    """
    sample = centred(sample.of(slice(None, None, 1 + len(sample.b) // (JUDGING_STEPS + 1))))
    halves = [sample.episode % 2 == half for half in (0, 1)]
    _, episode = np.unique(sample.episode, return_inverse=True)
    if len(before) > MOST_NUMBERS or episode.max() + 1 < FEWEST_EPISODES:
        return before

    def fit(x: Floats, length: float) -> tuple[list[Floats], Floats]:
        """Return the weights of either half, and the errors of predictions of the other."""
        phi, errors = features(x, length), np.empty(len(x))
        fitted = [weights(phi, actions, sample, half, ridge) for half in halves]
        for theta, half in zip(fitted, halves, strict=True):
            errors[~half] = errors_of(phi, theta, sample)[~half]
        return fitted, errors

    def lost(i: int, fitted: list[Floats], errors: Floats, length: float) -> tuple[float, float]:
        """Return by how much the error rises if number i is that of another step, and its standard error."""
        rise = -errors
        for theta, half in zip(fitted, halves, strict=True):
            held = sample.of(~half)
            held.x[:, i] = np.roll(held.x[:, i], len(held.x) // 2)
            rise[~half] += errors_of(features(held.x, length), theta, held)
        each = np.bincount(episode, rise)
        return float(each.sum()), float(np.sqrt(len(each)) * each.std(ddof=1))

    found = {length: fit(sample.x, length) for length in (each * len(before) for each in LENGTHS)}
    length = min(found, key=lambda each: float(found[each][1].sum()))
    error = float(found[length][1].sum())
    small = LEAST_PART * (float((sample.b**2).sum()) - error)
    loss, doubt = np.array([lost(i, *found[length], length) for i in range(len(before))]).T
    matters = (loss > small) & (loss > SURE_ERRORS * doubt)
    if small <= 0 or not matters.any():
        return before
    kept: Bools = before | matters
    x = sample.x.copy()
    x[:, : len(kept)][:, ~kept] = x.mean(axis=0)[: len(kept)][~kept]
    for i in np.argsort(loss, kind="stable"):
        if not kept[i] or loss[i] + SURE_ERRORS * doubt[i] > small or np.count_nonzero(kept) == 1:
            continue
        fewer = x.copy()
        fewer[:, i] = x[:, i].mean()
        errors = float(fit(fewer, length)[1].sum())
        if errors <= error:
            x, error, kept[i] = fewer, errors, False
    return kept


# ---- Categories: the values of texts and of identifiers, numbered in the order in which they appear ----------
#
# A text has no number of values that is known in advance, and a Discrete number may have millions. The first
# values that appear have a category each, up to `MOST_CATEGORIES`; category 0 is for all others, and for those not
# yet learned from. Features have room for 2, 4, 8, .. categories, so that they change a few times only.

MOST_CATEGORIES = 255  # categories of a number, without the one for all others


class Categories:
    """The values of each open number of a layout that have a category of their own.

    If the discrete numbers have more than `indicators` indicators, those with more than MOST_CATEGORIES + 1 values
    are open; the codes of texts always are. A number has at most `most` categories, besides that for all others.
    """

    def __init__(self, layout: Layout, indicators: int, most: int = MOST_CATEGORIES) -> None:
        self.most = most
        many = sum(layout.counts) > indicators
        self.first, self._counts = layout.measured, layout.counts
        open_ = [j for j, n in enumerate(layout.counts) if n == CODES or (many and n > MOST_CATEGORIES + 1)]
        self.values: dict[int, Floats] = {j: np.zeros(0) for j in open_}  # in the order of appearance

    @property
    def counts(self) -> list[int]:
        """The number of values of each discrete number, after numbering: of categories a power of 2."""
        room = {j: 1 << max(1, len(known).bit_length()) for j, known in self.values.items()}  # one for all others
        return [room.get(j, n) for j, n in enumerate(self._counts)]

    def numbered(self, x: Floats) -> Floats:
        """Return rows (N, n) in which the values of open numbers are replaced by their categories."""
        if not self.values:
            return x
        x = x.copy()
        for j, known in self.values.items():
            column, order = x[:, self.first + j], np.argsort(known)
            at = order[np.minimum(np.searchsorted(known[order], column), len(known) - 1)] if len(known) else None
            x[:, self.first + j] = 0 if at is None else np.where(known[at] == column, at + 1, 0)
        return x

    def extended(self, x: Floats) -> Self:
        """Return categories that include the values of these rows, as far as there is room."""
        later = copy(self)
        later.values = {}
        for j, known in self.values.items():
            found, where = np.unique(x[:, self.first + j], return_index=True)
            new = found[np.argsort(where)]
            later.values[j] = np.concatenate([known, new[~np.isin(new, known)]])[: self.most]
        return later

    def state(self) -> dict[str, Floats]:
        """Return the arrays that a file must contain, and that a policy is exported with."""
        return {f"category_{j}": known for j, known in self.values.items()}

    def read(self, file: Archive) -> Self:
        """Return the categories of a file, checked."""
        later = copy(self)
        later.values = {}
        for j in self.values:
            known = file.take(f"category_{j}", file.shape(f"category_{j}", 1))
            apart = len(np.unique(known)) == len(known) <= MOST_CATEGORIES
            if not apart or not ((known >= 0) & (known < self._counts[j]) & (known == np.floor(known))).all():
                raise ArchiveError("is damaged: its categories make no sense")
            later.values[j] = known
        return later


# ---- Observations as rows that a history can store, and as features of these rows ---------------------------

TOLERATED = 1e-3  # how far beyond a bound a number may lie without a warning, as a part of the width
MOST_FEATURES = 2**14  # features that any basis may make of a row before their number is known
JUDGING = 100  # waves by which it is judged which numbers are relevant
MATRICES = 4  # matrices per action: the sums, their copy while learning, and two factors


class Lookup:
    """The mapping from observations to rows, and from rows to features.

    With an `Observed` basis, a row is the observation itself; with any other, it is its features. The bounds of
    a `given` basis are used as they are; those of the environment's space only limit the observed range.

    Parameters
    ----------
    suited
        A function that returns the basis that suits so many numbers, which are then those that are
        relevant; None if the basis is that of all numbers.
    """

    def __init__(self, basis: Any, task: Task, given: bool, suited: Callable[[int], Any] | None = None) -> None:
        self.basis, self.task, self.actions = basis, task, task.actions
        scaled = isinstance(basis, Observed)
        low, high = (basis.low, basis.high) if scaled else ([], [])
        self.ranges = ranges_of(low, high, observed=not given)
        self.functions: Any = basis.basis if len(low) else None  # of the relevant numbers, as tuned to the data
        self.suited = suited if len(low) > 1 else None
        self.relevant = np.ones(len(low), np.bool_)  # which of the measured numbers have features
        self.copies = np.zeros(len(low), np.bool_)  # which of them are combinations of earlier ones
        self.judged = 0  # the number of steps by which it was last decided which are relevant
        self.crossed = (
            usual_features(task.parts) if task.parts else MOST_CROSSED
        )  # features, if words change all others
        self.categories = (
            Categories(basis.layout, MOST_INDICATORS, min(self.crossed, MOST_CATEGORIES)) if scaled else None
        )
        self._at: Any = None

    @property
    def layout(self) -> Layout:
        """The layout of the numbers that have features, with the number of their categories."""
        layout: Layout = self.basis.layout
        if self.categories is None:
            return layout
        low, high = (np.array(end, object)[self.relevant].tolist() for end in (layout.low, layout.high))
        return layout._replace(low=low, high=high, counts=self.categories.counts)

    @property
    def traits(self) -> MeasuredBasis:
        """The basis of measured numbers, or the defaults of such bases where it has a method `rows` alone."""
        return self.functions if isinstance(self.functions, MeasuredBasis) else MeasuredBasis()

    @property
    def threads(self) -> bool:
        """Whether features may be computed in several threads; a user's function may not be made for them."""
        return isinstance(self.functions, MeasuredBasis)

    @property
    def centred(self) -> bool:
        """Whether numbers are scaled by what all data have in common, which changes when the data have doubled."""
        return self.traits.centred

    def row(self, observation: Any) -> Floats:
        """Return an observation as a row, after checking it."""
        if isinstance(self.basis, Observed):
            x = np.array(vector_of(self.basis.layout, observation))  # environments may reuse their array
            if not self.centred:  # these do not stop at the bounds
                self.warn_outside(x[: len(self.ranges.least)])
            return x
        state = self.task.checked(observation)
        if self._at is None:
            features = bound(self.basis, self.task.states, self.actions, 1, state)
            if features.blocks != self.actions:
                raise ValueError(
                    f"BoundedRLSVI needs a basis with one block of weights per action, {self.basis!r} has "
                    f"{features.blocks}: use bases.StateFeatures, or StationaryRLSVI(basis=...)"
                )
            self._at = features.at
        return np.array(self._at(0, state)[1][0], dtype=np.float64)

    def warn_outside(self, x: Floats) -> None:
        """Warn if numbers lie beyond the bounds of their space, by more than a thousandth of the width."""
        least, most = self.ranges.least, self.ranges.most
        if all_within(x, least, most):
            return
        slack = TOLERATED * np.where(np.isfinite(most - least), most - least, 0.0)
        if ((x < least - slack) | (x > most + slack)).any():
            warn(  # the same words every time, so that Python shows them once
                "observations lie outside of the bounds of the observation space, and are taken as if they lay on "
                "the bounds: correct observation_space, or give the environment another one by "
                "gymnasium.wrappers.TransformObservation(env, lambda x: x, space)",
            )

    def features(self, x: Floats) -> Floats:
        """Return the features of rows, (N, d)."""
        if not isinstance(self.basis, Observed):
            return x
        assert self.categories is not None
        if self.relevant.all() and not self.categories.values:
            return rows_of(self.basis.layout, self.functions, self.ranges, x, self.crossed)
        x, m = self.categories.numbered(x), len(self.relevant)
        kept = np.concatenate([x[:, :m][:, self.relevant], x[:, m:]], axis=1)
        return rows_of(self.layout, self.functions, self.ranges.of(self.relevant), kept, self.crossed)

    def values(self, theta: Floats, x: Floats) -> Floats:
        """Return the values of rows and all actions, (N, A), by weights (A, d)."""
        return np.concatenate([self.features(x[rows]) @ theta.T for rows in blocks(len(x))])

    def check(self, x: Floats) -> None:
        """Raise an error before the first step if no features can be made of x, or too many."""
        first = copy(self)
        first.follow(x[None])
        if self.centred:
            first.ranges = self.traits.spread(self.ranges, self.seen(x[None]))
        check_size(self.task, first.features(x[None]).shape[1])

    def follow(self, x: Floats) -> bool:
        """Extend categories and ranges to contain new rows. Return whether this has changed all features."""
        more, before = False, self.categories
        if before is not None and before.values:
            self.categories = before.extended(x)
            more = before.counts != self.categories.counts
        if self.centred:
            return more
        ranges = grown(self.ranges, x[:, : len(self.ranges.low)])
        self.ranges = ranges or self.ranges
        return more or ranges is not None

    def seen(self, x: Floats) -> Seen:
        """Return what scaling depends on, of all rows x."""
        return seen_in(x[:, : len(self.ranges.low)])

    def tune(self, seen: Seen, sample: Sample, steps: int, ridge: float) -> Self:
        """Return a lookup for the relevant numbers, scaled by all data, whose features predict best."""
        tuned, given = copy(self), self.basis.basis
        if self.suited is not None:
            tuned.copies = copies_in(sample.x[:, : len(self.relevant)])
            again = (self.relevant & tuned.copies).any()  # what it tells is in numbers that were left out
            before = ~tuned.copies if again else (self.relevant | self.copies) & ~tuned.copies
            tuned.relevant = tuned._relevant(seen, sample, before, ridge)
            given = tuned.functions = self.suited(int(tuned.relevant.sum()))
        if not tuned.centred:
            if self.centred:  # ranges are then those observed, and no longer so many standard deviations
                unknown = ranges_of(self.basis.low, self.basis.high, observed=True)
                tuned.ranges = grown(unknown, np.stack([seen.least, seen.most])) or unknown
            return tuned
        tuned.ranges = tuned.traits.spread(self.ranges, seen)

        def error(functions: Any) -> float:
            other = copy(tuned)
            other.functions = functions
            return held_out_error(other.features(sample.x), self.actions, sample, ridge, self.task.parts)

        n = int(tuned.relevant.sum())
        tuned.functions = given.tune(n, steps, error if sample.episode.any() else None)
        return tuned

    def _relevant(self, seen: Seen, sample: Sample, before: Bools, ridge: float) -> Bools:
        """Return which numbers are relevant, judged by waves, which suit any number of them."""
        judge = copy(self)
        judge.ranges, judge.relevant = Waves().spread(self.ranges, seen), ~self.copies

        def features(x: Floats, length: float) -> Floats:
            judge.functions = Waves(features=JUDGING, length=length)
            return judge.features(x)

        return relevant_numbers(features, self.actions, sample, before, ridge)

    def arrays(self) -> dict[str, Any] | None:
        """Return the arrays that define the features in an exported policy, or None if there are none."""
        if not isinstance(self.basis, Observed):
            return None
        n = int(self.relevant.sum())
        made = self.traits.arrays(n) if n else {}
        if made is None:
            return None
        dim = self.functions.rows(np.zeros((1, n))).shape[1] if n else 1
        crossed = is_crossed(self.layout, dim, self.crossed)
        if not n:  # a constant, if it is crossed with the discrete numbers
            made = {"waves": np.zeros((0, int(crossed))), "scale": np.ones(int(crossed))}
        ranges = self.ranges.of(self.relevant)
        arrays = {"low": ranges.low, "high": ranges.high, **made, "crossed": crossed}
        if not self.relevant.all():
            arrays["relevant"] = np.flatnonzero(self.relevant)
        return arrays if self.categories is None else arrays | self.categories.state()

    def state(self) -> dict[str, Any]:
        """Return the arrays that a file must contain."""
        arrays = {"ranges.low": self.ranges.low, "ranges.high": self.ranges.high, **self.traits.state()}
        if self.suited is not None:
            arrays |= {"relevant": self.relevant, "judged": np.array([self.judged], np.int64)}
            if self.copies.any():
                arrays["copies"] = self.copies
        return arrays if self.categories is None else arrays | self.categories.state()

    def read(self, file: Archive, dim: int) -> None:
        """Read the scaling, and how the basis was tuned, for `dim` features."""
        low, high = (file.take(f"ranges.{end}", self.ranges.low.shape) for end in ("low", "high"))
        if not ((low < high) & np.isfinite(high - low)).all():
            raise ArchiveError("is damaged: its ranges do not fit the observations")
        self.ranges = self.ranges._replace(low=low, high=high)
        if self.categories is not None:
            self.categories = self.categories.read(file)
        if self.suited is not None and "relevant" in file:  # files of earlier versions have none
            self.relevant = file.take("relevant", low.shape, np.bool_)
            self.judged = int(file.take_within("judged", (1,), np.int64, 0, 2**62)[0])
            if "copies" in file:
                self.copies = file.take("copies", low.shape, np.bool_)
            if not self.relevant.any() or (self.relevant & self.copies).any():
                raise ArchiveError("is damaged: none of its numbers is relevant, or one that is a copy")
            self.functions = self.suited(int(self.relevant.sum()))
        if isinstance(self.functions, MeasuredBasis):
            self.functions = self.functions.read(file)
            if self.functions.size(int(self.relevant.sum()), max(dim, MOST_FEATURES)) > dim:
                raise ArchiveError(f"is damaged: it has weights of {dim} features, its basis has more")


@compiled
def all_within(x: Floats, least: Floats, most: Floats) -> bool:
    """Return whether all numbers lie within their bounds."""
    within = True
    for i in range(x.size):
        within &= least[i] <= x[i] <= most[i]
    return within


def check_size(task: Task, dim: int) -> None:
    """Raise an error if there are too many features."""
    if task.parts:
        check_weights(task.parts, dim, MATRICES)
        return
    fits(
        f"the sums and factors of {dim} features of {task.actions} actions",
        MATRICES * task.actions * dim**2,
        "use fewer features, such as basis=bases.Waves(features=100), or list fewer actions and offer them by "
        "gymnasium.wrappers.TransformAction",
    )
