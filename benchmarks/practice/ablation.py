"""The default agent with one of its rules switched off at a time, beside the default as it is.

    python -m benchmarks.practice.ablation --rules "no fall back" "kinds alternate" --tasks Catch --seeds 3
    python -m benchmarks.practice.ablation --table

Every rule is a change of the library in the processes that measure it. Results are files in DIR/RULE, as those of
the benchmark itself, and the same command goes on where it was. There is one evaluation, by 30 fresh episodes, at
the first point that something is asked of. The table has, for each rule and task, the median and the worst seed
there, what was earned while learning, and seconds of the processor, each beside those of the default with the same
seeds. A star marks a rule without which the mean differs by more than two
standard errors of the paired differences.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.practice import results
from benchmarks.practice.__main__ import run, seeds_in
from benchmarks.practice.chosen import CHOSEN
from benchmarks.practice.evaluation import score
from benchmarks.practice.results import TASKS, measure, path_of, read

AS_IT_IS = "as it is"
FRESH = 30


def only(kind):
    """Let an agent of one kind take the place of the choice between a table and features."""
    from rlsvi.agents import default

    choose, made = default._choice, {"table": default.DiscountedPSRL, "features": default.BoundedRLSVI}[kind]

    def chosen(env, **arguments):
        agent = choose(env, **arguments)
        if not isinstance(agent, default.TableOrFeatures):
            return agent
        if kind == "features" and default.is_table(default.layout_of(env.observation_space)):
            return agent  # there are no features
        return made(**arguments)

    default._choice = chosen


def argument(name, value):
    """Let BoundedRLSVI have another argument."""
    from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI

    check = BoundedRLSVI._check

    def checked(self):
        setattr(self, name, value)
        check(self)

    BoundedRLSVI._check = checked


def replaced(place, name, value):
    """Replace a name of a module or a class, PLACE being module or module:class."""
    from importlib import import_module

    module, _, kind = place.partition(":")
    found = import_module(f"rlsvi.{module}")
    setattr(getattr(found, kind) if kind else found, name, value)


def fixed_table(name):
    """Let the evidence on how random a problem is leave `alpha` or `rho` of a table at 1."""
    from rlsvi.agents.tabular.discounted_psrl import SparseLearner

    count = SparseLearner.count

    def counted(self, step):
        count(self, step)
        getattr(self.model, name)[:] = 1.0

    SparseLearner.count = counted


def no_tuning():
    """Let the length of waves not follow the data."""
    from rlsvi.bases import Waves

    tune = Waves.tune
    Waves.tune = lambda self, n, steps, error: tune(self, n, steps, None)


def usual_is_nothing():
    """Let bounds of values not consider one usual reward possible."""
    from rlsvi.agents.practice import regression

    with_margin = regression.with_margin
    regression.with_margin = lambda returns, rewards, usual, gamma: with_margin(returns, rewards, 0.0, gamma)


CHOICE, LEARNER = "agents.table_or_features", "agents.practice.bounded_rlsvi"
REGRESSION, PARTS = "agents.practice.regression", "agents.practice.parts"
BOUNDED = f"{LEARNER}:BoundedLearner"
RULES = {
    AS_IT_IS: lambda: None,
    # the choice between a table and features
    "only a table": lambda: only("table"),
    "only features": lambda: only("features"),
    "no fall back": lambda: replaced(f"{CHOICE}:Record", "fallen_returns", lambda self: None),
    "no comparison of errors": lambda: replaced(
        f"{CHOICE}:ChoosingLearner", "_compare", lambda self, record: (0, 1, 1, 1)
    ),
    "errors compared in certain problems too": lambda: replaced(f"{CHOICE}:Record", "is_random", property(bool)),
    # features
    "all numbers relevant": lambda: replaced(
        "agents.practice.features:Lookup", "_relevant", lambda self, *given: np.ones_like(self.relevant)
    ),
    "waves of one length": no_tuning,
    "actions not held": lambda: replaced(LEARNER, "repeat_of", lambda x, following: 1),
    "actions hardly alike": lambda: (replaced(REGRESSION, "ALIKE", 0.01), replaced(PARTS, "ALIKE", 0.01)),
    # plans
    "plans of the first kind": lambda: replaced(
        BOUNDED, "_follows_mistakes", lambda self, sampled: self.lookup.centred
    ),
    "plans of the second kind": lambda: replaced(BOUNDED, "_follows_mistakes", lambda self, sampled: True),
    "kinds alternate": lambda: replaced(
        BOUNDED, "_follows_mistakes", lambda self, sampled: self.lookup.centred or bool(self.counters[0] % 2)
    ),
    "all noise with many actions": lambda: replaced(LEARNER, "FEW", np.inf),
    "sweeps begin at the prior": lambda: replaced(
        BOUNDED, "_values", lambda self: self._prior(len(self.history.x))
    ),
    "no sweeps from the upper bound": lambda: replaced(BOUNDED, "_is_from_above", lambda self, mistakes: False),
    "half as many sweeps": lambda: (replaced(BOUNDED, "FEW_SWEEPS", 10), replaced(BOUNDED, "SWEEPS", 100)),
    "sweeps end at a thousandth": lambda: replaced(BOUNDED, "TOLERANCE", 1e-3),
    "no bounds": lambda: argument("bounds", (-1e100, 1e100)),
    "bounds without a margin": lambda: replaced(REGRESSION, "MARGIN", 0.0),
    "bounds with half the span as margin": lambda: replaced(REGRESSION, "MARGIN", 0.5),
    "no usual reward in bounds": usual_is_nothing,
    "no lambda-returns": lambda: replaced(BOUNDED, "trace", 0.0),
    "one lambda for all features": lambda: replaced(BOUNDED, "trace", 0.5),
    "no plans within an episode": lambda: replaced(
        "agents.practice.bounded_rlsvi:BoundedRLSVI", "update_every", None
    ),
    "plans by growth from the beginning": lambda: replaced(LEARNER, "STEPS_PLANNED_ALWAYS", 0),
    # the table
    "alpha of 1": lambda: fixed_table("alpha"),
    "all new outcomes are finds": lambda: fixed_table("rho"),
    "no new draws within an episode": lambda: replaced(
        "agents.tabular.discounted_psrl:SparseLearner",
        "visited",
        property(lambda self: [], lambda self, value: None),
    ),
}


def folder_of(out, rule):
    """Where the results of a rule are."""
    return out / rule.replace(" ", "-")


def measured(out, rule, task, seed):
    """Switch a rule off in this process, which is made for it, and measure."""
    RULES[rule]()
    its = TASKS[task]
    TASKS[task] = replace(its, points=(min((n for n in its.asked if n), default=its.points[-1]),))
    results.EPISODES = FRESH
    return measure(folder_of(out, rule), task, "ours", seed)


def compared(out, tasks):
    """The lines of the table."""
    yield "| rule switched off | task | seeds | median | worst | while learning | processor s |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    default = read(folder_of(out, AS_IT_IS))
    for rule in RULES:
        for (task, _), runs in read(folder_of(out, rule)).items() if rule != AS_IT_IS else ():
            both = sorted(runs.keys() & default.get((task, "ours"), {}).keys())
            if task in tasks and both:
                pairs = np.array([[told(each[seed]) for each in (default[task, "ours"], runs)] for seed in both])
                before, after = np.median(pairs, axis=0)
                worst = pairs[:, :, 0].min(axis=0)
                away = pairs[:, 1, 0] - pairs[:, 0, 0]
                error = away.std(ddof=1) / np.sqrt(len(away)) if len(away) > 1 else np.inf
                star = "*" if abs(away.mean()) > 2 * error else ""
                median, earned, seconds = (f"{b:.4g} -> {a:.4g}" for b, a in zip(before, after, strict=True))
                least = f"{worst[0]:.4g} -> {worst[1]:.4g}"
                yield f"| {rule} | {task} | {len(both)} | {median}{star} | {least} | {earned} | {seconds} |"


def told(run):
    """The score at the last point, what was earned while learning, and seconds."""
    row = run.rows[-1]
    return score(row), float(np.mean(run.training)), row["cpu_s"]


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.practice.ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rules", nargs="+", choices=RULES, default=list(RULES), metavar="RULE", help="; ".join(RULES)
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(CHOSEN), metavar="TASK")
    parser.add_argument("--seeds", type=seeds_in, default=range(10), help="how many, or from which to which, 4-9")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each on one core")
    parser.add_argument("--out", type=Path, default=Path("out/ablation"), metavar="DIR")
    parser.add_argument(
        "--table", action="store_true", help="print the table of what is there, and measure nothing"
    )
    options = parser.parse_args(arguments)
    if options.table:
        print("\n".join(compared(options.out, options.tasks)))
        return 0
    left = [
        (rule, task, seed)
        for seed in options.seeds
        for task in options.tasks
        for rule in dict.fromkeys([AS_IT_IS, *options.rules])
        if not path_of(folder_of(options.out, rule), task, "ours", seed).exists()
    ]
    for rule, _, _ in left:
        folder_of(options.out, rule).mkdir(parents=True, exist_ok=True)
    failed = run(partial(measured, options.out), left, options.jobs, max_tasks_per_child=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
