"""First stop: an agent that learns CartPole in about 20 episodes."""

from collections.abc import Iterator
from typing import Any

from PIL import Image

from rlsvi.cli.tour.exhibit import Exhibit
from rlsvi.cli.tour.films import BESIDE, AtRandom, cart, side_by_side
from rlsvi.cli.tour.guide import Guide
from rlsvi.cli.train import chart

TITLE = "Learn CartPole in 20 episodes"
CODE = """import gymnasium as gym, rlsvi
env = gym.make("CartPole-v1")
agents = [rlsvi.agent_for(env, seed=seed).learn(env, episodes=20) for seed in range(5)]
returns = sorted(rlsvi.evaluate(agent, env, episodes=10).mean for agent in agents)
print("median", returns[2], "worst", returns[0])"""
EPISODES, SEEDS, FRAMES = 20, 5, 200


def show(guide: Guide) -> Exhibit:
    """Learn with several seeds, draw the curve of the first, and film the median one beside one at random."""
    import gymnasium as gym

    import rlsvi

    env = gym.make("CartPole-v1")
    curve: list[float] = []

    def told(_: Any, value: float) -> None:
        curve.append(value)
        guide.say(f"episode {len(curve):2}: the pole stood for {value:.0f} of 500 steps")

    found = []
    for seed in range(SEEDS):
        agent = rlsvi.agent_for(env, seed=seed)
        agent.learn(env, episodes=EPISODES, on_episode=None if seed else told)
        found.append((rlsvi.evaluate(agent, env, episodes=10).mean, seed, agent))
        if seed == 0:
            guide.say(chart(curve, width=min(EPISODES, guide.console.width - 12)))
        guide.say(f"Seed {seed}, ten fresh episodes without exploring: {found[-1][0]:.0f} steps on average.")
    worst, *_, (median, _, agent) = sorted(found, key=lambda it: it[:2])[: SEEDS // 2 + 1]
    film = side_by_side(zip(_positions(AtRandom(2), env), _positions(agent, env), strict=True), 40)
    sentence = (
        f"After {EPISODES} episodes the agent that agent_for chose balances the pole for {median:.0f} of 500 "
        f"steps, with its default settings: the median of {SEEDS} seeds, of which the worst has {worst[0]:.0f}."
    )
    guide.say(sentence)
    return Exhibit("cart-pole", TITLE, sentence, CODE, film, "image/gif", BESIDE)


def _positions(player: Any, env: Any) -> Iterator[Image.Image]:
    """Pictures of every other step of as many episodes as it takes."""
    from rlsvi.agents.playing import play

    seen: list[Any] = []
    seed = 100
    while len(seen) < 2 * FRAMES:
        play(player, env, seed, show=lambda: seen.append(tuple(env.unwrapped.state)))
        seed += 1
    for x, _, angle, _ in seen[: 2 * FRAMES : 2]:
        yield cart(x, angle)
