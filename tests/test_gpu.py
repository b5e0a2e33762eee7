"""Runs on a graphics card have the same bits as on the processor.

Without a card, Numba's simulator runs the kernels as plain Python, in a process of its own. With one, the tests
marked `card` run thousands of runs.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import rlsvi
from experiments import regret_of
from on_card import KINDS, differences
from rlsvi import RLSVI, problems
from rlsvi.core import card
from rlsvi.simulate import gpu
from rlsvi.simulate.finite import simulate
from rlsvi.study import compare, executors
from rlsvi.study.executors import executor
from rlsvi.study.job import Job

HERE = Path(__file__).parent
SIMULATED = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}


needs_card = pytest.mark.skipif(not card.is_usable(), reason="there is no graphics card")
needs_none = pytest.mark.skipif(card.is_usable(), reason="there is a graphics card")


class Own(RLSVI):
    """An agent with a method that the fused loop does not call."""

    def reward(self, paid):
        return 2 * super().reward(paid)


def simulated(code):
    """Run code with a simulated card, and return what it prints."""
    environment = {**os.environ, **SIMULATED, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


EACH = """
import on_card, {0}
for name, kind in {0}.KINDS.items():
    print(name, on_card.differences(kind, 3, 24, [0, 2]))
"""


@pytest.mark.slow
def test_every_kind_of_agent_has_the_same_bits_on_a_simulated_card():
    assert simulated(EACH.format("on_card")).splitlines() == [f"{name} []" for name in KINDS]


@needs_card
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_agent_has_the_same_bits_on_a_card(name):
    sample = sorted(np.random.default_rng(0).choice(2000, 20, replace=False).tolist())
    assert differences(KINDS[name], 2000, 300, sample) == []


def test_compare_gives_the_same_table_on_a_simulated_card():
    code = """
import rlsvi
agents = {"RLSVI": rlsvi.RLSVI(), "PSRL": rlsvi.PSRL(reward_range=(-1, 0))}
for problem in (
    lambda seed: rlsvi.problems.dirichlet(3, 2, 3, seed=seed),
    lambda seed: rlsvi.problems.chain(4, 3, seed=seed),
):
    one, other = (rlsvi.compare(agents, problem, 12, seeds=3, device=device).frame for device in ("cpu", "cuda"))
    print(one.equals(other), one.height)
    agents.pop("PSRL", None)
"""
    assert simulated(code).splitlines() == ["True 72", "True 36"]


def test_a_card_is_not_warned_of_few_blocks():
    class Kernel:
        def __getitem__(self, size):
            few = "\033[1mGrid size 1 will likely result in GPU under-utilization due to low occupancy.\033[0m"
            warnings.warn(few, stacklevel=2)
            warnings.warn("Host array used in CUDA kernel", stacklevel=2)
            return size

    with pytest.warns(UserWarning, match="Host array") as seen:
        assert card.sized(Kernel(), 1, 32) == (1, 32)
    assert len(seen) == 1


def test_problems_that_differ_in_their_basis_share_the_rest():
    one, other = (problems.chain(6, 3, seed=seed) for seed in (0, 1))
    assert one.mdp is other.mdp
    assert one.solution is other.solution
    assert one.random_regret == other.random_regret == problems.chain(6).random_regret
    assert not np.array_equal(one.basis.phi, other.basis.phi)
    assert problems.chain(6, deterministic=True).solution.V[0, 0] == 1


@pytest.mark.slow
def test_memory_grows_and_a_run_that_fails_does_not_stop_the_others():
    code = """
import numpy as np, rlsvi
from rlsvi.simulate.gpu import Batch
from rlsvi.simulate.finite import simulate
problem = rlsvi.problems.recommendation(6, 3)
agents = [rlsvi.RLSVI(seed=seed) for seed in range(2)]
batch = Batch(agents, problem)
rooms = batch.runs.mind.memory.into.shape[1]
found = batch.play([0, 1], 40, regret=False)
expected = [simulate(agent, problem, 40, regret=False) for agent in agents]
assert all(np.array_equal(a.reward, b.reward) for a, b in zip(found, expected))
assert batch.runs.mind.memory.into.shape[1] > rooms
mdp = rlsvi.FiniteMDP.from_arrays(np.full((2, 2, 2), .5), np.eye(2), horizon=3, start=[1, 0], rewards="gaussian")
picky = [rlsvi.PSRL(reward_range=(-1.4, 2.4), seed=seed) for seed in range(4)]
found = Batch(picky, rlsvi.Problem(mdp)).play(range(4), 6)
kinds = []
for agent in picky:
    try: kinds.append(simulate(agent, rlsvi.Problem(mdp), 6).reward.sum())
    except ValueError as error: kinds.append(str(error))
assert [str(it) if isinstance(it, Exception) else it.reward.sum() for it in found] == kinds, (found, kinds)
print(sorted({type(it).__name__ for it in kinds}))
"""
    assert simulated(code) == "['float64', 'str']"


@pytest.mark.slow
def test_a_sweep_computes_experiments_on_a_simulated_card_and_the_rest_beside_it(tmp_path):
    code = f"""
import experiments, jobs
from rlsvi import Job, Store, sweep
from rlsvi.study import executors
from rlsvi.study.sweep import SweepError
executors.FEWEST_TOGETHER, executors.FEWEST_LEFT = 4, 2
if __name__ == "__main__":
    made = [Job.of(experiments.regret_of, length=4, seed=seed) for seed in range(5)]
    made += [Job.of(jobs.picky, i=3, bad=4)]
    for name in ("gpu", "serial"):
        try: sweep(made, {str(tmp_path)!r} + name, name)
        except SweepError as error: print(str(error).splitlines()[0])
    stores = [Store({str(tmp_path)!r} + name) for name in ("gpu", "serial")]
    print([stores[0].read(job)[0].equals(stores[1].read(job)[0]) for job in made if job.settings.get("seed") != 3])
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    printed = simulated(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')").splitlines()
    assert printed[0] == printed[1]
    assert "1 of 6 jobs failed" in printed[0]
    assert "3 is not liked" in printed[0]
    assert printed[2] == str([True] * 5)


@needs_none
def test_no_card_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(card.NoCard, match="leave device='cuda'"):
        rlsvi.compare({"RLSVI": RLSVI()}, problems.chain(4), 5, device="cuda")
    with pytest.raises(card.NoCard, match="--executor gpu"):
        executor("gpu")


def test_what_a_card_cannot_run_is_refused_before_anything_starts():
    chain = problems.chain(4)
    with pytest.raises(ValueError, match='device must be "cpu" or "cuda"'):
        rlsvi.compare({"RLSVI": RLSVI()}, chain, 5, device="tpu")
    with pytest.raises(TypeError, match="by evidence"):
        gpu.Batch([RLSVI(sigma=rlsvi.ByEvidence())], chain)
    with pytest.raises(TypeError, match="no fused loop"):
        gpu.Batch([rlsvi.StationaryRLSVI()], chain)
    with pytest.raises(ValueError, match="same arguments"):
        gpu.Batch([RLSVI(), rlsvi.LSVI()], chain)
    with pytest.raises(ValueError, match="same kind"):
        gpu.Batch([RLSVI(), RLSVI(sigma=rlsvi.InverseGamma(2, 1))], chain)
    with pytest.raises(ValueError, match="nu differ"):
        gpu.Batch([rlsvi.IncrementalRLSVI(nu=0.1), rlsvi.IncrementalRLSVI(nu=lambda episode: 0.3)], chain)
    with pytest.raises(ValueError, match="at least one"):
        gpu.Batch([], chain)
    with pytest.raises(TypeError, match="methods of its own"):
        gpu.Batch([Own()], chain)
    with pytest.raises(ValueError, match="same size"):
        gpu.Batch([RLSVI(), RLSVI()], [problems.chain(4), problems.chain(5)])
    learned = RLSVI(seed=0)
    simulate(learned, chain, 1)
    with pytest.raises(ValueError, match="start from nothing"):
        gpu.Batch([learned], chain)


def test_too_many_runs_are_refused_with_the_number_that_would_fit(monkeypatch):
    monkeypatch.setattr(card, "free_memory", lambda: 10**6)
    with pytest.raises(card.NoCard, match="such runs would fit"):
        gpu.Batch([RLSVI(seed=seed) for seed in range(100)], problems.chain(20))
    monkeypatch.setattr(compare, "cuda", lambda: None)
    played = []
    monkeypatch.setattr(gpu.Batch, "play", lambda *_, **__: played.append(1))
    agents = {"small": rlsvi.ThompsonSampling(), "large": RLSVI()}
    with pytest.raises(card.TooLittleMemory, match="such runs would fit"):
        rlsvi.compare(agents, problems.recommendation(4, 2), 5, seeds=100, device="cuda")
    assert not played


def test_runs_are_checked_before_they_play():
    code = """
import rlsvi
from rlsvi.simulate.gpu import Batch
batch = Batch([rlsvi.RLSVI(seed=seed) for seed in range(3)], rlsvi.problems.chain(4))
def refused(*arguments, **options):
    try: batch.play(*arguments, **options)
    except (ValueError, TypeError) as error: return str(error)[:20]
print([refused(lanes, 2) for lanes in ([], [0, 0], [-1], [3])], refused([0], -1))
batch.play([0], 5)
print(refused([0, 1], 2))
def stop(n): raise KeyboardInterrupt
try: batch.play([1], 40, advance=stop)
except KeyboardInterrupt: print("stopped")
print(refused([1], 1), len(batch.play([0, ], 3)[0].reward), len(batch.play([2], 3)[0].reward))
class Own(rlsvi.RLSVI):
    _fused = True
    def _mind_for(self, episodes): return super()._mind_for(min(episodes, 2))
batch = Batch([Own()], rlsvi.problems.chain(4))
print(refused([0], 3))
"""
    lanes = ["lanes must be differ"] * 4
    printed = [f"{lanes} episodes must be a w", "runs that play toget", "stopped", "a run that failed, o 3 3"]
    printed.append("Own changes after 2")
    assert simulated(code).splitlines() == printed


@pytest.mark.slow
def test_an_experiment_is_the_same_on_a_processor_and_on_a_card():
    code = """
import experiments as e
from rlsvi.study.experiment import play_together
for function in (e.regret_of, e.two_agents, e.careful, e.reads_its_agent):
    together = play_together(function, [{"length": 3, "seed": seed} for seed in range(4)])
    for seed in range(4):
        try: alone = function(length=3, seed=seed)
        except Exception as error: alone = error
        assert str(alone) == str(together[seed]), (alone, together[seed])
    print(str(together[3])[:30])
print(play_together(e.regret_of, [{"length": 3, "seed": seed} for seed in range(4)], fewest=3))
"""
    printed = simulated(code).splitlines()
    assert printed[:4] == [
        "3 is not liked",
        "an experiment lets one agent p",
        "{'failed': 1.0}",
        "{'episodes': 0.0}",
    ]
    assert printed[4].startswith("[None, {")  # seed 0 wants to go on, with one other: too few


@pytest.mark.slow
def test_a_card_that_dies_loses_no_job(tmp_path):
    code = f"""
import os, experiments
from rlsvi import Job, sweep
from rlsvi.study import executors
executors.FEWEST_TOGETHER, executors.FEWEST_LEFT = 4, 2
if __name__ == "__main__":
    made = [Job.of(experiments.dies_on_a_card, length=3, seed=seed) for seed in range(5)]
    print(sweep(made, {str(tmp_path)!r}, "gpu")["reward"].len())
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    assert simulated(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')") == "5"


def test_jobs_are_divided_between_a_card_and_the_cores(monkeypatch):
    monkeypatch.setattr(executors, "FEWEST_TOGETHER", 3)
    monkeypatch.setattr(executors, "MOST_TOGETHER", 4)
    made = [Job.of(regret_of, length=3, seed=seed) for seed in range(7)]
    made += [Job.of(regret_of, length=5, seed=0), Job("no_such_module:f", {"seed": 0})]
    queue = executors.Queue(made, card=True)
    assert [len(group) for group in queue.groups] == [4, 3]
    assert [len(queue.next(False)) for _ in range(3)] == [1, 1, 1]  # two others, then one of the last group
    assert [len(queue.next(True)) for _ in range(2)] == [4, 0]  # the group of two is left to the cores
    assert [len(queue.next(False)) for _ in range(3)] == [1, 1, 0]
