"""What a policy is worth, judged by a log of other policies' episodes: `value_of`."""
