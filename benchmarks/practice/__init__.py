"""Any Gymnasium environment: our agent at its one default beside DQN, PPO, SAC, TD3 and tabular Q-learning.

`python -m benchmarks.practice --help` tells how to run it. What is in here:

    task         an environment, its thresholds, and how long each learner may learn; the lists of them are
    chosen       those on which defaults are chosen,
    box          those whose actions are real numbers, and
    reported     those on which our agent is only reported
    worlds       small environments of our own
    evaluation   fresh episodes, the optimum and the value of a policy where they can be computed, what was earned
                 while learning, and the clocks
    blackjack    its best policy and the value of any; blackjack_floor: how well a table can know it
    ours, q_learning, rivals (with their published settings)
                 the learners, each a function of a task, a seed and a record
    results      one file for each task, learner and seed
    summary      the table of all tasks and learners, and what happened on each task
    drawing      the plots of six tasks; headline, the picture of the README
"""
