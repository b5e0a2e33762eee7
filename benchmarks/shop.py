"""A shop's recommender on one core: seconds a recommendation and a customer, and memory, as products grow.

    python -m benchmarks.shop [--out DIR] [--quick]

Every size is run in a process of its own, whose peak of resident memory is told. Customers answer at random.
Learning is all but the recommendations, amortised over the customers. Prints a table and writes DIR/shop.json.
"""

import argparse
import json
import multiprocessing
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from rlsvi.shop import Recommender

SIZES = [  # products, slots, options, customers
    (50, 10, {}, 400),
    (100, 10, {}, 400),
    (200, 10, {}, 300),
    (50, 10, {"pooled": True}, 400),
    (100, 10, {"pooled": True}, 400),
    (200, 10, {"pooled": True}, 1000),
    (500, 20, {"pooled": True}, 300),
    (500, 20, {"pooled": True, "sketch": 64}, 1000),
]


def measure(products, slots, options, customers):
    """Microseconds a recommendation (median and 99th percentile), milliseconds a customer's learning, peak GB."""
    with threadpool_limits(1):
        serve(Recommender(5, 3, seed=0, **options), 5)
        shop = Recommender(products, slots, seed=0, **options)
        asked, learning = serve(shop, customers)
    return {
        "products": products,
        "slots": slots,
        **options,
        "customers": customers,
        "recommendation_us": 1e6 * float(np.median(asked)),
        "recommendation_99_us": 1e6 * float(np.quantile(asked, 0.99)),
        "learning_ms": 1e3 * learning / customers,
        "worked_out_gb": shop.bytes / 1e9,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }


def serve(shop, customers):
    """Processor seconds of every recommendation, and of all feedback together."""
    rng, asked, learning = np.random.default_rng(0), [], 0.0
    for i in range(customers):
        for _ in range(shop.slots):
            begin = time.process_time()
            a = shop.recommend(i)
            middle = time.process_time()
            shop.feedback(i, a, bool(rng.random() < 0.5))
            learning += time.process_time() - middle
            asked.append(middle - begin)
    return asked, learning


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--quick", action="store_true", help="a tenth of the customers")
    options = parser.parse_args()
    print(f"{'products':>8}{'slots':>6}  {'form':<22}{'recommend':>11}{'99%':>9}{'learning':>11}{'peak':>9}")
    found = []
    for products, slots, form, customers in SIZES:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            job = products, slots, form, customers // 10 if options.quick else customers
            row = pool.apply(measure, job)
        found.append(row)
        name = ", ".join(key if value is True else f"{key} {value}" for key, value in form.items()) or "exact"
        told = f"{row['recommendation_us']:>8.0f} us{row['recommendation_99_us']:>6.0f} us"
        told += f"{row['learning_ms']:>8.1f} ms{row['peak_gb']:>6.2f} GB"
        print(f"{products:>8}{slots:>6}  {name:<22}{told}", flush=True)
    result = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "shop.json").write_text(json.dumps({**result, "sizes": found}, indent=1))


if __name__ == "__main__":
    main()
