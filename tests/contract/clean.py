"""What an agent must be after something went wrong."""

from contract.state import difference, everything


class Clean:
    """What an agent must be after an interruption: a clean run of what it claims, which can go on."""

    def __init__(self, case, folder, play):
        self.case, self.folder, self.play, self.known = case, folder, play, {}

    def _both(self, agent):
        """What it is, and what it is one episode (or step) later."""
        return everything(agent, self.folder), self._later(agent)

    def _later(self, agent):
        self.play(agent, 1)
        return everything(agent, self.folder)

    def of(self, done):
        """All that it may be. Before its first step an agent without end may or may not have begun."""
        if done not in self.known:
            begun = self.case.make()
            self.play(begun, done)
            fresh = [self.case.make()] if done == 0 else []
            self.known[done] = [self._both(agent) for agent in (begun, *fresh)]
        return self.known[done]

    def complaint(self, agent, goes_on=True):
        """What is wrong with an agent that was interrupted; empty if nothing is.

        Before anything is learned it counts only how it goes on: a task may or may not have been taken on. Later
        an agent that is what it claims may be taken to go on as it should: not `goes_on`.
        """
        claimed = self.case.done(agent)
        clean = self.of(claimed)
        if claimed and (words := difference(everything(agent, self.folder), clean[0][0])):
            return f"claims {claimed}: {words:.600}"
        if claimed and not goes_on:
            return ""
        found = self._later(agent)
        if any(found == later for _, later in clean):
            return ""
        return f"claims {claimed}: one later, {difference(found, clean[0][1]):.600}"
