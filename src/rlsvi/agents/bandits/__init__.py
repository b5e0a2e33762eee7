"""Agents that consider only the immediate reward, and policies known beforehand (appendix E)."""
