"""Any Gymnasium environment: our agent at its one default beside DQN, PPO and tabular Q-learning.

`python -m benchmarks.practice --help` tells how to run it. What is in here:

    task, tasks  the environments, their thresholds, and how long each learner may learn:
    chosen       those on which defaults are chosen, and
    reported     those on which they are only reported
    worlds, variants
                 small environments of our own
    random_play  what random play brings
    exact        the optimum and the value of a policy, where they can be computed; blackjack has its own
    evaluation   100 fresh episodes, played in lockstep
    ours, q_learning, rivals (with the published settings in zoo)
                 the learners, each a function of a task, a seed and a record
    record       what is measured at a point of training, and the clocks
    results      one file for each task, learner and seed
    overview     our agent on both lists, in two tables, and what happened on each task
    summary      the tables of all learners; drawing, the curves
"""
