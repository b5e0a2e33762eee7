"""What exploration costs, as the page of a shop says, against the truth in simulated shops.

`python -m benchmarks.shop_exploration --shops 12` lets the customers of the paper visit new shops, which explore
more than by default. At every recommendation, the product that the mean of the model prefers is noted beside the
one that is shown: the difference of the probabilities that they are liked is what is lost at once. The page knows
neither.
"""

import argparse
import tempfile
from typing import Any

import numpy as np

from rlsvi.mdp.recommendation import draw_taste, like_probability
from rlsvi_shop import Recommender, recommender
from rlsvi_shop.model.draws import choose
from rlsvi_shop.service.statistics import LATEST_BUCKETS, WIDEST_BUCKET, ShopStatistics


def run_shop(seed: int, products: int, slots: int, customers: int, exploration: float) -> dict[str, float]:
    """Return the share explored, the true cost per visit lately, and what the page says of it."""
    taste, rng, best = draw_taste(products, seed=seed), np.random.default_rng(seed), 0
    lost: dict[tuple[str, str], float] = {}

    def choose_and_note(draws: Any, draw: int, *rest: Any) -> Any:
        nonlocal best
        best = choose(draws, 0, *rest).product
        return choose(draws, draw, *rest)

    recommender.choose = choose_and_note
    try:
        with tempfile.TemporaryDirectory() as folder:
            options: dict[str, Any] = {"slots": slots, "learning": {"seed": seed, "exploration": exploration}}
            with Recommender(database=f"sqlite:///{folder}/shop.db", **options) as shop:
                shop.add_all({str(i): None for i in range(products)})
                for visit in map(str, range(customers)):
                    x = np.zeros(products, np.int8)
                    for _ in range(slots):
                        product = shop.recommend(visit)
                        a, preferred = int(product), int(shop.sample.names[best])  # type: ignore[union-attr]
                        p, other = like_probability(taste, x, a), like_probability(taste, x, preferred)
                        lost[visit, product] = other - p
                        x[a] = 1 if rng.random() < p else -1
                        shop.feedback(visit, product, float(x[a] > 0))
                page = ShopStatistics(shop.settings, shop.events, lambda: None)
                while (found := page.current())["read"] < found["events"]:
                    pass
                counts = page._counts
                first = sorted(counts.periods)[-LATEST_BUCKETS:][0] * min(counts.width, WIDEST_BUCKET)
                events = shop.events.since(first - 1, 10**9)
    finally:
        recommender.choose = choose
    lately, explored = found["lately"], [it for it in events if it.kind == "recommended" and it.explored]
    truth = sum(lost[it.visit, it.product] for it in explored) / lately["number"]
    said = lately["cost"] or dict.fromkeys(("mean", "low", "high"), np.nan)
    return {"explored": lately["explored"], "truth": truth, **said}


def main() -> None:
    """Print a line for every shop, and how often the interval contains the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = {"shops": 12, "first-seed": 0, "products": 20, "slots": 6, "customers": 1200, "exploration": 1.0}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    asked = parser.parse_args()
    rows = []
    for seed in range(asked.first_seed, asked.first_seed + asked.shops):
        rows.append(run_shop(seed, asked.products, asked.slots, asked.customers, asked.exploration))
        print(seed, " ".join(f"{name} {value:.4f}" for name, value in rows[-1].items()), flush=True)
    known = [row for row in rows if not np.isnan(row["mean"])]
    inside = sum(row["low"] <= row["truth"] <= row["high"] for row in known)
    truth, said = (np.mean([row[name] for row in known]) for name in ("truth", "mean"))
    print(f"in {inside} of {len(known)} shops the interval contains the truth; means {truth:.3f} and {said:.3f}")


if __name__ == "__main__":
    main()
