"""Words of degree: what "about", "much" or "significantly" mean in every criterion.

The paper says "roughly 500 episodes", "much faster" or "a significant improvement", and a criterion needs a
number. Each word has the same one wherever it stands, and no number is chosen for the result that it gives. As
other numbers would be as reasonable, every verdict is computed with them too.

about_factor, 1.1 : "about", "roughly", "≃", "essentially", "almost" and "slightly": no more than a factor of 1.1
    away. The factor is the paper's own: section 6.2 calls 3500 rows after 3183, 1.1 times as many, a significant
    improvement. So "significantly" is at least this factor, and what is nearer is about the same. A policy is
    "optimal" if its reward is within this factor of the best. Also tried: 1.05 and 1.2.
much, 2 : "much", "greatly", "many fewer", "mostly" and "crucial": at least twice, or at most half. What is
    "stable", "robust", "close", "similar" or "not much" is less than a factor of two away. Also 1.5 and 3.
far, 10 : "far superior" and "intractable": at least ten times. Also 5 and 20.
nearly_all, .8 : "consistently", and sentences about runs without an exception: at least four of five, which the
    twenty runs of the most expensive figure can show if all of them do so. Also .7 and .9.
most, .5 : "most", and what is said not to succeed: at least, or at most, half. Also .4 and .6.

Two more are words of our own claims:

as_good, 1.25 : what is "enough" or does "as well": at most 1.25 times as much is lost, or as long taken. Also 1.1
    and 1.5.
hardly_any, .1 : what is said not to happen happens in at most a tenth of the runs, or to a tenth. Also .05 and .2.

Words that speak of no amount, such as "gracefully", have a criterion of their own, which says what it asks for.
"""

from functools import partial

from rlsvi.study.statistics import Interval
from rlsvi_paper.claim import Verdict, between, choice

about_factor = partial(choice, "“about”, a factor of", 1.1, 1.05, 1.2)
significant = partial(choice, "“significantly”, a factor of", 1.1, 1.05, 1.2)
much = partial(choice, "“much”, a factor of", 2.0, 1.5, 3.0)
far = partial(choice, "“far”, a factor of", 10.0, 5.0, 20.0)
nearly_all = partial(choice, "“consistently”, a share of", 0.8, 0.7, 0.9)
most = partial(choice, "“most”, a share of", 0.5, 0.4, 0.6)
as_good = partial(choice, "“as good”, a factor of", 1.25, 1.1, 1.5)
hardly_any = partial(choice, "“hardly any”, a share of", 0.1, 0.05, 0.2)


def little() -> float:
    """The share that is missing from what is about the whole: 1/11."""
    return 1 - 1 / about_factor()


def about(interval: Interval, value: float, measured: str) -> Verdict:
    """Reproduced if all of the interval is about `value`, which is positive."""
    return between(interval, value / about_factor(), value * about_factor(), measured)
