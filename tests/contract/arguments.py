"""Wrong values for every argument of every agent."""

import numpy as np

NAN, INF = float("nan"), float("inf")
NOT_POSITIVE = [0, -1, NAN, INF, "1", [1.0], {}]
NOT_COUNTS = [0, -1, 2.5, "3", NAN, True, [3]]
NOT_NUMBERS = [NAN, INF, "x", {}, object()]
NOT_PARTS = [-0.1, 1.5, NAN, "x", [0.5], {}]
FLAGS = ("pooled", "myopic", "keep_prior", "random_prior", "homogeneous")  # whatever is true is true
WRONG = {
    "lam": NOT_POSITIVE,
    "sigma": NOT_POSITIVE,
    "gamma": [*NOT_PARTS, None],
    "horizon": NOT_COUNTS,
    "seed": [-1, 1.5, "seed", object(), [-1]],
    "basis": ["table", 3, object(), lambda observation: [1.0]],
    "prior_mean": [*NOT_NUMBERS, [0.0] * 1000, np.zeros((2, 2, 2))],
    "reward_offset": [*NOT_NUMBERS, [1.0, 2.0], None],
    "explore": ["greedy", None, 3, object()],
    "nu": [-1, 2, NAN, "x", [0.1]],
    "prior_weight": [*NOT_POSITIVE, 0.01],
    "ensemble": NOT_COUNTS,
    "members": NOT_COUNTS,
    "perturb": ["noise", 3, None, ["targets"]],
    "prior_scale": [-1, NAN, "x", None, [1.0]],
    "updates": [-1, 2.5, "x", NAN],
    "memory": NOT_COUNTS,
    "form": ["other", 3, None],
    "regressions": NOT_COUNTS,
    "diverged_above": NOT_POSITIVE,
    "alike": [-0.1, 1.0, NAN, "x", None],
    "bounds": ["x", (1.0, 0.0), (NAN, 1.0), 3, (1, 2, 3)],
    "tolerance": [-1, 1, NAN, "x", None],
    "trace": [-0.1, 1.1, NAN, "x"],
    "repeat": NOT_COUNTS,
    "update_every": NOT_COUNTS,
    "noise": ["none", "pink", 3, None],
    "prior": [(0, 1), 1.0, (NAN, 1), "x", (1, 1, 1), None],
    "mdp": ["mdp", 3, object()],
    "alpha_P": [0, -1, NAN, "x", [1.0, -1.0], None],
    "alpha_R": [0, -1, NAN, "x", (1, -1), None],
    "reward_range": [(1, 0), 1, (0, NAN), "x", (0, 1, 2), None],
    "reward_noise": [-1, NAN, "x"],
    "scale": [-1, NAN, "x", None],
    "delta": [0, 1, NAN, "x", None],
    "planned": NOT_COUNTS,
    "bonus": ["x", 3, None],
    "optimism": NOT_POSITIVE,
    "sweeps": NOT_COUNTS,
    "backups": NOT_COUNTS,
}
LEARNING = [
    ({"episodes": -1}, "episodes"),
    ({"episodes": 2.5}, "episodes"),
    ({"episodes": "3"}, "episodes"),
    ({"episodes": True}, "episodes"),
    ({"episodes": NAN}, "episodes"),
    ({"episodes": [1]}, "episodes"),
    ({"steps": -1}, "steps"),
    ({"steps": 1.5}, "steps"),
    ({"steps": "3"}, "steps"),
    ({"steps": None}, "steps"),
    ({"episodes": 1, "steps": 1}, "episodes|steps"),
    ({}, "episodes|steps"),
]
ENVIRONMENTS = [None, "CartPole-v1", 3, object(), {}]
PREDICTING = [
    ({"observation": None}, "observation|feature|state|function"),
    ({"observation": "here"}, "observation|feature|state|function"),
    ({"observation": {}}, "observation|feature|state|function"),
    ({"state": -1}, "state"),
    ({"state": "first"}, "state"),
    ({"state": 1.5}, "state"),
    ({"action_mask": [1, 1]}, "action_mask"),
    ({"action_mask": [0, 0, 0]}, "action_mask"),
    ({"action_mask": "all"}, "action_mask"),
    ({"action_mask": 3}, "action_mask"),
]
