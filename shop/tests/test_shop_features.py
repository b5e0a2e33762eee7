"""Customers and products as numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsvi_shop.features import Encoder

SCHEMA = {
    "age": {"low": 0, "high": 100},
    "country": {"values": ["at", "de", 7, True]},
    "referrer": {"hashed": 5},
}
ENCODER = Encoder(SCHEMA)


def test_numbers_categories_and_hashed_ones_have_their_places():
    assert ENCODER.width == 1 + 4 + 5
    encoded = ENCODER.encode({"age": 75, "country": "de", "referrer": "mail"})
    assert encoded[:5].tolist() == [0.5, 0, 1, 0, 0]
    assert sorted(np.abs(encoded[5:]).tolist()) == [0, 0, 0, 0, 1]
    assert encoded.dtype == np.float64


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ({"age": 0}, [-1, 0, 0, 0, 0]),
        ({"age": 100}, [1, 0, 0, 0, 0]),
        ({"age": -1e300}, [-1, 0, 0, 0, 0]),  # clipped
        ({"age": np.int64(50), "country": "at"}, [0, 1, 0, 0, 0]),
        ({"country": "fr"}, [0, 0, 0, 0, 0]),  # unknown: none
        ({"country": "7"}, [0, 0, 0, 1, 0]),  # as a CSV file has it
        ({"country": True}, [0, 0, 0, 0, 1]),
        ({"country": "true"}, [0, 0, 0, 0, 1]),
        ({"country": 1}, [0, 0, 0, 0, 0]),  # not the same as true
        ({"age": None, "country": None}, [0, 0, 0, 0, 0]),
        ({}, [0, 0, 0, 0, 0]),
        (None, [0, 0, 0, 0, 0]),
    ],
    ids=str,
)
def test_what_is_missing_unknown_or_beyond(given, first):
    assert ENCODER.encode(given).tolist() == [*first, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"age": math.nan}, "age must be a finite number, got nan: leave it out"),
        ({"age": -math.inf}, "age must be a finite number, got -inf"),
        ({"age": 10**400}, "age must be a finite number"),
        ({"age": True}, "age must be a number, got True"),
        ({"age": "30"}, "age must be a number, got '30'"),
        ({"age": [30]}, r"age must be a number, got \[30\]"),
        ({"country": 1.5}, "country must be a text, a whole number of 64 bits, true or false, got 1.5"),
        ({"country": 10**5000}, "country must be a text"),
        ({"country": "x" * 1001}, "country must have at most 1000 characters, got 1001"),
        ({"referrer": "\ud800"}, "referrer must be valid Unicode text"),
        ({"referrer": {}}, "referrer must be a text"),
        ({"agee": 3}, "there is no feature 'agee'; declared are: age, country, referrer"),
        ({3: 3}, "there is no feature 3"),
        ([3], "features must be given by name"),
        ("age", "features must be given by name"),
    ],
    ids=[f"wrong-{i}" for i in range(15)],
)
def test_wrong_values_are_refused_with_the_feature_named(given, words):
    with pytest.raises(ValueError, match=words):
        ENCODER.encode(given)
    assert ENCODER.encode_stored(given if isinstance(given, dict) else {}).any() == 0  # no longer fits: missing


def test_features_are_also_given_as_objects():
    assert Encoder(dict(ENCODER.root)) == ENCODER
    assert Encoder.model_validate_json(ENCODER.model_dump_json()) == ENCODER


def test_no_features_at_all():
    assert Encoder({}).encode({}).shape == (0,)
    with pytest.raises(ValueError, match="there is no feature 'age'; declared are: none"):
        Encoder({}).encode({"age": 3})


VALUES = {
    "age": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    "country": st.none() | st.sampled_from(["at", "fr", "7", 7, True, False]),
    "referrer": st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.text(max_size=20),
}


@settings(max_examples=40)
@given(st.fixed_dictionaries({}, optional=VALUES))
def test_what_is_stored_encodes_as_what_was_given(context):
    if isinstance(context.get("age"), int) and abs(context["age"]) > 10**300:
        del context["age"]
    stored = ENCODER.check(context)
    encoded = ENCODER.encode(context)
    assert np.array_equal(ENCODER.encode(stored), encoded)
    assert np.array_equal(ENCODER.encode_stored(stored), encoded)
    assert ENCODER.check(stored) == stored
    assert np.isfinite(encoded).all()
    assert (np.abs(encoded) <= 1).all()
    assert np.count_nonzero(encoded[5:]) == (context.get("referrer") is not None)


def test_hashing_is_the_same_in_every_process():
    here = ENCODER.encode({"referrer": "ä"})
    assert np.flatnonzero(here).tolist() == [7]  # and in every version: models in use rely on it
    assert here[7] == 1


def test_hashed_values_spread_over_all_places_and_signs():
    many = Encoder({"word": {"hashed": 16}})
    total = np.array([many.encode({"word": f"word {i}"}) for i in range(3200)])
    counts = np.abs(total).sum(axis=0)
    assert counts.min() > 130
    assert counts.max() < 270  # 200 expected, sd 14
    assert abs(total.sum()) < 5 * math.sqrt(3200)
