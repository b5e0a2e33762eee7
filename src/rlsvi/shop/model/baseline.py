"""Running statistics of rewards: the baseline of each slot, the range and the size of rewards."""

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.shop.model.histories import OpenVisit

RECENT = 200  # visits that the baseline averages over


class RewardStatistics:
    """Means of recent rewards by slot, and the range and the mean square of all rewards."""

    def __init__(self, slots: int, unit: float | None) -> None:
        self.unit = unit
        self.recent = np.full((RECENT, slots), np.nan)
        self.visits = self.answers = 0
        self.lowest = self.highest = self.total = self.squares = 0.0  # the range includes 0

    def add(self, visit: OpenVisit) -> None:
        """Add the rewards of a visit."""
        rewards = np.full(self.recent.shape[1], np.nan)
        for slot, (x, reward) in enumerate(zip(visit.x, visit.reward, strict=True)):
            if x != 0:
                rewards[slot] = reward
                self.answers += 1
                self.lowest, self.highest = min(self.lowest, reward), max(self.highest, reward)
                self.total += reward
                self.squares += reward * reward
        self.recent[self.visits % RECENT] = rewards
        self.visits += 1

    @property
    def scale(self) -> float:
        """The unit of rewards: as given, or their root mean square; 1 while that is not known."""
        if self.unit is not None:
            return self.unit
        return float(np.sqrt(self.squares / self.answers)) if self.squares > 0.0 else 1.0

    @property
    def mean(self) -> float:
        """The mean reward of an answer; half a unit before the first."""
        return self.total / self.answers if self.answers else 0.5 * self.scale

    def base(self) -> Floats:
        """Return the reward to be expected from slot j on, (J + 1,), at the mean recent rewards of each slot.

        The mean of all rewards counts as one more answer of every slot.
        """
        there = np.isfinite(self.recent)
        rates = (np.where(there, self.recent, 0.0).sum(axis=0) + self.mean) / (there.sum(axis=0) + 1)
        base: Floats = np.concatenate([np.cumsum(rates[::-1])[::-1], [0.0]])
        return base
