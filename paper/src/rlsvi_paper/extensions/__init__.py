"""Incremental and continual RLSVI: appendix F of the paper."""
