"""The commands that this package adds to `rlsvi`, through entry points of the group `rlsvi.commands`."""

import rlsvi.cli  # before the files here, as it imports them by their entry points
