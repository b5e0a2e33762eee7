"""Tables of what customers earned: the last fifth, the whole run and its total, and differences to ours."""

from benchmarks.shop_quality.policies import NAMES
from benchmarks.shop_quality.results import LAST_PARTS, curves
from benchmarks.shop_quality.worlds import WORLDS
from rlsvi.study.statistics import mean

SPANS = {"last fifth": slice(-LAST_PARTS, None), "whole run": slice(None)}
TOTAL = "total"  # of the whole run: of all customers


def rewards(results, world, policy, span, seeds=None):
    """The mean reward of a customer, or the total of all, seed by seed."""
    if span == TOTAL:
        customers = [
            result["customers"]
            for seed, result in sorted(results[world, policy].items())
            if seeds is None or seed in seeds
        ]
        return rewards(results, world, policy, "whole run", seeds) * customers
    return curves(results, world, policy, seeds)[:, SPANS[span]].mean(axis=1)


def differences(results, world, policy, span):
    """What ours earns more than a policy, on the seeds that both have."""
    both = results[world, "ours"].keys() & results[world, policy].keys()
    if not both:
        return None
    ours, theirs = (rewards(results, world, name, span, both) for name in ("ours", policy))
    return mean(ours - theirs)


def table(results, span):
    """What a customer earned with each policy, with Student's 95% intervals over instances."""
    rows = []
    for world in WORLDS.values():
        found = [results.get((world.name, name), {}) for name in NAMES]
        if any(found):
            cells = [
                _interval(mean(rewards(results, world.name, name, span))) if by_seed else ""
                for name, by_seed in zip(NAMES, found, strict=True)
            ]
            rows.append([world.kind, *_about(world, found), *cells])
    return _markdown(["world", "products, slots, customers", "seeds", *NAMES.values()], rows)


def comparison(results, span):
    """What ours earned more than each other policy on the same seeds and customers; bold where 0 is outside."""
    others = [name for name in NAMES if name not in ("ours", "uniform")]
    digits = 0 if span == TOTAL else 2
    rows = []
    for world in WORLDS.values():
        if (world.name, "ours") in results:
            means = [
                f"{rewards(results, world.name, name, span).mean():.{digits}f}"
                if (world.name, name) in results
                else ""
                for name in ("uniform", "ours")
            ]
            found = [
                differences(results, world.name, name, span) if (world.name, name) in results else None
                for name in others
            ]
            rows.append(
                [world.kind, str(world.products), *means, *(_difference(value, digits) for value in found)]
            )
    head = ["world", "products", "uniform", "ours", *(f"less {NAMES[name]}" for name in others)]
    return _markdown(head, rows)


def _about(world, found):
    """Sizes, with the number of customers that were served, and the number of seeds."""
    customers = {result["customers"] for by_seed in found for result in by_seed.values()}
    served = " or ".join(str(number) for number in sorted(customers))
    counts = sorted({len(by_seed) for by_seed in found if by_seed})
    seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{world.products}, {world.slots}, {served}", seeds


def page(results):
    """All tables as Markdown."""
    parts = ["## Ours less others, total of the whole run", comparison(results, TOTAL)]
    for span in SPANS:
        parts += [f"## Ours less others, reward per customer, {span}", comparison(results, span)]
        parts += [f"## Reward per customer, {span}", table(results, span)]
    return "\n\n".join(parts) + "\n"


def _interval(value):
    if value.low == float("-inf"):
        return f"{value.value:.2f}"
    return f"{value.value:.2f} ({value.low:.2f} to {value.high:.2f})"


def _difference(value, digits):
    if value is None:
        return ""
    if value.low == float("-inf"):
        return f"{value.value:+.{digits}f}"
    text = f"{value.value:+.{digits}f} ({value.low:+.{digits}f} to {value.high:+.{digits}f})"
    return f"**{text}**" if value.low > 0 or value.high < 0 else text


def _markdown(head, rows):
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)
