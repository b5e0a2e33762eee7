"""The behaviour suite (Osband et al. 2020): one agent, at one setting, in small experiments of one ability each.

The experiments, their environments, settings and scores are those of the package bsuite, an optional extra:
`pip install . "./paper[bsuite]"`. `rlsvi bsuite` runs them.
"""
