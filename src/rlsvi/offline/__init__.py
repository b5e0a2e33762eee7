"""Logs of transitions: how they are recorded and read, `fit` to one, and the value of a policy judged by one."""
