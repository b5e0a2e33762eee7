"""Many simulations and what they show."""
