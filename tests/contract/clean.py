"""What an agent must be after something went wrong."""

from contract.state import difference, everything


class Clean:
    """What an agent must be after an interruption: a clean run of what it claims, which can go on."""

    def __init__(self, case, folder, play):
        self.case, self.folder, self.play, self.known = case, folder, play, {}

    def _both(self, agent):
        """What it is, and what it is one episode (or step) later."""
        now = everything(agent, self.folder)
        self.play(agent, 1)
        return now, everything(agent, self.folder)

    def of(self, done):
        """All that it may be. Before its first step an agent without end may or may not have begun."""
        if done not in self.known:
            begun = self.case.make()
            self.play(begun, done)
            fresh = [self.case.make()] if done == 0 else []
            self.known[done] = [self._both(agent) for agent in (begun, *fresh)]
        return self.known[done]

    def complaint(self, agent):
        """What is wrong with an agent that was interrupted; empty if nothing is.

        Before anything is learned it counts only how it goes on: a task may or may not have been taken on.
        """
        claimed = self.case.done(agent)
        found, clean = self._both(agent), self.of(claimed)
        first = 1 if claimed == 0 else 0
        if found[first:] in [both[first:] for both in clean]:
            return ""
        words = "" if first else difference(found[0], clean[0][0])
        return f"claims {claimed}: {words or 'one later, ' + difference(found[1], clean[0][1]):.600}"
