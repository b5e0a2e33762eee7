"""A recommender for services with many concurrent customers, late or missing answers, and saved state."""

from rlsvi.shop.recommender import Recommender

__all__ = ["Recommender"]
