"""The problems as Gymnasium environments, which `import rlsvi` registers under the namespace `rlsvi/`.

    import gymnasium as gym
    import rlsvi

    env = gym.make("rlsvi/DeepSea-v0", size=10)

`gym.make("rlsvi:rlsvi/DeepSea-v0")` imports rlsvi by itself. One of the two is needed, because Gymnasium 1.0 and
later register no environments of installed packages on their own. `gym.register_envs(rlsvi)` does nothing more,
but tells linters that the import is used.

The classes are imported on first use, so that registering them is cheap.
"""

from typing import TYPE_CHECKING

from rlsvi._lazy import lazy_exports

if TYPE_CHECKING:
    from rlsvi.envs.discretized import Discretized
    from rlsvi.envs.finite import ChainEnv, DeepSeaEnv, FiniteMDPEnv, RiverSwimEnv
    from rlsvi.envs.recommendation import RecommendationEnv
    from rlsvi.envs.spaces import Spaces
    from rlsvi.envs.swing_up import SwingUpEnv


IDS = {
    "rlsvi/Chain-v0": "rlsvi.envs.finite:ChainEnv",
    "rlsvi/DeepSea-v0": "rlsvi.envs.finite:DeepSeaEnv",
    "rlsvi/Recommendation-v0": "rlsvi.envs.recommendation:RecommendationEnv",
    "rlsvi/RiverSwim-v0": "rlsvi.envs.finite:RiverSwimEnv",
    "rlsvi/SwingUp-v0": "rlsvi.envs.swing_up:SwingUpEnv",
}

__getattr__, __dir__, __all__ = lazy_exports(__name__)
__all__ += ["register"]


def register() -> None:
    """Register the environments with Gymnasium, skipping those already registered.

    `import rlsvi` does this. Call it if you have cleared Gymnasium's registry.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> rlsvi.envs.register()
    >>> "rlsvi/Chain-v0" in gymnasium.registry
    True
    """
    import gymnasium

    for name, entry_point in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=entry_point)
