"""The agent for practical use: discounted RLSVI with bounded targets and defaults that need no tuning."""
