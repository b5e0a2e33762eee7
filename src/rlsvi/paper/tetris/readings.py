"""Readings of section 6.2 on Tetris, each with new seeds, as docs/preregistration.md fixes them.

A reading says how RLSVI and LSVI learn; LSVI has several schedules. Some runs are used by two readings.
"""

from rlsvi.simulate.tetris_runs import Player

GAMES, WINDOW = 500, 250  # the level of a run is its mean after the first 250 games
FIRST_SEED, RLSVI_RUNS, LSVI_RUNS = 1000, 240, 100
SCHEDULES = ((0.1, 0.95), (0.1, 0.98), (1.0, 0.95))  # epsilon, decay
PRINTED, PATIENT, ENDLESS = "as printed", "γ = .999", "γ = 1"

# What differs from the text as printed. A posterior mean is evaluated beside games that are learned from.
SETTINGS = {
    PRINTED: {"evaluate_from": WINDOW},
    "γ = .995": {"gamma": 0.995},
    PATIENT: {"gamma": 0.999, "evaluate_from": WINDOW},
    ENDLESS: {"gamma": 1.0},
    "prior drawn first": {"gamma": 1.0, "prior_first": True},
    "top row first": {"early": True},
    "few actions": {"few": True},
    "afterstate, raw": {"known": True},
    "floor": {"floor": 0.0},
}
SAME_LSVI = {"prior drawn first": ENDLESS}  # LSVI draws nothing


def players(setting: str, rlsvi: int = RLSVI_RUNS, lsvi: int = LSVI_RUNS) -> list[Player]:
    """Return the runs of a setting: so many of RLSVI, and of LSVI with each schedule."""
    changes = SETTINGS[setting]
    found = [Player(FIRST_SEED + i, **changes) for i in range(rlsvi)]
    if setting not in SAME_LSVI:
        found += [
            Player(FIRST_SEED + i, sigma=0.0, epsilon=epsilon, decay=decay, **changes)
            for epsilon, decay in SCHEDULES
            for i in range(lsvi)
        ]
    return found
