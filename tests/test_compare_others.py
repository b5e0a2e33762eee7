"""compare() with agents, environments and problems that are not of this library, and with overridden methods."""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

import rlsvi
from own_things import Corridor, QLearning, corridor, ppo, two_rooms
from rlsvi import compare, problems
from rlsvi.cli.app import app
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate import simulate
from rlsvi.simulate.finite import Recorded, fused_for, run_stepped
from rlsvi.study.compare import Comparison, one_at_a_time


def small(agents, problem, episodes=6, **options):
    return compare(agents, problem, episodes, **{"seeds": 2, "progress": False, **options})


# ---- anything competes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["FrozenLake-v1", problems.chain(4)], ids=["FrozenLake", "chain"])
def test_an_agent_of_another_kind_competes_where_the_solution_is_known(problem):
    agents = {"RLSVI": rlsvi.RLSVI(), "Q-learning": QLearning, "default": rlsvi.agent_for}
    runs = small(agents, problem)
    assert runs.exact
    assert runs.loops["RLSVI"] == "fused"
    assert runs.loops["Q-learning"] == "stepped"
    assert np.isfinite(runs.frame["regret"].to_numpy()).all()
    assert [row["loop"] for row in runs.summary().to_dicts()] == list(runs.loops.values())
    words = "Stepped through the environment, so that regret is that of the actions taken: Q-learning"
    assert words in runs.caption


def test_returns_are_compared_where_the_solution_is_not_known(tmp_path):
    runs = small({"default": rlsvi.agent_for, "Q-learning": QLearning}, "CartPole-v1", 12)
    assert not runs.exact
    assert runs.frame["reward"].min() >= 1
    assert runs.frame["regret"].null_count() == runs.frame["realised"].null_count() == 2 * 2 * 12
    for row in runs.summary().to_dicts():
        rewards = runs.frame.filter(agent=row["agent"])["reward"].to_numpy().reshape(2, 12)
        assert row["mean_return"] == pytest.approx(np.median(rewards.mean(axis=1)))
        assert row["return_last"] == np.median(rewards[:, -1])
        assert row["regret"] is row["learned"] is row["after"] is None
    assert len(runs.cells()[0]) == len(runs.columns) == 4
    assert runs.improvement("default", over="Q-learning").value == np.mean(
        [[a > b for b in runs.total_return("Q-learning")] for a in runs.total_return("default")]
    )
    assert runs.plot(tmp_path / "returns.png").get_ylabel() == "return"
    for regret in (runs.total_regret, runs.cumulative):
        with pytest.raises(ValueError, match="regret is not known, as CartPole-v1 is not solved"):
            regret("default")


def test_the_mean_return_is_drawn_over_a_tenth_of_the_episodes():
    runs = small({"Q-learning": QLearning}, corridor, 30, seeds=1)
    (reward,) = (run.history.reward for run in runs.of("Q-learning"))
    line = runs.plot().lines[0]
    assert line.get_xdata().tolist() == list(range(3, 31))
    np.testing.assert_allclose(line.get_ydata(), [reward[i - 3 : i].mean() for i in range(3, 31)])


@pytest.mark.slow
def test_a_model_of_stable_baselines_competes():
    pytest.importorskip("stable_baselines3", exc_type=ImportError)
    agents = {"PPO": ppo, "RLSVI": rlsvi.RLSVI(), "Q-learning": QLearning}
    first, again = (small(agents, problems.chain(4), 30, workers=workers) for workers in (1, 3))
    assert first.frame.equals(again.frame)
    assert first.loops["PPO"] == "stepped"
    returns = small({"PPO": ppo, "default": rlsvi.agent_for}, "CartPole-v1", 4)
    assert returns.frame.filter(agent="PPO")["reward"].min() >= 8
    assert small({"PPO": ppo}, "FrozenLake-v1", 4).exact
    options = ("--agents", "default,own_things:ppo,own_things:QLearning", "--episodes", "4", "--seeds", "2", "-q")
    for problem in ("FrozenLake-v1", "CartPole-v1", "chain"):
        result = CliRunner().invoke(app, ["compare", problem, *options])
        assert result.exit_code == 0, result.stderr
        assert "own_things:ppo" in result.stdout


class Global:
    """An agent that draws from the generators that all share, and learns nothing."""

    def __init__(self, env):
        pass

    def learn(self, env, episodes):
        for _ in range(episodes):
            over = False
            env.reset()
            while not over:
                *_, terminated, truncated, _ = env.step(np.random.randint(2))  # noqa: NPY002
                over = terminated or truncated


@pytest.mark.parametrize("problem", [problems.chain(4), corridor, "CartPole-v1"], ids=["chain", "own", "CartPole"])
def test_any_number_of_workers_gives_the_same_bits(problem):
    agents = {"global": Global, "Q-learning": QLearning, "default": rlsvi.agent_for}
    kept = np.random.get_state()[1].copy()  # noqa: NPY002
    frames = [small(agents, problem, 8, seeds=3, workers=workers).frame for workers in (1, 2)]
    assert frames[0].equals(frames[1])
    assert frames[0].filter(agent="global")["reward"].n_unique() > 1
    assert np.array_equal(np.random.get_state()[1], kept)  # noqa: NPY002


@pytest.mark.parametrize("executor", ["serial", pytest.param("processes", marks=pytest.mark.slow)])
def test_any_executor_gives_the_same_bits(executor):
    agents = {"Q-learning": QLearning, "RLSVI": rlsvi.RLSVI(), "default": rlsvi.agent_for}
    for problem in (two_rooms, "CartPole-v1"):
        few = agents if problem is two_rooms else {"Q-learning": QLearning}
        one, other = (small(few, problem, 4, workers=2, executor=it) for it in (None, executor))
        assert one.frame.equals(other.frame)
        assert one.loops == other.loops
        assert one.summary().equals(other.summary())


def test_what_cannot_be_sent_to_other_processes_is_named():
    with pytest.raises(TypeError, match=r"agents\['Q'\] cannot be sent to other processes .*: define it by name"):
        small({"Q": lambda env, seed: QLearning(env, seed)}, corridor, executor="serial")
    with pytest.raises(TypeError, match="problem cannot be sent to other processes"):
        small({"Q": QLearning}, lambda seed: corridor(), executor="serial")
    with pytest.raises(RuntimeError, match=r"the run of agents\['idle'\] with seed 0 failed: RuntimeError: Idle"):
        small({"idle": Idle}, corridor, executor="serial")
    with pytest.raises(ValueError, match="executor must be one of"):
        small({"Q": QLearning}, corridor, executor="many")
    with pytest.raises(ValueError, match="executor goes with device='cpu'"):
        small({"Q": QLearning}, corridor, executor="serial", device="cuda")


def test_agents_of_a_problem_can_be_classes_clones_and_functions():
    agents = {
        "class": rlsvi.RLSVI,
        "template": rlsvi.RLSVI(),
        "of seed": lambda seed: rlsvi.RLSVI(seed=seed),
        "of env": lambda env: rlsvi.RLSVI(),
        "of both": lambda env, seed: rlsvi.RLSVI(seed=seed),
    }
    runs = small(agents, problems.chain(4))
    assert set(runs.loops.values()) == {"fused"}
    assert all(np.array_equal(runs.cumulative("class"), runs.cumulative(name)) for name in agents)


def test_agents_without_a_compiled_loop_compete():
    chosen = rlsvi.agent_for(gym.make("CartPole-v1"))
    runs = small({"instance": chosen, "function": rlsvi.agent_for}, "CartPole-v1", 3)
    assert np.array_equal(runs.total_return("instance"), runs.total_return("function"))
    assert chosen.episodes == 0
    agents = {
        "model": rlsvi.DiscountedPSRL(),
        "stationary": rlsvi.StationaryRLSVI(),
        "continual": rlsvi.ContinualRLSVI(gamma=0.9),  # which learns for a number of steps
    }
    runs = small(agents, problems.chain(4))
    assert set(runs.loops.values()) == {"stepped"}
    assert np.isfinite(runs.frame["regret"].to_numpy()).all()


def test_problems_can_be_environments_ids_and_functions():
    def rewards(problem):
        return small({"default": rlsvi.agent_for}, problem).frame["reward"].to_list()

    env = corridor()
    assert rewards(env) == rewards(corridor) == rewards(lambda: corridor())
    assert not hasattr(env.unwrapped, "at")  # it was copied, not played
    assert rewards(gym.make("FrozenLake-v1")) == rewards("FrozenLake-v1") == rewards(lambda seed: "FrozenLake-v1")
    assert rewards(two_rooms) == rewards(two_rooms())
    drawn = []
    small({"Q": QLearning}, lambda seed: drawn.append(seed) or corridor(3 + seed), seeds=[4, 2], workers=1)
    assert set(drawn) == {4, 2}


def test_an_environment_of_which_the_table_may_not_be_true_is_not_solved():
    class Dear(gym.envs.toy_text.FrozenLakeEnv):
        def step(self, action):
            observation, reward, *rest = super().step(action)
            return observation, reward - 1.0, *rest

    runs = small({"Q": QLearning}, gym.wrappers.TimeLimit(Dear(), 20))
    assert not runs.exact
    assert runs.frame["reward"].max() < 0
    shaped = gym.wrappers.TransformReward(gym.make("FrozenLake-v1"), lambda reward: reward + 1)
    assert not small({"Q": QLearning}, shaped).exact
    short = gym.wrappers.TimeLimit(FiniteMDPEnv(problems.chain(6).mdp), 3)
    assert not small({"Q": QLearning}, short).exact


# ---- stepping ---------------------------------------------------------------------------------------------


@dataclass(kw_only=True, repr=False, eq=False)
class Plain(rlsvi.RLSVI):
    """Overrides no method, and so is fused."""

    sigma: float = 0.3


class Vouched(Plain):
    """Overrides a method, and says that the compiled loop does the same."""

    _fused = True

    def _settle(self):
        super()._settle()


class Doubling(Plain):
    def reward(self, paid):
        return 2 * super().reward(paid)


class Stepped(Plain):
    def _notice(self):
        """Nothing, but the fused loop would not call it."""


class Left(Plain):
    def _choose(self, *arguments):
        return 0


class Silent(Plain):
    """Overrides a method that plays no part in learning."""

    def predict(self, *arguments, **options):
        return 0, None


class Mixin:
    def _uses_sample(self, learner):
        return False


class Mixed(Mixin, Plain):
    pass


def test_a_class_elsewhere_that_overrides_a_method_is_stepped_unless_it_declares_that_it_is_fused():
    assert all(fused_for(kind()) for kind in (Plain, Vouched, Silent))
    assert not any(fused_for(kind()) for kind in (Doubling, Stepped, Left, Mixed))
    assert not fused_for(type("Derived", (Vouched,), {"reward": Doubling.reward})())
    runs = small({"plain": Plain(), "doubling": Doubling(), "left": Left()}, problems.chain(4))
    assert runs.loops == {"plain": "fused", "doubling": "stepped", "left": "stepped"}


@pytest.mark.parametrize(("kind", "alone"), [(Plain, False), (Doubling, True)])
def test_only_code_that_may_draw_from_global_generators_runs_alone(kind, alone):
    held = []
    Comparison({"it": kind()}, problems.chain(4), 20).run("it", 0, lambda n: held.append(one_at_a_time.locked()))
    assert held[-1] == alone


def test_stepping_gives_the_bits_of_the_fused_loop():
    problem = problems.chain(5, 3)
    fused, slow = (simulate(kind(seed=3), problem, 40, trace=True) for kind in (Plain, Stepped))
    for name in ("reward", "realised"):
        np.testing.assert_array_equal(getattr(fused, name), getattr(slow, name))
    for one, other in zip(fused.trace, slow.trace, strict=True):
        np.testing.assert_array_equal(one, other)
    # The first policy is uniform. Later ones are deterministic: what actions cost is what the policy costs.
    np.testing.assert_allclose(slow.regret[1:], fused.path_regret[1:], atol=1e-12)
    np.testing.assert_array_equal(slow.regret, slow.path_regret)
    assert np.isnan(simulate(Stepped(seed=3), problem, 2, regret=False).regret).all()
    runs = small({"plain": Plain(), "stepped": Stepped()}, problem, 40)
    one, other = (runs.frame.filter(agent=name)["reward"].to_list() for name in runs.agents)
    assert one == other


def test_an_overridden_reward_is_learned_from():
    doubled, plain = (kind(seed=1) for kind in (Doubling, Plain))
    for agent in (doubled, plain):
        assert simulate(agent, problems.river_swim(3, 4), 12).reward.max() < 5  # those paid are reported
    reference = Stepped(seed=1).learn(FiniteMDPEnv(problems.river_swim(3, 4).mdp), episodes=12)
    twice = Doubling(seed=1).learn(FiniteMDPEnv(problems.river_swim(3, 4).mdp), episodes=12)
    for one, other in ((reference, plain), (twice, doubled)):
        assert all(np.array_equal(array, other._state()[name]) for name, array in one._state().items())
    assert not all(np.array_equal(array, plain._state()[name]) for name, array in doubled._state().items())


def test_a_method_that_chooses_actions_is_called():
    assert set(simulate(Left(seed=0), problems.chain(5), 6, trace=True).trace.actions.ravel().tolist()) == {0}


def test_a_learner_of_another_kind_is_stepped():
    from rlsvi.agents.finite.rlsvi import FiniteLearner

    class Pessimist(FiniteLearner):
        def values(self, plan, place):
            return -super().values(plan, place)

    class Own(Plain):
        def _learner_of(self, task, features):
            learner = super()._learner_of(task, features)
            learner.__class__ = Pessimist
            return learner

    assert small({"own": Own()}, problems.chain(4)).loops == {"own": "stepped"}


def test_the_regret_of_actions_is_that_of_the_policy_in_expectation():
    problem = problems.chain(4)
    uniform = rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(1.0), seed=0)
    env = Recorded(FiniteMDPEnv(problem.mdp), 4000, solution=problem.solution)
    found = run_stepped(uniform, env)
    error = found.regret.std() / np.sqrt(4000)
    assert abs(found.regret.mean() - problem.random_regret) < 4 * error
    np.testing.assert_allclose(found.realised, problem.solution.V[0, 0] - found.reward)


# ---- bad input --------------------------------------------------------------------------------------------


class Idle:
    def __init__(self, env):
        pass

    def learn(self, env, episodes):
        pass


@pytest.mark.parametrize(
    ("agent", "error", "message"),
    [
        (3, TypeError, r"agents\['a'\] must be an agent, such as RLSVI\(\), or its class, or a function"),
        (object(), TypeError, "as in lambda env, seed: PPO"),
        (lambda: rlsvi.RLSVI(), TypeError, "called with env and seed by these names, at least one of them"),
        (lambda env, policy: None, TypeError, "called with env and seed by these names, not policy"),
        (lambda seed: seed, TypeError, r"agents\['a'\] must make an agent with a method learn, got 0"),
        (Idle, RuntimeError, "Idle.learn returned after 0 of 6 episodes"),
        (rlsvi.RLSVI(), ValueError, "needs observations that are numbered"),
    ],
    ids=["number", "object", "no arguments", "other arguments", "no agent", "idle", "needs a basis"],
)
def test_an_agent_that_cannot_compete_is_named(agent, error, message):
    with pytest.raises(error, match=message):
        small({"a": agent}, "CartPole-v1", workers=1)


@pytest.mark.parametrize(
    ("problem", "error", "message"),
    [
        ("Nowhere-v0", ValueError, "problem is 'Nowhere-v0', which Gymnasium cannot make"),
        (lambda: 3, TypeError, "problem must be a Problem, a Gymnasium environment or its id"),
        (gym.make_vec("CartPole-v1", 2), TypeError, "problem must be a Problem"),
    ],
    ids=["id", "number", "vector"],
)
def test_a_problem_that_cannot_be_played_is_named(problem, error, message):
    with pytest.raises(error, match=message):
        small({"Q": QLearning}, problem)


def test_an_environment_that_cannot_be_copied_needs_a_function():
    env = Corridor()
    env.lock = __import__("threading").Lock()
    with pytest.raises(TypeError, match=r"cannot be copied .*: pass a function that makes"):
        small({"Q": QLearning}, env)


def test_an_error_of_another_agent_is_raised_as_it_is():
    class Failing(QLearning):
        def learn(self, env, episodes):
            raise OSError("the cable")

    with pytest.raises(OSError, match="the cable"):
        small({"Q": QLearning, "failing": Failing}, corridor)
