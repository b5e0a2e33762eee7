"""The drawings of the pages on concepts."""

import re

from benchmarks.pictures import EPSILON, LENGTH, SHOWN, deep_exploration, episodes_of, plan

import rlsvi
from pages import HOUSE


def test_rlsvi_gets_to_the_end_of_the_chain_and_epsilon_greedy_does_not():
    sampled, greedy = episodes_of(rlsvi.RLSVI(sigma=0.1, lam=1.0), 0.0), episodes_of(rlsvi.LSVI(), EPSILON)
    *_, last = sampled
    assert last.number == SHOWN[-1]
    assert last.ends >= 3
    assert all(episode.ends == 0 and episode.followed == [0.0] * (LENGTH - 1) for episode in greedy)


def test_the_drawings_that_are_committed_are_those_of_the_script():
    images = HOUSE / "docs" / "images"
    assert (images / "plan.svg").read_text() == plan()
    kept, drawn = (images / "deep-exploration.svg").read_text(), deep_exploration()
    assert len(kept) < 300_000
    assert kept.count("<g ") == drawn.count("<g ") == len(SHOWN)
    assert re.findall("<text.*?</text>", kept)[:4] == re.findall("<text.*?</text>", drawn)[:4]
