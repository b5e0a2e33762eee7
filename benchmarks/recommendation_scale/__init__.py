"""A study of recommendations at a shop's size; see `__main__`."""
