"""One value function for all periods, learned from the most recent transitions (appendix D of the paper)."""
