"""Agents that learn a table of counts: posterior sampling and optimism."""
