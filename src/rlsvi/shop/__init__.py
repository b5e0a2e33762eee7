"""Recommendations at a shop's size: many customers open at once, answers late or never, saved and loaded."""

from rlsvi.shop.recommender import Recommender

__all__ = ["Recommender"]
