"""Digests of what Tetris and the agents of this package compute, recorded in golden.json; see tests/golden.

With the folder tests of the library on PYTHONPATH, `python paper/tests/golden_cases.py` compares all of them, and
`--record NAME ..` records some anew.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

import rlsvi
from golden import Golden
from golden.compiled import RIVER, SHOP, UNKNOWN
from golden.driving import SEED, fused, known, learned
from golden.learned import streams_of
from rlsvi.envs import FiniteMDPEnv
from rlsvi_paper import tetris
from rlsvi_paper.agents import GaussianPSRL
from rlsvi_paper.tetris import Tetris, TetrisEnv, simulate_tetris
from rlsvi_paper.tetris.basis import _desk, _look

SMALL = (8, 5, "IOSZ")


def tetris_boards(*given):
    """A case: the pieces, boards and features of games whose placements follow a fixed rule."""

    def case():
        env, found = TetrisEnv(*given), {"boards": [], "played": [], "bertsekas": [], "dellacherie": []}
        for seed in range(3):
            (seen, info), over, t = env.reset(seed=seed), False, 0
            while not over and t < 40:
                action = (17 * t + t * t // 5) % int(info["action_mask"].sum())
                for kind in ("bertsekas", "dellacherie"):
                    desk = _desk(kind, seen)
                    n, room = _look(desk, seen, len(desk.room.removed)), desk.room
                    found[kind] += [room.planes[:, :n].T.copy(), room.removed[:n], room.fatal[:n]]
                found["boards"].append(seen["board"])
                found["played"].append([seen["piece"], action, info["action_mask"].sum()])
                (seen, reward, over, _, info), t = env.step(action), t + 1
                found["played"].append([seen["piece"], int(reward), over])
        return {name: tuple(values) for name, values in found.items()}

    return case


def tetris_players():
    rules, found = tetris.rules(10, 6, "IOTSZ"), {}
    for kind, weights in ((0, [-1] * 6 + [-2] * 5 + [-3, -9, 0]), (1, [-2, 2, -3, -5, -9, -3, 1, -1, 0])):
        found[str(kind)] = tuple(tetris.play(rules, kind, np.array(weights, float), 5, 300, seed=3))[:3]
    return found


def tetris_games(make):
    """A case: an agent learns Tetris in the compiled loop."""

    def case():
        rules, agent = tetris.rules(*SMALL), make(seed=SEED)
        games = simulate_tetris(agent, rules, 6, max_pieces=30)
        found = {"games": (games.rows, games.pieces, games.over), "size": games.size, "excess": games.excess}
        return found | known(agent, TetrisEnv(*SMALL, max_pieces=30))

    return case


PLACEMENTS = {
    "tetris-literal": partial(rlsvi.StationaryRLSVI, gamma=0.9, memory=40, basis=Tetris()),
    "tetris-afterstate": partial(rlsvi.StationaryRLSVI, gamma=0.9, memory=40, form="afterstate", basis=Tetris()),
    "tetris-unknown-noise": partial(rlsvi.StationaryRLSVI, gamma=0.9, sigma=UNKNOWN, basis=Tetris("dellacherie")),
    "tetris-lsvi": partial(
        rlsvi.StationaryLSVI,
        gamma=0.9,
        memory=40,
        form="afterstate",
        basis=Tetris(),
        explore=rlsvi.Boltzmann(0.5),
    ),
}
CASES = {
    "agent-streams": lambda: {"GaussianPSRL": streams_of(GaussianPSRL(seed=SEED))},
    "gaussian-psrl-fused": fused(GaussianPSRL, RIVER),
    "gaussian-psrl-masked": learned(GaussianPSRL, partial(FiniteMDPEnv, SHOP().mdp), episodes=8),
    "tetris-players": tetris_players,
    "tetris-boards": tetris_boards(20, 10),
    "tetris-boards-mini": tetris_boards(4, 10, "SZ"),
    "tetris-boards-overflow": tetris_boards(*SMALL, "overflow"),
}
for name, make in PLACEMENTS.items():
    CASES[name] = learned(make, partial(TetrisEnv, *SMALL, max_pieces=30), episodes=3)
    CASES[f"{name}-fused"] = tetris_games(make)
PAPER = Golden(CASES, set(), Path(__file__).with_name("golden.json"))

if __name__ == "__main__":
    sys.exit(PAPER.main(sys.argv[1:]))
