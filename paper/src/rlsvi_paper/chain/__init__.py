"""The chain: Example 1, section 6.1 and appendix C of the paper."""
