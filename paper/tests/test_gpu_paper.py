"""The agents of this package have the same bits on a graphics card; see tests/test_gpu.py."""

import numpy as np
import pytest
from card_cases import KINDS

from on_card import differences
from test_gpu import EACH, needs_card, simulated


@pytest.mark.slow
def test_every_kind_of_agent_has_the_same_bits_on_a_simulated_card():
    assert simulated(EACH.format("card_cases")).splitlines() == [f"{name} []" for name in KINDS]


@needs_card
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_agent_has_the_same_bits_on_a_card(name):
    sample = sorted(np.random.default_rng(0).choice(2000, 20, replace=False).tolist())
    assert differences(KINDS[name], 2000, 300, sample) == []
