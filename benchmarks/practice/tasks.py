"""All tasks by name: those on which defaults are chosen, and those on which they are only reported."""

from benchmarks.practice.chosen import CHOSEN
from benchmarks.practice.reported import REPORTED

TASKS = CHOSEN | REPORTED
