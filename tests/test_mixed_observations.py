"""Observations of numbers, texts and categories at once, and observations that change their form."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple

import rlsvi
from pages import blocks
from rlsvi.agents.practice.features import MOST_CATEGORIES, Categories
from rlsvi.bases.layout import code_of, layout_of, observation_of, vector_of
from rlsvi.offline.recorder import Recorder

WORDS = ("left", "right")


class Signs(gymnasium.Env):
    """A number that never recurs, a word and an identifier; the word says which half of the numbers pays."""

    action_space = Discrete(2)
    observation_space = Dict(x=Box(0.0, 1.0, (1,), np.float64), sign=Text(8), house=Discrete(10**6, start=5))

    def __init__(self, words=WORDS, length=20):
        self.words, self.length = words, length

    def look(self):
        self.x, self.word = self.np_random.random(), self.words[self.np_random.integers(len(self.words))]
        return {"x": np.array([self.x]), "sign": self.word, "house": 5 + 7 * int(self.np_random.integers(3))}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.look(), {}

    def right(self):
        return int((self.x > 0.5) == (self.word == "right"))

    def step(self, action):
        reward, self.t = float(action == self.right()), self.t + 1
        return self.look(), reward, False, self.t >= self.length, {}


def learned(episodes=15, seed=0, **settings):
    env = Signs()
    return rlsvi.agent_for(env, seed=seed, **settings).learn(env, episodes, progress=False)


def observations(count, seed=50):
    env = Signs()
    env.reset(seed=seed)
    return [env.look() for _ in range(count)]


def same(a, b):
    """Whether two agents have learned the same, bit for bit."""
    one, other = a._state(), b._state()
    assert one.keys() == other.keys()
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


def test_a_word_and_numbers_are_learned_together():
    agent, env = learned(), Signs()
    assert isinstance(agent, rlsvi.TableOrFeatures)
    assert not agent.uses_table
    assert rlsvi.evaluate(agent, env, 10).mean > 0.9 * env.length


def test_what_was_learned_of_words_continues_from_a_file(tmp_path):
    agent = learned(6)
    agent.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    seen = observations(30)
    for a in (agent, again):
        a.learn(Signs(), 6, progress=False)
    assert same(agent, again)
    assert same(agent, learned(12))
    assert [agent.predict(o)[0] for o in seen] == [again.predict(o)[0] for o in seen]


def test_many_observations_at_once_are_predicted_as_one_by_one():
    agent, seen = learned(8), observations(40)
    batch = {key: np.array([o[key] for o in seen]) for key in seen[0]}
    together, _ = agent.predict(batch, deterministic=True)
    assert together.tolist() == [agent.predict(o, deterministic=True)[0] for o in seen]
    assert len(set(together.tolist())) == 2
    assert (
        agent.predict({**batch, "sign": batch["sign"].tolist()}, deterministic=True)[0].tolist()
        == together.tolist()
    )


def test_the_exported_policy_knows_the_words(tmp_path):
    agent, seen = learned(8), observations(40)
    agent.export(tmp_path / "policy.npz")
    reader = {}
    exec(blocks("docs/interoperability.md")[0], reader)
    act = reader["policy"](tmp_path / "policy.npz")
    seen.append({**seen[0], "sign": "unknown"})
    assert [act(o) for o in seen] == [agent.predict(o, deterministic=True)[0] for o in seen]


@pytest.mark.parametrize("make", [rlsvi.agent_for, lambda env, seed: rlsvi.DiscountedPSRL(seed=seed)])
def test_a_log_of_words_teaches_the_same(make, tmp_path):
    env = Recorder(Signs())
    agent = make(env, seed=3).learn(env, 6, progress=False)
    log = env.frame()
    assert log["observation"].struct.field("sign").unique().sort().to_list() == sorted(WORDS)
    log.write_parquet(tmp_path / "log.parquet")
    assert same(agent, make(Signs(), seed=3).fit(tmp_path / "log.parquet", Signs()))


def test_a_table_of_an_earlier_version_goes_on():
    """It knows observations with words by their bytes, and its file has no layout."""
    env, old = Signs(), rlsvi.DiscountedPSRL(seed=0)
    old._take_on(old._task_of(env), env)
    old._problem_basis = None
    old._learner = old.new_learner(old._task, old._task.checked(env.reset(seed=0)[0]))
    old._episode(env)
    assert old.learn(env, 1, progress=False).episodes == 2
    assert old._problem_basis is None


# ---- Categories -------------------------------------------------------------------------------------------


def test_categories_are_numbered_in_the_order_of_appearance():
    layout = layout_of(Tuple((Text(5), Box(0, 1, (1,)), Discrete(3))))
    assert layout.counts == [2**52, 3]
    rows = np.array([vector_of(layout, (word, [0.5], 2)) for word in ("b", "a", "b", "c")])
    categories = Categories(layout, 4096)
    assert categories.counts == [2, 3]
    assert categories.numbered(rows)[:, 1].tolist() == [0, 0, 0, 0]
    more = categories.extended(rows[:2]).extended(rows)
    assert more.numbered(rows).tolist() == [[0.5, 1, 2], [0.5, 2, 2], [0.5, 1, 2], [0.5, 3, 2]]
    assert more.counts == [4, 3]
    assert categories.counts == [2, 3]  # as it was


def test_values_beyond_the_most_share_a_category():
    layout = layout_of(Dict(a=Discrete(10**6), b=Discrete(100)))
    rows = np.stack([np.arange(1000.0), np.zeros(1000)], axis=1)
    categories = Categories(layout, 4096).extended(rows)
    assert categories.counts == [MOST_CATEGORIES + 1, 100]
    assert categories.numbered(rows)[:, 0].tolist() == [
        *range(1, MOST_CATEGORIES + 1),
        *[0] * (1000 - MOST_CATEGORIES),
    ]
    assert Categories(layout_of(Dict(a=Discrete(1000), b=Discrete(100))), 4096).counts == [1000, 100]


def test_texts_have_the_codes_that_the_documentation_says():
    assert code_of("left") == 0x361AB1BEE57F1  # printf left | b2sum -l 64
    layout = layout_of(Dict(t=Text(5), x=Box(0, 1, (1,))))
    x = vector_of(layout, {"t": "left", "x": [0.25]})
    assert np.array_equal(vector_of(layout, observation_of(layout, x)), x)
    assert vector_of(layout, {"t": np.array("left"), "x": [0.25]}).tolist() == x.tolist()


def test_more_words_than_categories_can_be_learned_from():
    env = Signs([f"w{i}" for i in range(2 * MOST_CATEGORIES)], length=100)
    agent = rlsvi.BoundedRLSVI(seed=0).learn(env, 10, progress=False)
    lookup = agent._learner.lookup
    assert lookup.categories.counts[0] == MOST_CATEGORIES + 1
    assert agent.predict({"x": [0.5], "sign": "new", "house": 5}, deterministic=True)[0] in (0, 1)


# ---- Observations that change their form ------------------------------------------------------------------


class Changes(Signs):
    """Signs whose observations change after some steps."""

    def __init__(self, change=None, after=10**9):
        super().__init__()
        self.change, self.left = change, after

    def look(self):
        self.left -= 1
        found = super().look()
        return self.change(found) if self.left < 0 else found


CHANGES = {
    "shape": (lambda o: {**o, "x": np.zeros(2)}, r"observation\['x'\] must have shape \(1,\), got \(2,\)"),
    "key lost": (lambda o: {"x": o["x"], "house": 5}, r"must have the keys .*it lacks \['sign'\]"),
    "key new": (lambda o: {**o, "y": 1}, r"must have the keys .*\['y'\] is new"),
    "text for a number": (lambda o: {**o, "x": ["0.5"]}, r"observation\['x'\] must be numbers of shape \(1,\)"),
    "number for a text": (lambda o: {**o, "sign": 3}, r"observation\['sign'\] must be a text, got 3"),
    "no dictionary": (lambda o: o["x"], "observation must be a dictionary with the keys"),
    "another number": (lambda o: {**o, "house": 0.5}, "outside of the observation space"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("make", [rlsvi.agent_for, lambda env, seed: rlsvi.DiscountedPSRL(seed=seed)])
def test_an_observation_of_another_form_is_refused_and_its_episode_forgotten(name, make):
    change, message = CHANGES[name]
    env = Changes(change, after=70)  # in the fourth episode
    agent, other = make(Signs(), seed=1), make(Signs(), seed=1)
    with pytest.raises(ValueError, match=f"{message}.*gymnasium.wrappers.TransformObservation"):
        agent.learn(env, 5, progress=False)
    other.learn(Signs(), 3, progress=False)
    assert agent.episodes == 3
    assert same(agent, other)
    assert same(agent.learn(Signs(), 2, progress=False), other.learn(Signs(), 2, progress=False))


def test_the_part_of_a_tuple_is_named():
    layout = layout_of(Tuple((Discrete(2), Dict(a=Box(0, 1, (2,))))))
    with pytest.raises(ValueError, match=r"observation\[1\]\['a'\] must have shape \(2,\), got \(3,\)"):
        vector_of(layout, (1, {"a": np.zeros(3)}))
    with pytest.raises(ValueError, match="observation must be a tuple of 2 parts, got 1 parts"):
        vector_of(layout, (1,))
