"""The checked episodes of a log, in the order of their episodes and steps."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium import Env

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.offline.columns import Columns
from rlsvi.offline.observations import Observations, read

if TYPE_CHECKING:
    import polars as pl


class LoggedEpisodes(NamedTuple):
    """All steps, one after another; episode e consists of the steps start[e] .. start[e + 1] - 1."""

    start: Longs  # (E + 1,)
    observation: Observations
    following: Observations  # of terminated steps without meaning
    action: Longs  # counted from 0
    reward: Floats
    terminated: Bools
    truncated: Bools
    mask: list[Bools | None]  # the legal actions where they are known
    next_mask: list[Bools | None]  # at the next observation, which is that of the next step unless it is the last
    propensity: Floats | None  # the probability of each action under the policy that took it; NaN: not known
    row: Longs  # the number of the row in the log as it was given

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return len(self.start) - 1

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.action)


def ordered(frame: "pl.DataFrame", names: Mapping[str, Any] | None) -> Columns:
    """Return the columns of a frame, whose rows are put in the order of episodes and steps."""
    columns = Columns(frame, names)
    if frame.height == 0:
        raise ValueError("the log is empty: it has no rows")
    series, _ = places_in(columns)
    columns.frame = columns.frame.sort([series.name, columns.name("step")], maintain_order=True)
    return columns


def places_in(columns: Columns) -> "tuple[pl.Series, Longs]":
    """Return the episode and the step of every row."""
    series, step = columns.one("episode"), columns.whole("step")
    if not (series.dtype.is_integer() or str(series.dtype) == "String"):
        raise ValueError(
            f"the log is wrong in column {series.name!r}: it holds {series.dtype}, not whole numbers or text"
        )
    columns.refuse(columns.name("step"), step < 0, "steps count from 0")
    return series, step


def checked(columns: Columns, env: Env[Any, Any]) -> LoggedEpisodes:
    """Return the episodes of a log with the spaces of an environment, or raise an error that names the row."""
    first: Any = env.action_space
    starts = _starts(columns)
    last = np.append(starts[1:], columns.frame.height) - 1
    terminated, truncated = columns.flags("terminated"), columns.flags("truncated")
    ended = terminated | truncated
    ended[last] = False
    columns.refuse(columns.name("step"), np.append(False, ended[:-1]), "it comes after the end of its episode")
    action = actions_of(columns, first)
    mask, next_mask = (_masks(columns, name, int(first.n)) for name in ("mask", "next_mask"))
    barred = np.array([legal is not None and not legal[a] for legal, a in zip(mask, action, strict=True)])
    columns.refuse(columns.name("action"), barred, "the mask does not allow this action")
    ends = set(last.tolist())
    everywhere = np.ones(len(action), np.bool_)
    observation = read(columns, "observation", env.observation_space, everywhere)
    following = read(columns, "next_observation", env.observation_space, ~terminated)
    apart = np.append(~observation.continues(following), False)
    apart[last] = False
    what = "it is not the observation of the next step of the episode: a step is missing, or out of order"
    columns.refuse(columns.of("next_observation")[0], apart, what)
    return LoggedEpisodes(
        np.append(starts, len(action)),
        observation,
        following,
        action,
        columns.real("reward"),
        terminated,
        truncated,
        mask,
        [own if at in ends else mask[at + 1] for at, own in enumerate(next_mask)],
        propensities_of(columns),
        columns.rows,
    )


def _starts(columns: Columns) -> Longs:
    """Return where episodes begin, after checking that the steps of each are 0, 1, 2, .."""
    episode, step = columns.one("episode"), columns.whole("step")
    new = np.append(True, (episode[1:] != episode[:-1]).to_numpy())
    starts = np.flatnonzero(new)
    expected = np.arange(len(step)) - np.repeat(starts, np.diff(np.append(starts, len(step))))
    name = columns.name("step")
    twice = ~new & (np.diff(step, prepend=-1) == 0)
    columns.refuse(name, twice, "this step of the episode is there twice")
    if (wrong := step != expected).any():
        at = int(np.argmax(wrong))
        columns.refuse(
            name,
            np.arange(len(step)) == at,
            f"step {expected[at]} of episode {episode[at]} is missing: steps must be 0, 1, 2, ..",
        )
    return starts


def actions_of(columns: Columns, space: Any) -> Longs:
    """Return the actions, counted from 0."""
    action = columns.whole("action") - int(space.start)
    names = f"{space.start} to {space.start + space.n - 1}"
    columns.refuse(columns.name("action"), (action < 0) | (action >= space.n), f"actions are {names}")
    return action


def _masks(columns: Columns, name: str, actions: int) -> list[Bools | None]:
    """Return which actions are legal; None where the log does not say."""
    masks, known = masks_of(columns, name, actions)
    return [mask if is_known else None for mask, is_known in zip(masks, known, strict=True)]


def masks_of(columns: Columns, name: str, actions: int) -> tuple[Bools, Bools]:
    """Return which actions are legal (rows, A), and in which rows the log says so; all are in the others."""
    rows = columns.frame.height
    if not columns.has(name):
        return np.ones((rows, actions), np.bool_), np.zeros(rows, np.bool_)
    column = columns.of(name)[0]
    known = columns.frame[column].is_not_null().to_numpy()
    masks = columns.vectors(name, actions, known)
    columns.refuse(column, ((masks != 0) & (masks != 1)).any(axis=1), "a mask holds True and False, or 1 and 0")
    columns.refuse(column, known & ~masks.any(axis=1), "the mask allows no action")
    return masks.astype(np.bool_) | ~known[:, None], known


def propensities_of(columns: Columns) -> Floats | None:
    """Return the probabilities of the actions, if the log has them; NaN in rows where it has none."""
    if not columns.has("propensity"):
        return None
    series = columns.frame[columns.name("propensity")]
    known = series.is_not_null().to_numpy()
    if not known.any():
        return None
    if not series.dtype.is_numeric():
        raise ValueError(f"the log is wrong in column {series.name!r}: it holds {series.dtype}, not numbers")
    chances: Floats = series.fill_null(1).to_numpy().astype(np.float64)
    columns.refuse(series.name, ~((chances > 0) & (chances <= 1)), "it must lie in (0, 1]")
    return np.where(known, chances, np.nan)
