"""Any Gymnasium environment: our agent at its one default beside DQN, PPO and tabular Q-learning.

`python -m benchmarks.practice --help` tells how to run it. What is in here:

    tasks        the environments, their thresholds, and how long each learner may learn
    exact        the optimum and the value of a policy, where they can be computed; blackjack has its own
    evaluation   100 fresh episodes, played in lockstep
    ours, q_learning, rivals (with the published settings in zoo)
                 the learners, each a function of a task, a seed and a record
    record       what is measured at a point of training, and the clocks
    results      one file for each task, learner and seed
    summary      the tables; drawing, the curves
"""
