"""Any Gymnasium environment: our agent at its one default beside DQN, PPO and tabular Q-learning.

`python -m benchmarks.practice --help` tells how to run it. What is in here:

    task         an environment, its thresholds, and how long each learner may learn; the lists of them are
    chosen       those on which defaults are chosen, and
    reported     those on which they are only reported
    worlds       small environments of our own
    evaluation   fresh episodes, the optimum and the value of a policy where they can be computed, and the clocks
    blackjack    its best policy and the value of any; blackjack_floor: how well a table can know it
    ours, q_learning, rivals (with their published settings)
                 the learners, each a function of a task, a seed and a record
    results      one file for each task, learner and seed
    overview     our agent on both lists, in two tables, and what happened on each task
    summary      the tables of all learners; drawing, the curves; headline, the picture of the README
"""
