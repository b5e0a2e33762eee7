"""The customers of the paper (section 6.3), who visit a running shop over HTTP."""

import hashlib
import http.client
import json
import math
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rlsvi.mdp.recommendation import Taste, like_probability

RETRIES = 20  # of a request that fails, half a second apart


class ShopClient:
    """A connection to a shop that is opened again when it breaks. A request that fails is sent again."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be that of a shop, such as http://127.0.0.1:8000, got {url!r:.80}")
        kind = http.client.HTTPConnection if parts.scheme == "http" else http.client.HTTPSConnection
        self._connection = kind(parts.hostname, parts.port, timeout=30)
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return what the shop answers; an error that it tells raises a RuntimeError."""
        data = None if body is None else json.dumps(body)
        for tries in range(RETRIES):
            try:
                self._connection.request(method, path, data, self._headers)
                response = self._connection.getresponse()
                found = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._connection.close()
                if tries == RETRIES - 1:
                    raise RuntimeError(f"the shop does not answer: {error}") from None
            else:
                if response.status < 400:
                    return found
                if response.status != 503 or tries == RETRIES - 1:
                    raise RuntimeError(f"{method} {path}: {response.status} {found.get('error')}")
            time.sleep(0.5)
        raise AssertionError("not reached")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@dataclass
class Customers:
    """Customers who visit a shop one after another, through several clients at once.

    Parameters
    ----------
    url, token
        Where the shop is, and what it must be shown.
    slots
        How many products each customer sees.
    visits, seconds
        The most visits, and the time after which no other begins.
    clients
        How many customers are there at once.
    seed
        Of the taste, which is drawn by the names of products: those that come and go change no other.
    """

    url: str
    token: str | None
    slots: int
    visits: int
    seconds: float
    clients: int
    seed: int = 0
    rewards: list[float] = field(default_factory=list)  # of the visits that have ended, in that order

    def run(self) -> list[float]:
        """Send the customers; return the likes of every visit in the order in which they ended."""
        with closing(ShopClient(self.url, self.token)) as client:
            listed = client.ask("GET", "/products")["products"]
        products = [each["product"] for each in listed if each["offered"]]
        if not products:
            raise ValueError("the shop offers no products: add some with PUT /products, or set serve.products")
        self._taste, self._place = named_taste(products, self.seed), {it: i for i, it in enumerate(products)}
        self._run, self._end = secrets.token_hex(3), time.monotonic() + self.seconds
        numbers = iter(range(self.visits))
        with ThreadPoolExecutor(self.clients) as pool:
            try:
                for each in as_completed([pool.submit(self._send, numbers) for _ in range(self.clients)]):
                    each.result()
            except BaseException:
                self._end = -math.inf  # for all clients
                raise
        return self.rewards

    def _send(self, numbers: Iterator[int]) -> None:
        with closing(ShopClient(self.url, self.token)) as client:
            while time.monotonic() < self._end and (number := next(numbers, None)) is not None:
                self.rewards.append(self._visit(client, number))

    def _visit(self, client: ShopClient, number: int) -> float:
        whole = all(isinstance(product, int) for product in self._place)  # then visits are named by integers too
        visit = int(self._run, 16) * 2**31 + number if whole else f"{self._run}-{number}"
        x, rng = np.zeros(len(self._place), np.int8), np.random.default_rng([self.seed, number])
        for slot in range(min(self.slots, len(self._place))):
            product = client.ask("POST", "/recommend", {"visit": visit, "slot": slot})["products"][0]
            a = self._place[product]
            liked = bool(rng.random() < like_probability(self._taste, x, a))
            client.ask("POST", "/feedback", {"visit": visit, "product": product, "reward": float(liked)})
            x[a] = 1 if liked else -1
        client.ask("POST", "/close", {"visit": visit})
        return float((x > 0).sum())


def named_taste(products: Sequence[str | int], seed: int, scale: float = 2.0) -> Taste:
    """Return the taste of customers for products, beta = 0 and gamma_an ~ N(0, scale^2), by their names.

    Each gamma_an depends on the seed and the names of a and n alone, so that a product that comes or goes changes
    nothing between the others. It has the distribution of `rlsvi.mdp.draw_taste`.
    """
    digests = [hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest() for name in products]
    keys = np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)
    gamma = np.empty((len(keys), len(keys)))
    for a, key in enumerate(_mix(keys)):
        bits = _mix(key ^ keys) >> np.uint64(11)  # 53 of them
        gamma[a] = scale * ndtri((bits.astype(np.float64) + 0.5) / 2**53)
    return Taste(np.zeros(len(keys)), gamma)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the mixing function of the generator splitmix64: a permutation of the numbers of 64 bits."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def references(names: Sequence[str | int], slots: int, seed: int, customers: int = 2000) -> dict[str, float]:
    """Return the mean likes of a visit, by simulation, under policies that know more or less than a shop.

    "uniform" shows products at random. "fixed order" shows everybody the same products, each the best on average
    after those before it. "optimal myopic" knows the customers' taste, and shows what will be liked most likely.
    """
    taste, rng = named_taste(names, seed), np.random.default_rng([seed, 1])
    found, products = {}, len(names)
    for name in ("uniform", "fixed order", "optimal myopic"):
        x = np.zeros((customers, products))
        for _ in range(min(slots, products)):
            p = 1.0 / (1.0 + np.exp(-np.clip(taste.beta + x @ taste.gamma.T, -500, 500)))
            if name == "uniform":
                value = rng.random(p.shape)
            else:  # in a fixed order all have seen the same
                value = np.broadcast_to(p.mean(axis=0), p.shape) if name == "fixed order" else p
            chosen = np.where(x == 0, value, -1.0).argmax(axis=1)
            rows = np.arange(customers)
            x[rows, chosen] = np.where(rng.random(customers) < p[rows, chosen], 1.0, -1.0)
        found[name] = float((x > 0).sum(axis=1).mean())
    return found


def summary(rewards: Sequence[float]) -> dict[str, float]:
    """Return the number of visits, and the mean reward of all, of the first tenth and of the last tenth."""
    tenth = max(1, len(rewards) // 10)
    means = {"all": rewards, "first tenth": rewards[:tenth], "last tenth": rewards[-tenth:]}
    return {"visits": len(rewards), **{name: float(np.mean(some)) for name, some in means.items() if some}}
