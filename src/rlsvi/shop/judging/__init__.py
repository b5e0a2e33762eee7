"""What a shop's recommender would earn, judged by the events of the past before it serves any customer."""

from rlsvi.shop.judging.judge import ShopValue, judge

__all__ = ["ShopValue", "judge"]
