"""Lemmas, theorem and conjecture: section 5, appendices B and G of the paper."""
