"""Algorithms for a known number of periods: RLSVI, LSVI, incremental and gradient RLSVI."""
