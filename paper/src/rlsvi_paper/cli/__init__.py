"""The commands that this package adds to `rlsvi`, through entry points of the group `rlsvi.commands`."""
