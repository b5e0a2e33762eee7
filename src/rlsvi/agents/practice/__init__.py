"""The agent for practice: discounted RLSVI with bounded targets and defaults that need no tuning."""
