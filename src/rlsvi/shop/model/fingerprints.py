"""The settings that what was learned depends on, as values of JSON: with others, it is learned anew."""

from typing import Any

from rlsvi.shop.settings import ShopSettings


def schema(settings: ShopSettings) -> list[Any]:
    """Return the features of customers and of products, in order: they give the weights their meaning."""
    whole = settings.model_dump(mode="json")
    return [[[name, feature] for name, feature in whole[part].items()] for part in ("customer", "product")]


def fingerprint(settings: ShopSettings) -> dict[str, Any]:
    """Return all settings that a learner cannot change: they give its arrays their meaning."""
    whole = settings.model_dump(mode="json")
    fixed = {"slots": settings.slots, "ids": settings.ids, "features": schema(settings), "reward": whole["reward"]}
    return {**fixed, **{name: whole["learning"][name] for name in ("draws", "history")}}
