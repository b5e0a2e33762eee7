"""Agents that look no further than the reward of a step, and policies known beforehand (appendix E)."""
