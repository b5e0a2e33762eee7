"""A script that sweeps on two processes: python sweeper.py STORE LOG JOBS SECONDS."""

import sys


def jobs_of(log, count, seconds):
    import jobs
    from rlsvi.study.job import Job

    return [Job.of(jobs.noted, log=str(log), i=i, seconds=float(seconds)) for i in range(int(count))]


def main(folder, log, count, seconds):
    from rlsvi.study.executors import processes
    from rlsvi.study.sweep import sweep

    sweep(jobs_of(log, count, seconds), folder, processes(2))


if __name__ == "__main__":
    main(*sys.argv[1:])
