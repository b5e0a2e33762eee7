"""A learner as a file: all that follows from the events up to a number, so that only later ones are taken again.

A file that does not fit the settings, or is damaged, is refused; the learner then takes all events again.
"""

import os
from typing import Any

import numpy as np

from rlsvi.core import archive
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite
from rlsvi.core.files import PRIVATE
from rlsvi_shop.model.learner import RECENT, Chains, RewardTotals, ShopLearner
from rlsvi_shop.model.regression import FACTORS, ProductArrays, Ridges, check_memory
from rlsvi_shop.model.targets import NEVER, OpenVisit, VisitArrays
from rlsvi_shop.settings import ShopSettings, fingerprint

KIND = "shop learner"
COUNTS = ("last", "ignored", "refreshed_at", "refreshed_event")
CHAIN_COUNTS = ("count", "refreshes", "tuned_at", "taken")
SEEN = ("visits", "answers")


def save_learner(path: str | os.PathLike[str], learner: ShopLearner, shop: str = "") -> None:
    """Write the complete state of a learner of a shop, see `Events.shop`, or nothing."""
    chains = learner.chains
    header = {
        "kind": KIND,
        "shop": shop,
        "settings": fingerprint(learner.settings),
        "products": list(learner.products),
        "open": [[name, vars(visit)] for name, visit in learner.open.items()],
        "counts": {name: getattr(learner, name) for name in COUNTS},
        "last_at": learner.last_at,
        "chains": {name: getattr(chains, name) for name in CHAIN_COUNTS},
        "statistics": {
            **{name: getattr(chains.statistics, name) for name in SEEN},
            **chains.statistics.forgotten._asdict(),
        },
        "prior": [*chains.ridges, chains.sigma],
        "sampled": chains.weight.shape[2],
        "remembered": [chains.visits.count, chains.visits.rows],
    }
    products, visits = chains.products.part(chains.count), chains.visits.arrays()
    arrays = {name: array for name, array in products._asdict().items() if name not in FACTORS}
    arrays |= {f"visit_{name}": array for name, array in visits._asdict().items()}
    arrays |= {"visit_keys": chains.visits.keys}
    arrays |= {name: getattr(chains, name) for name in ("weight", "beta", "base", "forgotten")}
    archive.write(path, header, {**arrays, "recent": chains.statistics.recent}, PRIVATE)


def load_learner(path: str | os.PathLike[str], settings: ShopSettings, shop: str = "") -> ShopLearner:
    """Return a learner that continues where the saved one was. An ArchiveError says why a file is refused."""
    with archive.opened(path) as file:
        header = file.header
        if header.get("shop") != shop:
            raise ArchiveError("belongs to another database")
        if header.get("kind") != KIND or header.get("settings") != fingerprint(settings):
            raise ArchiveError("belongs to a shop with other settings: remove it, and all events are learned anew")
        learner = ShopLearner(settings)
        try:
            _restore(learner, header, file)
        except (KeyError, TypeError, AttributeError) as error:
            raise ArchiveError(f"is damaged: its header is not complete ({error!r:.80})") from error
    return learner


def _restore(learner: ShopLearner, header: dict[str, Any], file: Archive) -> None:
    chains = learner.chains
    for thing, names, part in (
        (learner, COUNTS, "counts"),
        (chains, CHAIN_COUNTS, "chains"),
        (chains.statistics, SEEN, "statistics"),
    ):
        for name in names:
            setattr(thing, name, _whole(header[part][name]))
    sums = [float(finite(name, header["statistics"][name])) for name in RewardTotals._fields]
    chains.statistics.forgotten = RewardTotals(*sums)
    learner.last_at = float(finite("last_at", header["last_at"]))
    *ridges, chains.sigma = (float(number) for number in finite("prior", header["prior"]))
    if min(ridges) <= 0 or chains.sigma < 0:
        raise ArchiveError("is damaged: its prior is not positive")
    chains.ridges = Ridges(*ridges)
    names = header["products"]
    if len(set(names)) != chains.count or not all(isinstance(name, str) for name in names):
        raise ArchiveError("is damaged: its products are not what it counts")
    learner.products = {name: a for a, name in enumerate(names)}
    _restore_arrays(chains, _whole(header["sampled"]), [_whole(n) for n in header["remembered"]], file)
    learner.open = {str(name): _visit(plain, chains) for name, plain in header["open"]}


def _restore_arrays(chains: Chains, sampled: int, remembered: list[int], file: Archive) -> None:
    sizes, N, (visits, rows) = chains.sizes, chains.count, remembered
    if sampled > N or chains.taken > visits or (chains.statistics.visits > 0) != (visits > 0):
        raise ArchiveError("is damaged: its counts contradict each other")
    check_memory(sizes, N, chains.learning.draws, visits)
    empty = chains.products
    parts = {
        name: file.take(name, (N, *array.shape[1:]), array.dtype)
        for name, array in empty._asdict().items()
        if name not in FACTORS
    }
    factors = {name: np.zeros((N, *getattr(empty, name).shape[1:])) for name in FACTORS[1:]}
    chains.products = ProductArrays(**parts, **factors, dirty=np.ones(N, np.bool_))
    chains.weight = file.take("weight", (chains.learning.draws + 1, sizes.width, sampled))
    for name in ("beta", "base", "forgotten"):
        setattr(chains, name, file.take(name, getattr(chains, name).shape))
    chains.statistics.recent = file.take("recent", (RECENT, sizes.slots), finite=False)
    chains.visits.load(
        VisitArrays(
            first=file.take_within("visit_first", (visits + 1,), np.int64, 0, rows),
            customer=file.take("visit_customer", (visits, sizes.customer)),
            product=file.take_within("visit_product", (rows,), np.int32, 0, N - 1),
            x=file.take_within("visit_x", (rows,), np.int32, -1, 1),
            reward=file.take("visit_reward", (rows,)),
            when=file.take_within("visit_when", (rows,), np.int32, 1, NEVER),
        ),
        file.take("visit_keys", (visits,), np.int64),
    )
    first = chains.visits.arrays().first
    lengths = np.diff(first)
    if first[0] != 0 or first[-1] != rows or (lengths < 0).any() or (lengths > sizes.slots).any():
        raise ArchiveError("is damaged: its visits do not lie one after another")


def _visit(plain: dict[str, Any], chains: Chains) -> OpenVisit:
    visit = OpenVisit(**plain)
    parts = visit.product, visit.x, visit.reward, visit.when
    if not (
        finite("customer", visit.customer).shape == (chains.sizes.customer,)
        and len({len(part) for part in parts}) == 1
        and all(type(a) is int and 0 <= a < chains.count for a in visit.product)
        and len(set(visit.product)) == len(visit.product) <= chains.sizes.slots
        and all(x in (-1, 0, 1) for x in visit.x)
        and all(1 <= _whole(when) <= NEVER for when in visit.when)
    ):
        raise ArchiveError("is damaged: a visit in it is not possible")
    finite("reward", visit.reward)
    return visit


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise ArchiveError(f"is damaged: {value!r:.40} is not a count")
    return value
