"""What a shop earns with each way to recommend, side by side; see `__main__`."""
