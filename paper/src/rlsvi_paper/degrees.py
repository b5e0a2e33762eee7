"""Words of degree: what "about", "much" or "significantly" mean in every criterion.

The paper says "roughly 500 episodes", "much faster" or "a significant improvement", and a criterion needs a
number. Each word has the same one wherever it stands, and no number is chosen for the result that it gives.

ABOUT, 1.1 : "about", "roughly", "≃", "essentially", "almost" and "slightly": no more than a factor of 1.1 away.
    The factor is the paper's own: section 6.2 calls 3500 rows after 3183, 1.1 times as many, a significant
    improvement. So "significantly" is at least this factor, and what is nearer is about the same. A policy is
    "optimal" if its reward is within this factor of the best.
MUCH_FACTOR, 2 : "much", "greatly", "many fewer", "mostly" and "crucial": at least twice, or at most half. What is
    "stable", "robust", "close", "similar" or "not much" is less than a factor of two away.
FAR_FACTOR, 10 : "far superior" and "intractable": at least ten times.
NEARLY_ALL, .8 : "consistently", and sentences about runs without an exception: at least four of five, which the
    twenty runs of the most expensive figure can show if all of them do so.
MOST_SHARE, .5 : "most", and what is said not to succeed: at least, or at most, half.

Words that speak of no amount, such as "gracefully", have a criterion of their own, which says what it asks for.
"""

from rlsvi.study.statistics import Interval
from rlsvi_paper.claim import Verdict, between

ABOUT = SIGNIFICANT = 1.1
MUCH_FACTOR = 2.0
FAR_FACTOR = 10.0
NEARLY_ALL, MOST_SHARE = 0.8, 0.5
LITTLE_SHARE = 1 - 1 / ABOUT  # the share that is missing from what is about the whole: 1/11


def about(interval: Interval, value: float, measured: str) -> Verdict:
    """Reproduced if all of the interval is about `value`, which is positive."""
    return between(interval, value / ABOUT, value * ABOUT, measured)


def slightly_more(interval: Interval, measured: str) -> Verdict:
    """Reproduced if all of the interval, of a ratio, is above 1 and about 1."""
    return between(interval, 1.0, ABOUT, measured)


def as_close(interval: Interval, measured: str) -> Verdict:
    """Reproduced if all of the interval, of a ratio, is less than a factor of two away from 1."""
    return between(interval, 1 / MUCH_FACTOR, MUCH_FACTOR, measured)
