"""Randomized least-squares value iteration: deep exploration with few episodes."""

__version__ = "0.1.0"
