"""Recommendations at a shop's size: hundreds of products, what each saving costs, customers who overlap."""

import polars as pl

from rlsvi.paper import shop_claims as judge
from rlsvi.paper.claim import Claim
from rlsvi.paper.figure import Figure
from rlsvi.paper.shop_drawing import draw
from rlsvi.paper.shop_plan import jobs, of_study

FIGURE = Figure(
    name="recsys-scale",
    title="Recommendations at a shop's size",
    where="section 6.3, at a shop's size",
    caption=(
        "Above: likes to be expected of a customer, over customers, with gamma_an ~ N(0, 4) and beta = 0 as in "
        "the paper but hundreds of products (not in the paper); mean and standard error over instances. RLSVI "
        "pooled over slots, and sketched where there are most products; the same without the value of later "
        "slots, a linear bandit; the same without exploration, greedy LSVI; a bandit with a table of histories, "
        "which generalizes over nothing; Bernoulli Thompson sampling; the myopic policy that knows the truth, "
        "an upper reference (the first answer is a like with probability one half whatever is shown, so nobody "
        "has more than J - 1/2), and random play, the lower one. Below: what each saving keeps of what is "
        "gained over random play in the whole run; what is left of it if customers overlap, if answers are late "
        "(a slot is 50 other customers' slots) or never come, for RLSVI and for the policy that knows; and how "
        "lambda was chosen (ringed), for every agent and shop, on instances of their own. Bars are Fieller's "
        "95% intervals of ratios on the same instances."
    ),
    sizes={
        "quick": {
            "sizes": [
                [20, 5, 200, None, 1e4, 1e4, 1e4],
                [40, 8, 300, None, 1e4, 1e4, 1e4],
                [100, 10, 300, 32, 1e4, 1e5, 1e4],
            ],
            "prior": [[20, 5, 200], [40, 8, 200], [100, 10, 200]],
            "default": [[10, 5, 300, [0.2, 1e4]], [20, 5, 200, [1e4]]],
            "exact": [[16, 4, 200], [24, 5, 200]],
            "large": [100, 10, 200],
            "crowd": [20, 5, 400],
            "seeds": 5,
        },
        "paper": {
            "sizes": [
                [50, 8, 2000, None, 1e4, 1e3, 1e4],
                [200, 10, 2000, None, 1e4, 1e4, 1e4],
                [500, 20, 2000, 64, 1e4, 1e5, 1e4],
            ],
            "prior": [[50, 8, 500], [200, 10, 1000], [500, 20, 300]],
            "default": [[10, 5, 1200, [0.2, 1e1, 1e2, 1e3, 1e4]], [200, 10, 1000, [1e4]]],
            "exact": [[40, 8, 600], [80, 8, 500]],
            "large": [500, 20, 500],
            "crowd": [50, 8, 1000],
            "seeds": 8,
        },
    },
    jobs=jobs,
    claims=[
        Claim(
            '"The reinforcement learning policy is able to outperform not only benchmark bandit algorithms": in '
            "shops",
            "section 6.3",
            "ours, in every shop: in the last fifth of the run RLSVI has more likes a customer than each of "
            "the three bandits",
            judge.in_every_shop(judge.over_bandits),
            of_study("shop"),
        ),
        Claim(
            '"An RL algorithm may outperform even an optimal myopic system, particularly where large amounts of '
            'data are available": in shops',
            "section 6.3",
            "ours, in every shop: in the last fifth of the run RLSVI has more likes a customer than the "
            "optimal myopic policy",
            judge.in_every_shop(judge.over_myopic),
            of_study("shop"),
        ),
        Claim(
            '"To learn in time less than |S| it is crucial that we can exploit generalization between states": in '
            "shops",
            "section 6.3",
            "ours, in every shop: in the last fifth of the run the likes of a bandit with a table of histories "
            "are within .05 of one half, and RLSVI has at least three quarters of what who knows the truth has "
            "over random play",
            judge.in_every_shop(judge.generalizes),
            of_study("shop"),
        ),
        Claim(
            '"In some settings, efficient generalization and exploration can be crucial": exploration, in shops',
            "section 6.3",
            "ours, in every shop: in the whole run RLSVI has more likes a customer than greedy LSVI with "
            "the same features",
            judge.in_every_shop(judge.explores),
            of_study("shop"),
        ),
        Claim(
            '"Bernoulli Thompson sampling does not learn much": in shops',
            "section 6.3",
            "ours, in every shop: in the last fifth of the run its share of likes is within .05 of one half",
            judge.in_every_shop(judge.thompson_learns_little),
            of_study("shop"),
        ),
        Claim(
            '"The linear contextual bandit outperforms RLSVI at first": in shops',
            "section 6.3",
            "ours, in every shop: it has more likes a customer in the first tenth of the run",
            judge.in_every_shop(judge.bandit_is_better_at_first),
            of_study("shop"),
        ),
        Claim(
            "Every agent has the best prior of a grid, chosen on other instances (ours)",
            "section 6.3",
            "for every agent in every shop, no other lambda of the grid, nor for RLSVI one with ten or a hundred "
            "times the noise where answers are not sketched, has .01 more of the slots liked on the instances on "
            "which it was chosen (.08 to .2 likes a customer: what is smaller is not told apart)",
            judge.priors,
            lambda frame: frame.filter(pl.col("study").is_in(["shop", "prior"])),
        ),
        Claim(
            "The usual lambda of a Recommender is for many products: at the paper's size less is better (ours)",
            "section 6.3",
            "in the smallest shop, in the usual form (exact), RLSVI has more likes a customer in the last fifth "
            "of the run with the least lambda of the grid, the paper's, than with the usual one",
            judge.prior_for_many,
            of_study("default"),
        ),
        Claim(
            "A Recommender as it comes loses nothing if it is pooled (our extension)",
            "section 6.3",
            "with the usual lambda and as many samples as are usual, at the paper's size and in a shop: pooled, "
            "it gains at least as much over random play in the whole run as in the exact form",
            judge.in_every_shop(judge.pooled_by_default),
            of_study("default"),
        ),
        Claim(
            "Pooling the slots costs nothing (our extension)",
            "section 6.3",
            "pooled, RLSVI gains at least as much over random play in the whole run as in the exact form, "
            "in the shops where savings were tried and it fits",
            lambda frame: judge.saved(frame, "pooled", 1.0),
            of_study("saving"),
        ),
        Claim(
            "A sample once in ten customers costs little (our extension)",
            "section 6.3",
            "with one sample in ten customers RLSVI gains at least .8 of what it gains with one a customer",
            lambda frame: judge.saved(frame, "every 10", 0.8),
            of_study("saving"),
        ),
        Claim(
            "A sketch of half the size costs little (our extension)",
            "section 6.3",
            "with answers hashed to half as many places RLSVI gains at least .8 of what the exact form gains",
            lambda frame: judge.saved(frame, "sketch N/2", 0.8),
            of_study("saving"),
        ),
        Claim(
            "A sketch of an eighth costs the pooled form little in the largest shop (our extension)",
            "section 6.3",
            "with answers hashed to an eighth as many places it gains at least .8 of what it gains without",
            judge.sketched,
            of_study("saving"),
        ),
        Claim(
            "Learning anew from the last fifth of the customers alone costs little (our extension)",
            "section 6.3",
            "RLSVI then gains at least .8 of what it gains if it learns anew from all of them",
            lambda frame: judge.saved(frame, "remember 1/5", 0.8),
            of_study("saving"),
        ),
        Claim(
            "Customers who overlap cost little (our extension)",
            "section 6.3",
            "with 50 customers in the shop at once RLSVI gains, in the last fifth of the run, at least .9 of what "
            "it gains with one after another",
            judge.overlapping,
            of_study("crowd"),
        ),
        Claim(
            "Late and lost answers are learned from (our extension)",
            "section 6.3",
            "with 50 customers at once, answers a slot late in the mean and one in ten lost, RLSVI gains in the "
            "last fifth of the run at least three quarters of what who knows the truth gains there",
            judge.late_and_lost,
            of_study("crowd"),
        ),
    ],
    draw=draw,
)
