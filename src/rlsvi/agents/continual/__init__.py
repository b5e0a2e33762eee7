"""Agents for problems that never end (appendix F of the paper)."""
