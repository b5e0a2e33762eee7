"""Cases of whole numbers."""

import numpy as np

from .driving import SEED
from .learned import streams_of
from .library import TetrisEnv, bases, random, rlsvi, tetris

AGENTS = (
    *("RLSVI", "LSVI", "IncrementalRLSVI", "GradientRLSVI", "StationaryRLSVI", "StationaryLSVI", "BoundedRLSVI"),
    *("ContinualRLSVI", "ContinualLSVI", "ContextualBandit", "ThompsonSampling", "OptimalPolicy"),
    *("PSRL", "GaussianPSRL", "UCRL2", "UCBVI", "LSVIUCB", "EnsembleRLSVI"),
)


def raw_streams():
    root, found = np.random.SeedSequence(5), {}
    for name, seed in (("zero", 0), ("number", 2**40 + 7), ("sequence", root), ("spawned", root.spawn(2)[1])):
        state = random.stream(seed)
        found[f"{name}: bits"] = np.array([random.bits(state) for _ in range(500)], np.uint64)
        found[f"{name}: uniform"] = np.array([random.uniform(state) for _ in range(500)])
    random.reseed(state, np.uint64(123456789))
    found["reseeded"] = state
    found["reseeded bits"] = np.array([random.bits(state) for _ in range(99)], np.uint64)
    return found


def agent_streams():
    made = {name: getattr(rlsvi, name)(seed=SEED) for name in AGENTS}
    made["spawned"] = rlsvi.RLSVI(seed=np.random.SeedSequence(3).spawn(2)[1])
    return {name: streams_of(agent) for name, agent in made.items()}


def tetris_boards(*given):
    """A case: the pieces, boards and features of games whose placements follow a fixed rule."""

    def case():
        env, found = TetrisEnv(*given), {"boards": [], "played": [], "bertsekas": [], "dellacherie": []}
        for seed in range(3):
            (seen, info), over, t = env.reset(seed=seed), False, 0
            while not over and t < 40:
                action = (17 * t + t * t // 5) % int(info["action_mask"].sum())
                for kind in ("bertsekas", "dellacherie"):
                    found[kind] += bases.Tetris(kind).afterstates(seen)
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


WHOLE = {
    "raw-streams": raw_streams,
    "agent-streams": agent_streams,
    "tetris-players": tetris_players,
    "tetris-boards": tetris_boards(20, 10),
    "tetris-boards-mini": tetris_boards(4, 10, "SZ"),
    "tetris-boards-overflow": tetris_boards(8, 5, "IOSZ", "overflow"),
}
