"""Studies: many simulations, the storage of their results, and statistics."""
