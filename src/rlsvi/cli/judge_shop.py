"""`rlsvi judge-shop`: what a shop's recommender would earn, by the events of its database."""

import json
import math
from typing import TYPE_CHECKING, Annotated

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.cli.serve import ShopFile, shop_settings

if TYPE_CHECKING:
    from rlsvi.study.statistics import Interval


def judge_shop(
    file: ShopFile,
    level: Annotated[float, typer.Option(help="The probability of the intervals.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Estimate the reward per visit of a shop's recommender from past events, before it serves.

    The recommender learns from one half of the visits and is judged by the other one, and the reverse. It is
    judged as it serves: each visit draws one of the samples of the posterior. The policy of the log is what the
    events were made with.

    The interval of fitted Q evaluation is not calibrated: it takes a linear model as true, and with the customers
    of the paper it is too low. Trust the estimates by propensities instead, if they have 100 effective visits.

    Example: rlsvi import-events shop.toml clicks.csv, and then: rlsvi judge-shop shop.toml
    """
    with report_errors(lambda: "there is no result"):
        settings = shop_settings(file)
        from rlsvi.shop.judging import judge

        value = judge(settings, level=level)
        known = {"logged": value.logged, **value.estimates}
        print(json.dumps(_plain(known), allow_nan=False) if as_json else value)


def _plain(known: dict[str, "Interval"]) -> dict[str, dict[str, float | None]]:
    """Return intervals as JSON can hold them: an end that is not known, or not finite, is None."""
    return {
        name.replace(" ", "_"): {end: v if math.isfinite(v) else None for end, v in interval._asdict().items()}
        for name, interval in known.items()
    }
