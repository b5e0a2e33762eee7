"""Environments that break their promises from a chosen reset or step on."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np


class Fault(NamedTuple):
    """What is wrong, what an error must say, and whether it may be learned from as if it were not there."""

    says: str  # a regular expression
    of_reset: Any = None  # makes another result of it
    of_step: Any = None
    harmless: bool = False
    kind: str = ""  # of observation that it is about, if it is about one
    looks: bool = False  # matters only to who looks at observations


def _nth(place, value):
    """A step whose part in this place is another."""
    return lambda taken: (*taken[:place], value(taken[place]), *taken[place + 1 :])


def _info(**changes):
    return lambda taken: (
        *taken[:-1],
        {**taken[-1], **{name: change(taken[-1]) for name, change in changes.items()}},
    )


def _fails(taken):
    raise OSError("the cable is out")


OBSERVED = "observation|feature|state|function"
RESET = {
    "reset gives no info": Fault("reset|info", lambda begun: begun[0]),
    "reset gives None for info": Fault("info", lambda begun: (begun[0], None)),
    "reset gives three things": Fault("reset|info", lambda begun: (*begun, False)),
    "reset gives None": Fault("reset", lambda begun: None),
    "reset raises": Fault("the cable is out", _fails),
}
STEP = {
    "step gives four things": Fault("step", None, lambda taken: (*taken[:2], taken[2] or taken[3], taken[4])),
    "step gives None": Fault("step", None, lambda taken: None),
    "step raises": Fault("the cable is out", None, _fails),
    "info is None": Fault("info", None, _nth(4, lambda info: None)),
    "info is a list": Fault("info", None, _nth(4, lambda info: [info])),
    "terminated is None": Fault("terminated", None, _nth(2, lambda over: None)),
    "terminated is text": Fault("terminated", None, _nth(2, lambda over: "no")),
    "terminated is of two": Fault("terminated", None, _nth(2, lambda over: np.array([over, over]))),
    "truncated is None": Fault("truncated", None, _nth(3, lambda over: None)),
    "truncated is of two": Fault("truncated", None, _nth(3, lambda over: np.array([over, over]))),
    "reward is NaN": Fault("reward", None, _nth(1, lambda reward: np.nan)),
    "reward is infinite": Fault("reward", None, _nth(1, lambda reward: -np.inf)),
    "reward is text": Fault("reward", None, _nth(1, lambda reward: "much")),
    "reward is None": Fault("reward", None, _nth(1, lambda reward: None)),
    "reward is of two": Fault("reward", None, _nth(1, lambda reward: np.array([reward, reward]))),
    "observation is None": Fault(OBSERVED, None, _nth(0, lambda seen: None), looks=True),
    "observation is text": Fault(OBSERVED, None, _nth(0, lambda seen: "here"), looks=True),
    "observation is NaN": Fault(OBSERVED, None, _nth(0, lambda seen: seen * np.nan), kind="vector", looks=True),
    "observation is longer": Fault(OBSERVED, None, _nth(0, lambda seen: np.ones(5)), looks=True),
    "observation is out of range": Fault(OBSERVED, None, _nth(0, lambda seen: 99), kind="table", looks=True),
    "observation is negative": Fault(OBSERVED, None, _nth(0, lambda seen: -1), kind="table", looks=True),
    "observation is half": Fault(OBSERVED, None, _nth(0, lambda seen: 0.5), kind="table", looks=True),
    "mask is short": Fault("mask", None, _info(action_mask=lambda info: np.ones(2, np.int8))),
    "mask allows nothing": Fault("mask", None, _info(action_mask=lambda info: np.zeros(3, np.int8))),
    "mask is text": Fault("mask", None, _info(action_mask=lambda info: "all")),
}


def _small(of_type):
    return lambda value: np.array([value], dtype=of_type)


HARMLESS = {
    "terminated is of one": Fault("terminated", None, _nth(2, _small(bool)), harmless=True),
    "truncated is of one": Fault("truncated", None, _nth(3, _small(bool)), harmless=True),
    "terminated is of NumPy": Fault("terminated", None, _nth(2, np.bool_), harmless=True),
    "terminated is a number": Fault("terminated", None, _nth(2, int), harmless=True),
    "reward is of one": Fault("reward", None, _nth(1, _small(float)), harmless=True),
    "reward is an array without shape": Fault("reward", None, _nth(1, np.array), harmless=True),
    "observation is a number of NumPy": Fault(OBSERVED, None, _nth(0, np.int64), harmless=True, kind="table"),
}
FAULTS = RESET | STEP | HARMLESS


class Misbehaving(gymnasium.Wrapper):
    """An environment with a fault in every reset, or every step, from the `at`-th on."""

    def __init__(self, env, fault, at):
        super().__init__(env)
        self.fault, self.at, self.resets, self.steps = fault, at, 0, 0

    def reset(self, **options):
        begun = self.env.reset(**options)
        self.resets += 1
        return self.fault.of_reset(begun) if self.fault.of_reset and self.resets > self.at else begun

    def step(self, action):
        taken = self.env.step(action)
        self.steps += 1
        return self.fault.of_step(taken) if self.fault.of_step and self.steps > self.at else taken


class Reusing(gymnasium.Wrapper):
    """Returns the same arrays every time, with other contents, and spoils them when the next are asked for."""

    def __init__(self, env):
        super().__init__(env)
        self.mask = np.ones(env.action_space.n, np.int8)
        self.info = {"action_mask": self.mask}
        self.seen = None

    def _same(self, observation, info):
        if self.seen is None:
            self.seen = np.array(observation)
        self.seen[...] = observation
        self.mask[...] = info.get("action_mask", 1)
        return self.seen, self.info

    def _spoil(self):
        if self.seen is not None:
            self.seen[...] = 1
            self.mask[...] = 0

    def reset(self, **options):
        self._spoil()
        return self._same(*self.env.reset(**options))

    def step(self, action):
        self._spoil()
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self._same(observation, info)
        return observation, reward, terminated, truncated, info
