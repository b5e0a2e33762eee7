"""Whatever is sent, the answer is an error in plain JSON, and never a traceback."""

import json
import random
import string

import pytest
from serving import PRODUCTS, new_shop, serving

PATHS = ["/recommend", "/feedback", "/close", "/products"]
FIELDS = [
    "visit",
    "context",
    "among",
    "count",
    "slot",
    "product",
    "reward",
    "products",
    "features",
    "x",
    "__class__",
]
SCALARS = [None, True, False, 0, 1, -1, 1.5, 2**63, -(2**70), 10**400, 1e308, -0.0, 1e-320, "", "a", "tea", "age"]
SCALARS += ["\0", "\x1b[0m", "'; DROP TABLE events; --", "%s%n", "../..", "\u202e", "\U0001f375", "ﷺ" * 300]
SCALARS += ["nan", "Infinity", "{{7*7}}", "<script>"]
RAW = [
    b"",
    b"null",
    b"NaN",
    b"{",
    b"[" * 5000,
    b'{"visit":' * 2000,
    b"\xff\xfe{}",
    b"\x00",
    b'{"visit":"\\ud800"}',
]
RAW += [
    b'{"visit":"a","visit":"b"}',
    b'{"visit":1e999}',
    b'{"visit":"a","count":1e1}',
    b'\xef\xbb\xbf{"visit":"a"}',
]
RAW += [
    b'{"visit":"a","among":' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"visit":' + b"9" * 5000 + b"}",
    b"'a'",
    b"0x1",
]


def value(rng, depth=0):
    """Anything that JSON can say."""
    kind = rng.random()
    if kind < 0.6 or depth > 3:
        return rng.choice(SCALARS)
    if kind < 0.7:
        return "".join(rng.choice(string.printable) for _ in range(rng.randrange(12)))
    if kind < 0.85:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(FIELDS): value(rng, depth + 1) for _ in range(rng.randrange(4))}


def right(rng, path):
    """A request without a mistake, though it may contradict what happened before."""
    visit, product = rng.choice(["v", "w", "nobody", 7]), rng.choice([*PRODUCTS, "wine"])
    among = rng.sample([*PRODUCTS, "wine"], 2)
    asked = {"visit": visit, "count": rng.randrange(1, 4), "slot": rng.randrange(4), "among": among}
    return {
        "/recommend": {name: asked[name] for name in ["visit", *rng.sample(list(asked)[1:], rng.randrange(3))]},
        "/feedback": {"visit": visit, "product": product, "reward": rng.choice([0, 1, 2.5, True])},
        "/close": {"visit": rng.choice(["nobody", "somebody"])},
        "/products": {"products": [{"product": product, "features": {"price": rng.randrange(5)}}]},
    }[path]


def body(rng, path):
    """A body: a request, changed, cut or spoiled; sometimes only bytes."""
    kind = rng.random()
    if kind < 0.1:
        return rng.choice(RAW)
    if kind < 0.15:
        return rng.randbytes(rng.randrange(60))
    found = right(rng, path)
    for _ in range(rng.randrange(3)):
        found[rng.choice([*found, *FIELDS])] = value(rng)
    data = json.dumps(found).encode()
    if rng.random() < 0.2:
        at = rng.randrange(len(data))
        data = data[:at] + rng.randbytes(rng.randrange(3)) + data[at + rng.randrange(4) :]
    return data


@pytest.mark.slow
def test_ten_thousand_bodies_get_an_error_or_an_answer(tmp_path):
    rng, statuses = random.Random(0), {}
    with new_shop(tmp_path) as shop, serving(shop) as ask:
        ask("POST", "/recommend", {"visit": "v", "count": 2})
        before = len(shop.products)
        for _ in range(400):  # 25 at once: they share transactions
            paths = rng.choices(PATHS, k=25)
            sent = [("PUT" if path == "/products" else "POST", path, body(rng, path)) for path in paths]
            for (_, path, data), answer in zip(sent, ask.together(sent), strict=True):
                found = json.loads(answer.body)
                statuses[answer.status] = statuses.get(answer.status, 0) + 1
                if answer.status == 200:
                    continue
                assert answer.status in (400, 404, 409, 413, 422), (path, data, answer)
                assert list(found) == ["error"], (path, data, answer)
                assert isinstance(found["error"], str)
                assert "Traceback" not in found["error"]
                assert len(found["error"]) < 5000
        assert before <= len(shop.products)
        assert ask("POST", "/recommend", {"visit": "fine"}).status == 200
        kinds = {event.kind for event in shop.events.since(0, 10**6)}
    assert sum(statuses.values()) == 10_000
    assert kinds <= {"added", "recommended", "answered", "closed"}
    assert min(statuses.get(status, 0) for status in (200, 400, 404, 409, 422)) > 50, statuses


@pytest.mark.parametrize(
    "path", ["/", "//", "/recommend/", "/%00", "/products/%2e%2e", "/products/" + "a" * 5000, "/\xff"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "NONSENSE"])
def test_strange_paths_and_methods_get_an_error(tmp_path, path, method):
    with new_shop(tmp_path) as shop, serving(shop) as ask:
        answer = ask(method, path.encode().decode("latin-1"), b"{}")
        assert answer.status in (200, 307, 404, 405, 422)
        assert b"Traceback" not in answer.body
