"""Measurements, as ratios within one run: `make bench`. One core for NumPy too, set before it is imported."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
