"""A shop's recommender on one core: seconds a recommendation and an answer, and memory, as products grow.

    python -m benchmarks.shop [--out DIR] [--products N [N ..]] [--quick]

Every size is run in a process of its own, whose peak of resident memory is told. Customers answer at random.
Before anything is timed the shop is as old as it gets: `remember` customers have been served, so that what is
timed goes on for ever. Most answers are only noted, the last of a customer is learned from, and now and then one
brings a new sample: the mean, the 99th percentile and the longest of both calls are told, in processor time.
Learning is what all answers of a customer take. At last the median of a call, in seconds by the clock: with no
journal, with one, and with one that waits for the disk that DIR is on. Prints tables and writes DIR/shop.json.
"""

import argparse
import json
import multiprocessing
import os
import platform
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from rlsvi.shop import Recommender

NEVER = 10**9  # customers between two samples
SIZES = [  # products, slots, options, customers timed
    (50, 10, {}, 1000),
    (100, 10, {}, 1000),
    (200, 10, {}, 500),
    (50, 10, {"pooled": True}, 1000),
    (100, 10, {"pooled": True}, 1000),
    (200, 10, {"pooled": True}, 1000),
    (500, 20, {"pooled": True}, 300),
    (500, 20, {"pooled": True, "sketch": 64}, 500),
]


def measure(products, slots, options, customers, remember):
    """What the calls of so many customers took in a shop that remembers as many as it can."""
    with threadpool_limits(1):
        serve(Recommender(5, 3, remember=2, seed=0, **options), 8)  # compiles all of it
        shop = Recommender(products, slots, remember=remember, seed=0, **options)
        usual, shop.every = shop.every, NEVER
        serve(shop, remember)
        shop.every = usual
        shop.learn()
        before = shop._streams[1].copy()
        asked, told = serve(shop, customers, first=remember)
        assert (before != shop._streams[1]).any(), "no sample was taken: time more customers"
    return {
        "products": products,
        "slots": slots,
        **options,
        "customers": customers,
        "remembered": remember,
        "recommend_us": spread(asked),
        "feedback_us": spread(told),
        "learning_ms": 1e3 * sum(told) / customers,
        "worked_out_gb": shop.bytes / 1e9,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }


def journals(folder, customers, products=200, slots=10):
    """Microseconds by the clock that half of all calls take at most: no journal, one, and one on the disk."""
    found = {}
    with threadpool_limits(1), tempfile.TemporaryDirectory(dir=folder) as temporary:
        for name, given in (("none", None), ("kept", {}), ("kept, sync", {"sync": True})):
            shop = Recommender(products, slots, pooled=True, every="later", seed=0)
            serve(shop, 5)
            if given is not None:
                shop.keep(Path(temporary) / name, **given)
            asked, told = serve(shop, customers, first=5, clock=time.perf_counter)
            found[name] = {"recommend": 1e6 * float(np.median(asked)), "feedback": 1e6 * float(np.median(told))}
            shop.keep(None)
    return found


def serve(shop, customers, first=0, clock=time.process_time):
    """Seconds, of the processor unless told otherwise, of every recommendation and of every answer."""
    rng, asked, told = np.random.default_rng(first), [], []
    for i in range(first, first + customers):
        for _ in range(shop.slots):
            begin = clock()
            a = shop.recommend(i)
            middle = clock()
            shop.feedback(i, a, bool(rng.random() < 0.5))
            told.append(clock() - middle)
            asked.append(middle - begin)
    return asked, told


def spread(seconds):
    """Microseconds."""
    found = {"mean": np.mean(seconds), "99%": np.quantile(seconds, 0.99), "max": np.max(seconds)}
    return {name: 1e6 * float(value) for name, value in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--quick", action="store_true", help="a tenth of the customers, in a shop a tenth as old")
    parser.add_argument("--products", type=int, nargs="+", help="these sizes alone")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    parts = " ".join(f"{name:>9}" for name in ("mean", "99%", "max"))
    print(f"{'':38}{'recommend (us)':^30}{'feedback (us)':^30}")
    print(f"{'products':>8}{'slots':>6}  {'form':<22}{parts} {parts}{'learning':>12}{'peak':>9}")
    found = []
    for products, slots, form, customers in SIZES:
        if options.products and products not in options.products:
            continue
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(measure, (products, slots, form, customers // share, 20_000 // share))
        found.append(row)
        name = ", ".join(key if value is True else f"{key} {value}" for key, value in form.items()) or "exact"
        times = [*row["recommend_us"].values(), *row["feedback_us"].values()]
        told = " ".join(f"{value:>9,.0f}" for value in times)
        told += f"{row['learning_ms']:>9.1f} ms{row['peak_gb']:>6.2f} GB"
        print(f"{products:>8}{slots:>6}  {name:<22}{told}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    kept = journals(options.out, 500 // share)
    print(f"\n{'journal, median':<36}{'recommend (us)':>16}{'feedback (us)':>16}")
    for name, took in kept.items():
        print(f"{name:<36}{took['recommend']:>16,.0f}{took['feedback']:>16,.0f}", flush=True)
    result = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}
    (options.out / "shop.json").write_text(json.dumps({**result, "sizes": found, "journal": kept}, indent=1))


if __name__ == "__main__":
    main()
