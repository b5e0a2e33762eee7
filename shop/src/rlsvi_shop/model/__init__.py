"""The model of a shop: its posterior, samples of it, and how they choose the next product."""
