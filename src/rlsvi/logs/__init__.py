"""Logs of transitions: how they are written, read, checked, and replayed for an agent to learn from."""
