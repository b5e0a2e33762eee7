"""Recommendations at a shop's size: hundreds of products, and what each saving costs."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Claim, Verdict, at_least, between
from rlsvi.paper.drawing import curves, labelled, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.shops import PARTS, served
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import Interval, bootstrap

LAST = 4  # parts of a run that count as its end
KNOWING = 200  # customers served by those who do not learn
AGENTS = ("RLSVI", "linear bandit", "Thompson sampling", "myopic policy", "random")
SAVINGS: dict[str, tuple[bool, bool, int | None]] = {  # pooled, sketched, every
    "exact": (False, False, 1),
    "pooled": (True, False, 1),
    "every 10": (False, False, 10),
    "sketched": (False, True, 1),
    "pooled, every 10": (True, False, 10),
    "all three": (True, True, 10),
}


def jobs(sizes: Sequence[Sequence[int | None]], few: Sequence[int], seeds: int) -> list[Job]:
    """`sizes`: products, slots, customers and sketch of each shop; `few`: those of the one to try savings in."""
    found = []
    for N, J, L, sketch in sizes:
        agents = [*AGENTS, *(["pooled bandit"] if (N, J) == tuple(sizes[0][:2]) else [])]
        found += [_job(agent, N, J, L, seed, True, sketch, 10) for agent in agents for seed in range(seeds)]
    N, J, L, sketch = few
    found += [
        _job("RLSVI", N, J, L, seed, pooled, sketch if sketched else None, every)
        for pooled, sketched, every in SAVINGS.values()
        for seed in range(seeds)
    ]
    return list({job.name: job for job in found}.values())


def _job(
    agent: str,
    N: int | None,
    J: int | None,
    L: int | None,
    seed: int,
    pooled: bool,
    sketch: int | None,
    every: int | None,
) -> Job:
    learns = agent in ("RLSVI", "linear bandit")
    count = min(KNOWING, L or 0) if agent in ("myopic policy", "random") else L
    form = (pooled, sketch, every) if learns else (True, None, None)
    cost = 2e-6 * (count or 0) * (N or 0) * (J or 0) if learns else 1e-4 * (count or 0) * (J or 0)
    return Job.of(
        served,
        cost,
        agent=agent,
        products=N,
        slots=J,
        customers=count,
        pooled=form[0],
        sketch=form[1],
        every=form[2],
        seed=seed,
    )


def at_scale(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the largest shop."""
    return frame.filter(pl.col("products") == pl.col("products").max())


def with_savings(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the shop in which the exact form was tried."""
    size = frame.filter(~pl.col("pooled"))["products"].unique()
    return frame.filter(pl.col("products").is_in(size.to_list()))


def likes(frame: pl.DataFrame, agent: str, last: int = PARTS) -> Floats:
    """Mean likes a customer in the last parts of each run, by seeds."""
    rows = frame.filter(pl.col("agent") == agent).sort("seed", "customer")
    return np.array(rows["likes"].to_numpy().reshape(-1, PARTS)[:, -last:].mean(axis=1))


def of_saving(frame: pl.DataFrame, name: str) -> Floats:
    """Mean likes a customer of all of a run over those of random play, by seeds."""
    pooled, sketched, every = SAVINGS[name]
    sketch = pl.col("sketch").is_not_null() if sketched else pl.col("sketch").is_null()
    rows = frame.filter((pl.col("pooled") == pooled) & sketch & (pl.col("every") == every))
    return likes(rows, "RLSVI") - float(frame["slots"][0]) / 2


def over_bandit(frame: pl.DataFrame) -> Verdict:
    """RLSVI's likes at the end less the linear bandit's, seed by seed."""
    ours, theirs = likes(frame, "RLSVI", LAST), likes(frame, "linear bandit", LAST)
    more = bootstrap(np.mean, ours - theirs)
    N, J, L = (int(frame[name].max()) for name in ("products", "slots", "customers"))  # type: ignore[arg-type]
    return at_least(
        more,
        0.0,
        f"{J} of {N} products: at the end of {L:,} customers RLSVI has {ours.mean():.2f} likes a customer, the "
        f"bandit {theirs.mean():.2f}: {more} more",
    )


def of_the_knowing(frame: pl.DataFrame) -> Verdict:
    """What RLSVI has at the end over random play, less three quarters of what knowing the truth brings."""
    half = frame["slots"][0] / 2
    ours, best = likes(frame, "RLSVI", LAST) - half, likes(frame, "myopic policy") - half
    more = bootstrap(np.mean, ours - 0.75 * best)
    return at_least(
        more,
        0.0,
        f"at the end RLSVI has {ours.mean():.2f} likes a customer over random play, the policy that knows "
        f"{best.mean():.2f}, and nobody can have more than {half - 0.5:g}: {more} over the criterion",
    )


def does_not_learn(frame: pl.DataFrame) -> Verdict:
    """Thompson sampling's likes at the end, as a share of the slots, less one half."""
    J = frame["slots"][0]
    more = bootstrap(np.mean, likes(frame, "Thompson sampling", LAST) / J - 0.5)
    return between(
        more, -0.05, 0.05, f"its share of likes at the end is {more} over one half, that of random play"
    )


def _kept(frame: pl.DataFrame, name: str, share: float) -> Verdict:
    """What a saving gains over random play, less a share of what the exact form gains."""
    gained, exact = of_saving(frame, name), of_saving(frame, "exact")
    more: Interval = bootstrap(np.mean, gained - share * exact)
    words = f"it gains {gained.mean():.2f} likes a customer over random play, the exact form {exact.mean():.2f}"
    return at_least(more, 0.0, f"{words}: {more} over {share:g} of that")


def draw(frame: pl.DataFrame) -> Picture:
    """Learning curves in every shop, and the savings."""
    rest = frame.filter(pl.col("every").is_null() | (pl.col("every") == 10))
    some = frame.filter(pl.col("agent") == "random").select("products", "slots").unique().sort("products").rows()
    figure, axes = panels(len(some) + 1, 3.9)
    for panel, (N, J) in zip(axes, some, strict=False):
        shop = rest.filter((pl.col("products") == N) & (pl.col("slots") == J))
        end = int(shop["customer"].max())  # type: ignore[arg-type]
        for i, agent in enumerate((*AGENTS[:3], "pooled bandit")):
            rows = shop.filter(pl.col("agent") == agent).sort("seed", "customer")
            if rows.height:
                values = rows["likes"].to_numpy().reshape(-1, PARTS)
                curves(panel, rows["customer"].to_numpy()[:PARTS].astype(float), values, agent, i)
        for agent, line in (("myopic policy", "--"), ("random", ":")):
            panel.axhline(likes(shop, agent).mean(), color=COLOURS[6], linestyle=line, linewidth=1, label=agent)
        panel.set_xlim(0, end)
        labelled(panel, "customers", "likes a customer", f"{J} of {N} products")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=9
    )
    tried = with_savings(frame).filter(pl.col("agent") == "RLSVI")
    for i, name in enumerate(SAVINGS):
        gained = of_saving(tried, name)
        axes[-1].plot(np.full(len(gained), i), gained, ".", color=COLOURS[0], alpha=0.5)
        axes[-1].plot([i - 0.3, i + 0.3], 2 * [gained.mean()], color=COLOURS[0], linewidth=2)
    axes[-1].set_xticks(range(len(SAVINGS)), list(SAVINGS), rotation=30, ha="right", fontsize=8)
    N, J = tried["products"][0], tried["slots"][0]
    labelled(axes[-1], "saving", "likes a customer over random", f"what savings cost, {J} of {N}")
    return figure


FIGURE = Figure(
    name="recsys-scale",
    title="Recommendations at a shop's size",
    where="section 6.3, at a shop's size",
    caption=(
        "Likes to be expected of a customer, over customers, with gamma_an ~ N(0, 4) and beta = 0 as in the paper "
        "but hundreds of products (not in the paper): RLSVI pooled over slots, and sketched where there are most "
        "products; the same without the value of later slots, a linear bandit; the paper's pooled bandit with its "
        "lambda, in the smallest shop; Bernoulli Thompson sampling; the myopic policy that knows the truth, an "
        "upper reference (the first answer is a like with probability one half whatever is shown, so nobody has "
        "more than J - 1/2), and random play, the lower one. Right: what each saving costs where the exact form, "
        "one regression a slot and product and a sample a customer, can still be run."
    ),
    sizes={
        "quick": {"sizes": [[30, 6, 300, None], [100, 10, 400, 64]], "few": [20, 5, 300, 10], "seeds": 5},
        "paper": {
            "sizes": [[50, 8, 2000, None], [200, 10, 2000, None], [500, 20, 2000, 64]],
            "few": [40, 8, 1000, 20],
            "seeds": 6,
        },
    },
    jobs=jobs,
    claims=[
        Claim(
            "An RL algorithm may outperform bandits where much data is available: in the largest shop",
            "section 6.3",
            "RLSVI has more likes a customer than the linear bandit in the last fifth of the run",
            over_bandit,
            at_scale,
        ),
        Claim(
            "Generalization and exploration can be crucial: RLSVI learns most of what there is to know in the "
            "largest shop",
            "section 6.3",
            "in the last fifth of the run RLSVI has at least three quarters of what the myopic policy, which "
            "knows the truth, has over random play",
            of_the_knowing,
            at_scale,
        ),
        Claim(
            "Bernoulli Thompson sampling does not learn much, in the largest shop either",
            "section 6.3",
            "in the last fifth of the run its share of likes is within .05 of one half",
            does_not_learn,
            at_scale,
        ),
        Claim(
            "Pooling the slots costs nothing (our extension)",
            "section 6.3",
            "pooled, RLSVI gains at least as much over random play in the whole run as in the exact form",
            lambda frame: _kept(frame, "pooled", 1.0),
            with_savings,
        ),
        Claim(
            "A sample once in ten customers costs little (our extension)",
            "section 6.3",
            "with one sample in ten customers RLSVI gains at least .8 of what it gains with one a customer",
            lambda frame: _kept(frame, "every 10", 0.8),
            with_savings,
        ),
        Claim(
            "A sketch of half the size costs little (our extension)",
            "section 6.3",
            "with answers hashed to half as many places RLSVI gains at least .8 of what the exact form gains",
            lambda frame: _kept(frame, "sketched", 0.8),
            with_savings,
        ),
    ],
    draw=draw,
)
