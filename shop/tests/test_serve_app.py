"""What a shop answers over HTTP."""

import asyncio
import json
import logging
import re

import pytest
from fastapi import WebSocket
from serving import PRODUCTS, new_shop, serving

from rlsvi_shop import StoreError
from rlsvi_shop.service import guard
from rlsvi_shop.service.app import create_app


@pytest.fixture
def ask(shop):
    with serving(shop) as ask:
        yield ask


def test_a_visit_from_its_first_product_to_its_end(ask, shop):
    first = ask("POST", "/recommend", {"visit": "ann", "context": {"age": 30}})
    assert first.status == 200
    assert first.headers["content-type"] == "application/json"
    assert first.json["visit"] == "ann"
    assert first.json["slot"] == 0
    (product,) = first.json["products"]
    assert product in PRODUCTS
    told = ask("POST", "/feedback", {"visit": "ann", "product": product, "reward": 1})
    assert (told.status, told.json) == (200, {"stored": True})
    more = ask("POST", "/recommend", {"visit": "ann", "count": 5})
    assert more.json["slot"] == 1
    assert len({product, *more.json["products"]}) == 3  # no more slots
    assert ask("POST", "/close", {"visit": "ann"}).status == 200
    kinds = [event.kind for event in shop.events.since(len(PRODUCTS), 100)]
    assert kinds == ["recommended", "answered", "recommended", "recommended", "closed"]


def test_requests_that_wait_together_are_in_one_transaction_and_do_not_disturb_one_another(ask, shop, monkeypatch):
    transactions = []
    writing = shop.events.writing
    monkeypatch.setattr(shop.events, "writing", lambda: transactions.append(1) or writing())
    ask("POST", "/recommend", {"visit": "first"})  # has learned
    transactions.clear()
    requests = [("POST", "/recommend", {"visit": f"v{n % 20}"}) for n in range(60)]
    requests += [("POST", "/feedback", {"visit": "nobody", "product": "tea", "reward": 1})] * 20
    answers = ask.together(requests)
    assert [answer.status for answer in answers] == [200] * 60 + [404] * 20
    for n in range(20):
        mine = [answer.json for answer in answers[n:60:20]]
        assert [each["slot"] for each in mine] == [0, 1, 2]
        assert len({each["products"][0] for each in mine}) == 3
    assert len(transactions) < 20


def test_the_routes_of_visits_answer_as_the_guard_does_without_them(ask):
    asked = [
        ("/recommend", {"visit": "ann", "slot": 0}),
        ("/recommend", {"visit": "bob", "slot": 2}),
        ("/feedback", {"visit": "ann", "product": "wine", "reward": 1}),
        ("/close", b"{"),
        ("/close", {"visit": "ann"}),
    ]
    direct = [ask("POST", *each) for each in asked]
    assert [answer.status for answer in direct] == [200, 409, 404, 400, 200]
    (middleware,) = [each for each in ask.app.user_middleware if each.cls is guard.Guard]
    middleware.kwargs["direct"].clear()
    assert [ask("POST", *each) for each in asked] == direct


# ---- tokens -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        ("Bearer sesame", 404),
        ("Bearer sesamE", 401),
        ("Bearer sesame ", 401),
        ("Bearer ", 401),
        ("sesame", 401),
        ("Basic sesame", 401),
        (None, 401),
        ("Bearer \xff", 401),
    ],
)
def test_a_token_must_be_shown(shop, shown, status):
    with serving(shop, token="sesame") as ask:
        headers = {} if shown is None else {"Authorization": shown}
        answer = ask("POST", "/close", {"visit": "nobody"}, headers)
        assert answer.status == status
        assert set(answer.json) == {"error"}
        if status == 401:
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/metrics", "/products", "/recommend", "/nowhere"])
def test_what_is_not_public_needs_a_token(shop, path):
    with serving(shop, token="sesame") as ask:
        assert ask("GET", path).status == 401
        assert ask("GET", "/openapi.json").status == 200


@pytest.mark.parametrize(
    ("host", "origin", "passes"),
    [
        ("127.0.0.1:8000", None, True),
        ("localhost", None, True),
        ("LocalHost:80", "http://localhost:80", True),
        ("[::1]:8000", "http://[::1]:8000", True),
        ("[::1]", None, True),
        ("127.8.9.1:1", None, True),
        (None, None, True),
        ("shop.example:8000", None, False),  # whose name points to 127.0.0.1
        ("127.0.0.1.shop.example", None, False),
        ("localhost.shop.example:8000", None, False),
        ("10.0.0.1:8000", None, False),
        ("::1", None, False),
        ("[127.0.0.1]", None, False),
        ("localhost:80@shop.example", None, False),
        ("", None, False),
        ("127.0.0.1:8000", "http://shop.example", False),
        ("127.0.0.1:8000", "http://127.0.0.1:9000", False),
        ("127.0.0.1:8000", "null", False),
        (None, "http://shop.example", False),
    ],
)
def test_without_a_token_web_pages_of_others_are_refused(shop, host, origin, passes):
    given = {"Host": host, "Origin": origin}
    headers = {name: value for name, value in given.items() if value is not None}
    before = shop.events.last()
    with serving(shop) as ask:
        for method, path, body in (("PUT", "/products", {"products": [{"product": "evil"}]}), ("GET", "/", b"")):
            answer = ask(method, path, body, headers)
            assert answer.status == (200 if passes else 403)
            assert passes or answer.json["error"].startswith("without a token, ")
        direct = ask("POST", "/close", {"visit": "nobody"}, headers)
        assert direct.status == (404 if passes else 403)
    assert (shop.events.last() > before) == passes
    with serving(shop, token="sesame") as ask:
        shown = {"Authorization": "Bearer sesame", **headers}
        assert ask("POST", "/close", {"visit": "nobody"}, shown).status == 404


@pytest.mark.parametrize("token", ["", " ", " \t ", "a b", "sesame\n", "\u00a0", "sesam\u00e9", b"sesame", 7])
def test_a_token_that_no_header_can_show_is_refused(shop, token):
    with pytest.raises(ValueError, match="token must be a text of printable ASCII characters without spaces"):
        create_app(shop, token=token)


@pytest.mark.parametrize("host", ["localhost:8000", "evil.example"])
def test_no_answer_is_a_redirect_to_what_the_header_host_says(shop, host):
    with serving(shop, token="sesame") as ask:
        for path in ("/docs/", "/health/", "/openapi.json/", "/products/"):
            answer = ask("GET", path, headers={"Host": host, "Authorization": "Bearer sesame"})
            assert answer.status in (404, 405), answer
            assert "location" not in answer.headers


@pytest.mark.parametrize(
    ("token", "headers", "passes"),
    [
        (None, {"Host": "localhost:8000", "Origin": "http://localhost:8000"}, True),
        (None, {"Host": "localhost:8000", "Origin": "http://evil.example"}, False),
        (None, {"Host": "evil.example"}, False),
        ("sesame", {"Host": "evil.example", "Authorization": "Bearer sesame"}, True),
        ("sesame", {"Authorization": "Bearer sesamE"}, False),
        ("sesame", {}, False),
    ],
)
@pytest.mark.parametrize("path", ["/own", "/health"])  # the second one needs no token for a request
def test_websockets_of_another_router_are_guarded(shop, token, headers, passes, path):
    app, sent, heard = create_app(shop, token=token), [], iter([{"type": "websocket.connect"}])

    @app.websocket(path)
    async def own(websocket: WebSocket):
        await websocket.accept()
        await websocket.send_text("secret")
        await websocket.close()

    async def receive():
        return next(heard)

    async def send(message):
        sent.append(message)

    given = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "websocket", "path": path, "headers": given, "query_string": b"", "subprotocols": []}
    asyncio.run(app(scope, receive, send))
    kinds = [message["type"] for message in sent]
    assert kinds == (["websocket.accept", "websocket.send", "websocket.close"] if passes else ["websocket.close"])


# ---- limits and errors --------------------------------------------------------------------------------------


def test_a_large_body_is_refused_by_its_announced_size_and_by_its_bytes(ask):
    large = b'{"visit": "' + b"a" * 70_000 + b'"}'
    for sent in (
        {"body": large},
        {"chunks": [large[i : i + 1000] for i in range(0, len(large), 1000)]},
        {"headers": {"Content-Length": "10"}, "chunks": [large]},
        {"headers": {"Content-Length": "-1"}, "chunks": [b"{}"]},
    ):
        answer = ask("POST", "/recommend", **sent)
        assert answer.status == 413
        assert "at most 65536 bytes: send less, or raise largest_body" in answer.json["error"]
    assert ask("POST", "/recommend", chunks=[b'{"visit": ', b'"small"}']).status == 200


@pytest.mark.parametrize("pause", [60, 0.03], ids=["never", "byte by byte"])
def test_a_body_that_does_not_come_or_comes_too_slowly_is_refused(ask, monkeypatch, pause):
    monkeypatch.setattr(guard, "PATIENCE", 0.05)
    body, sent = iter(b'{"visit": "a", "product": "tea"}'), []

    async def slow():
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": bytes([next(body)]), "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/close", "headers": [], "query_string": b""}
    ask._runner.run(ask.app(scope, slow, send))
    assert sent[0]["status"] == 408
    assert b"not complete within 0.05 seconds" in sent[1]["body"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/recommend", b"{", 400, "the request is not valid JSON"),
        ("/recommend", b"[]", 422, "the request must be an object"),
        ("/recommend", {}, 422, "visit is missing"),
        ("/recommend", {"visit": "a", "colour": 1}, 422, "colour is not known"),
        ("/recommend", {"visit": 1.5}, 422, "visit must be a text or a whole number"),
        ("/recommend", {"visit": ""}, 422, "visit must have at least 1 character"),
        ("/recommend", {"visit": "a\0"}, 422, "visit must not have control characters, line breaks or special"),
        ("/recommend", {"visit": "a\u00a0b"}, 422, "visit must not have control characters"),
        ("/recommend", {"visit": "a" * 201}, 422, "visit must have at most 200 characters"),
        ("/recommend", {"visit": 7}, 422, "visit must be a string, since ids = 'string', got 7"),
        ("/recommend", {"visit": 2**63}, 422, "visit must be a text or a whole number of 64 bits"),
        ("/feedback", {"visit": 7, "product": "tea", "reward": 1}, 422, "visit must be a string, since ids"),
        ("/close", {"visit": 7}, 422, "visit must be a string, since ids"),
        ("/recommend", {"visit": "a", "count": 0}, 422, "count must be greater than or equal to 1"),
        ("/recommend", {"visit": "a", "count": True}, 422, "count must be a"),
        ("/recommend", {"visit": "a", "context": {"height": 3}}, 422, "there is no feature 'height'"),
        ("/recommend", {"visit": "a", "context": {"age": "old"}}, 422, "age must be a number"),
        ("/recommend", {"visit": "a", "context": {"age": [1]}}, 422, "context.age must be a text, a number"),
        ("/recommend", {"visit": "a", "among": []}, 422, "among must have"),
        ("/recommend", {"visit": "a", "among": [1]}, 422, "among must be a string"),
        ("/recommend", {"visit": "a", "among": ["wine"]}, 404, "product 'wine' of among is unknown"),
        ("/recommend", {"visit": "a", "slot": 2}, 409, "slot 2 of visit 'a' cannot be filled before slot 0"),
        ("/feedback", {"visit": "a", "product": "tea", "reward": 1}, 404, "was not recommended in visit 'a'"),
        ("/feedback", b'{"visit": "a", "product": "tea", "reward": 1e400}', 422, "reward must be"),
        ("/feedback", b'{"visit": "a", "product": "tea", "reward": NaN}', 422, "reward must be"),
        ("/feedback", {"visit": "a", "product": "tea", "reward": "1"}, 422, "reward must be a number"),
        ("/feedback", {"visit": "a", "product": "tea", "reward": 1e13}, 422, "reward must be less"),
        ("/close", {"visit": "a"}, 404, "visit 'a' is unknown"),
        ("/nowhere", {}, 404, "there is no path '/nowhere'"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong_and_changes_nothing(ask, shop, path, body, status, words):
    ask("POST", "/recommend", {"visit": "other"})
    before = shop.events.last()
    answer = ask("POST", path, body)
    assert answer.status == status
    assert set(answer.json) == {"error"}
    assert words in answer.json["error"]
    assert shop.events.last() == before


def test_a_wrong_method_is_told(ask):
    answer = ask("GET", "/recommend")
    assert answer.status == 405
    assert answer.json == {"error": "GET is not allowed here"}


def test_an_error_of_ours_is_logged_and_not_told(ask, shop, monkeypatch, caplog):
    monkeypatch.setattr(shop, "handle", lambda requests: [ZeroDivisionError("secret")] * len(requests))
    with caplog.at_level(logging.ERROR):
        answer = ask("POST", "/close", {"visit": "a"})
    assert answer.status == 500
    assert answer.json == {"error": "the server failed; its log says why"}
    assert "secret" in caplog.text


def test_a_database_that_is_away_is_503_and_its_name_is_not_told(ask, shop, monkeypatch, caplog):
    def away():
        raise StoreError("postgresql://somewhere is away")

    monkeypatch.setattr(shop.events, "writing", away)
    with caplog.at_level(logging.ERROR):
        answer = ask("POST", "/close", {"visit": "a"})
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert "somewhere" not in answer.json["error"]
    assert "somewhere" in caplog.records[0].why
    monkeypatch.undo()
    assert ask("POST", "/recommend", {"visit": "a"}).status == 200


# ---- products and operation ---------------------------------------------------------------------------------


def test_products_come_and_go(ask):
    listed = ask("GET", "/products").json["products"]
    assert [each["product"] for each in listed] == PRODUCTS
    asked = {"products": [{"product": "wine", "features": {"price": 9}}, {"product": "tea"}]}
    assert ask("PUT", "/products", asked).status == 200
    assert ask("POST", "/recommend", {"visit": "a", "among": ["wine"]}).json["products"] == ["wine"]
    assert ask("DELETE", "/products/wine").status == 200
    assert ask("DELETE", "/products/wine").status == 200
    refused = ask("POST", "/recommend", {"visit": "b", "among": ["wine"]})
    assert refused.status == 409
    listed = {each["product"]: each for each in ask("GET", "/products").json["products"]}
    assert listed["wine"]["offered"] is False
    assert listed["tea"]["offered"] is True
    assert isinstance(listed["tea"]["value"], float)
    assert listed["tea"]["spread"] > 0
    assert ask("DELETE", "/products/beer").status == 404


def test_an_integer_in_a_path_must_be_written_plainly(tmp_path):
    with new_shop(tmp_path, [10, -7], ids="integer") as shop, serving(shop) as ask:
        for text in ("1_0", "010", "+10", " 10", "\u0661\u0660", "tea", "9" * 5000, ""):
            answer = ask("DELETE", f"/products/{text}")
            assert answer.status == 422, text
            assert "product must be an integer in plain digits" in answer.json["error"]
            assert "database" not in answer.json["error"]
        assert shop.products == [10, -7]
        assert ask("DELETE", "/products/11").status == 404
        assert ask("DELETE", "/products/10").status == ask("DELETE", "/products/-7").status == 200
        assert shop.products == []


def test_what_a_request_allows_is_stored(ask, shop):
    among = ["tea", "cocoa", "water"]
    shown = ask("POST", "/recommend", {"visit": "a", "among": among, "count": 2}).json["products"]
    ask("POST", "/recommend", {"visit": "a"})
    events = [event for event in shop.events.since(0, 99) if event.kind == "recommended"]
    assert set(shown) < set(among)
    assert [event.among for event in events] == [among, among, None]


def test_products_are_all_added_or_none(ask):
    asked = {"products": [{"product": "wine"}, {"product": "beer", "features": {"colour": "red"}}]}
    answer = ask("PUT", "/products", asked)
    assert answer.status == 422
    assert "features of product 'beer': there is no feature 'colour'" in answer.json["error"]
    assert ask("PUT", "/products", {"products": [{"product": "wine"}, {"product": 7}]}).status == 422
    assert [each["product"] for each in ask("GET", "/products").json["products"]] == PRODUCTS


def test_health_and_metrics(ask, monkeypatch):
    monkeypatch.setattr("rlsvi_shop.service.app.HEALTH", 0.0)
    assert ask("GET", "/health").status == 503  # there are no samples yet
    ask("POST", "/recommend", {"visit": "a"})
    health = ask("GET", "/health")
    assert health.status == 200
    assert health.json["status"] == "ok"
    assert health.json["products"] == len(PRODUCTS)
    ask("POST", "/close", {"visit": "nobody"})
    text = ask("GET", "/metrics").body.decode()
    assert 'rlsvi_requests_total{path="/recommend",status="200"} 1.0' in text
    assert 'rlsvi_requests_total{path="/close",status="404"} 1.0' in text
    assert 'rlsvi_request_seconds_count{path="/recommend"} 1.0' in text


@pytest.fixture
def healthy(ask, monkeypatch):
    monkeypatch.setattr("rlsvi_shop.service.app.HEALTH", 0.0)  # look anew at every request
    assert ask("POST", "/recommend", {"visit": "a"}).status == 200
    assert ask("GET", "/health").status == 200
    return ask


def test_a_full_disk_is_told_until_there_is_space(healthy, shop):
    """Some pages are left, as on many full disks: a little can be written, and a request cannot."""
    shop.events._rows("PRAGMA max_page_count = 1", {})  # fails as a full disk does
    bodies = [{"visit": f"v{n}-{'x' * 180}", "count": 3} for n in range(100)]
    statuses = [healthy("POST", "/recommend", body).status for body in bodies]  # the first may find room
    assert set(statuses) <= {200, 503}
    assert statuses[-1] == 503
    found = healthy("GET", "/health")
    assert (found.status, found.headers["retry-after"]) == (503, "1")
    assert found.json == {"error": "nothing can be stored: the disk is full: free some space"}
    shop.events._rows("PRAGMA max_page_count = 1000000", {})
    assert healthy("POST", "/recommend", {"visit": "b"}).status == 200
    assert healthy("GET", "/health").status == 200


def test_health_finds_out_that_nothing_can_be_written_and_that_it_can_again(healthy, shop, monkeypatch):
    """Also if nobody asks for anything else."""
    monkeypatch.setattr("rlsvi_shop.recommender.WRITTEN", 0.0)
    shop.events._rows("PRAGMA query_only = 1", {})
    for _ in range(2):
        found = healthy("GET", "/health")
        assert found.status == 503
        assert found.json["error"].startswith("nothing can be stored: it is read-only: let this user write")
        assert str(shop.settings.draws_folder) not in found.json["error"]
    shop.events._rows("PRAGMA query_only = 0", {})
    assert healthy("GET", "/health").status == 200


def test_health_is_well_again_some_time_after_the_last_request_that_failed(healthy, shop, monkeypatch):
    def away():
        raise StoreError("postgresql://somewhere is away")

    with monkeypatch.context() as patch:
        patch.setattr(shop.events, "writing", away)
        assert healthy("POST", "/close", {"visit": "a"}).status == 503
    assert healthy("GET", "/health").json == {"error": "nothing can be stored: the log says why"}
    monkeypatch.setattr("rlsvi_shop.recommender.REFUSED", 0.0)
    assert healthy("GET", "/health").status == 200


def test_health_is_looked_at_once_a_second(shop, monkeypatch):
    looks = []
    monkeypatch.setattr("rlsvi_shop.service.app.HEALTH", 60.0)
    with serving(shop) as ask:
        monkeypatch.setattr(shop, "health", lambda: looks.append(1) or {"sample": len(looks)})
        answers = ask.together([("GET", "/health", b"")] * 20)
        assert {answer.body for answer in answers} == {b'{"status":"ok","sample":1}'}
        monkeypatch.setattr("rlsvi_shop.service.app.HEALTH", 0.0)
        assert ask("GET", "/health").json["sample"] == 2


@pytest.mark.parametrize("path", ["/health", "/", "/docs", "/products"])  # the last one is refused without a token
def test_clients_without_a_token_do_not_keep_others_from_their_answers(shop, monkeypatch, path):
    monkeypatch.setattr(guard, "STRANGERS_PER_SECOND", 1000)
    with serving(shop, token="sesame", most=8) as ask:
        shown, strangers = {"Authorization": "Bearer sesame"}, [("GET", path, b"")] * 300
        answers = ask.together([*strangers, *[("GET", "/products", b"", shown)] * 8])
        assert [answer.status for answer in answers[300:]] == [200] * 8
        assert {answer.status for answer in answers[:300]} <= {401 if path == "/products" else 200, 503}


def test_clients_without_a_token_wait_for_their_turn_and_are_refused_if_it_is_far(shop, monkeypatch):
    monkeypatch.setattr(guard, "STRANGERS_AT_ONCE", 4)
    monkeypatch.setattr(guard, "STRANGERS_PER_SECOND", 50)
    monkeypatch.setattr(guard, "STRANGERS_WAIT", 0.25)
    monkeypatch.setattr(guard, "monotonic", lambda: 1000.0)
    with serving(shop, token="sesame") as ask:
        answers = ask.together([("GET", "/", b"")] * 60)
    assert sum(answer.status == 200 for answer in answers) == 4 + 12
    (refused,) = {(answer.status, answer.body) for answer in answers if answer.status != 200}
    assert refused == (503, b'{"error": "too many clients that show no token ask: ask again in a second"}')


def test_the_openapi_document_describes_every_request(ask):
    document = ask("GET", "/openapi.json").json
    paths = document["paths"]
    assert {"/recommend", "/feedback", "/close", "/products", "/health", "/metrics"} <= set(paths)
    body = paths["/recommend"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["visit"]
    assert body["properties"]["visit"]["examples"] == ["ann-17"]
    assert "#/components" not in json.dumps(body)
    assert {"401", "409", "413", "422", "503"} <= set(paths["/recommend"]["post"]["responses"])
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_the_page_of_all_requests_loads_nothing_and_says_what_the_document_says(ask):
    answer = ask("GET", "/docs")
    page, document = answer.body.decode(), ask("GET", "/openapi.json").json
    assert answer.status == 200
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert set(re.findall(r'(?:src|href)="(.*?)"', page)) == {"data:,", "openapi.json", "./"}
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            section = page.partition(f'aria-label="{method.upper()} {path}"')[2].partition("</section>")[0]
            assert all(f"<code>{code}</code>" in section for code in about["responses"] if code != "200")
            body = about.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            assert all(f"<code>{field}</code>" in section for field in body.get("properties", {}))
