"""A script that sweeps on a Ray cluster: python cluster.py STORE [JOINED].

It starts the cluster itself. While that runs, the same script joins it by its address and fills the store JOINED.
Prints where the cluster listens.
"""

import os
import subprocess
import sys


def jobs_of():
    import jobs
    from rlsvi.study.job import Job

    cases = [(4, None), (6, 3), (5, 4)]
    return [
        Job.of(jobs.learn, length=length, features=features, seed=seed, episodes=40)
        for length, features in cases
        for seed in range(4)
    ]


def main(folder, joined=None):
    from rlsvi.study.executors import executor
    from rlsvi.study.sweep import sweep

    looked = []

    def look(job, fresh):
        if joined is not None and not looked:
            looked.append(job)
            look_around(joined)

    address = os.environ.get("RLSVI_TEST_ADDRESS")
    sweep(jobs_of(), folder, executor("ray", None if address else 2, address), advance=look)


def look_around(joined):
    import ray

    from watch import MARK, listening, marked

    print(*listening(marked(os.environ[MARK])))
    address = ray.get_runtime_context().gcs_address
    loopback = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # or Ray takes 127.0.0.1 for the machine's own address
    variables = {**os.environ, "RLSVI_TEST_ADDRESS": address, **loopback}
    subprocess.run([sys.executable, __file__, joined], env=variables, timeout=180, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
