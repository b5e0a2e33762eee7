"""First stop: an agent that learns CartPole in about 20 episodes."""

from collections.abc import Iterator
from typing import Any

from PIL import Image

from rlsvi.cli.curve import chart
from rlsvi.cli.tour.exhibit import Exhibit
from rlsvi.cli.tour.films import BESIDE, AtRandom, cart, side_by_side
from rlsvi.cli.tour.guide import Guide

TITLE = "Learn CartPole in 20 episodes"
CODE = """import gymnasium as gym, rlsvi
env = gym.make("CartPole-v1")
agent = rlsvi.agent_for(env, seed=1)
agent.learn(env, episodes=20)
print(rlsvi.evaluate(agent, env, episodes=10))"""
EPISODES, FRAMES = 20, 200


def show(guide: Guide) -> Exhibit:
    """Learn, draw the curve, and film the agent beside one that acts at random."""
    import gymnasium as gym

    import rlsvi

    env = gym.make("CartPole-v1")
    agent = rlsvi.agent_for(env, seed=1)
    returns: list[float] = []

    def told(_: Any, value: float) -> None:
        returns.append(value)
        guide.say(f"episode {len(returns):2}: the pole stood for {value:.0f} of 500 steps")

    agent.learn(env, episodes=EPISODES, on_episode=told)
    guide.say(chart(returns, width=min(EPISODES, guide.console.width - 12)))
    found = rlsvi.evaluate(agent, env, episodes=10)
    guide.say(f"Ten fresh episodes, without exploring: {found.mean:.0f} steps on average.")
    film = side_by_side(zip(_positions(AtRandom(2), env), _positions(agent, env), strict=True), 40)
    sentence = (
        f"After {EPISODES} episodes the agent that agent_for chose balances the pole for {found.mean:.0f} of 500 "
        "steps, with its default settings."
    )
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
