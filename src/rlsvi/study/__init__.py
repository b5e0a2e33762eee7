"""Many simulations, what is kept of them, and what they show."""
