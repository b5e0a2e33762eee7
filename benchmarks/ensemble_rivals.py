"""What EnsembleRLSVI is measured against: the same ensemble in plain NumPy, and a small bootstrapped DQN."""

import numpy as np

LAM, SIGMA = 1.0, 0.1
HIDDEN, BATCH, PRIOR_SCALE = 50, 128, 3.0


class Sea:
    """DeepSea as an environment without checks, the same for both rivals."""

    def __init__(self, mdp, size):
        self.size, table = size, mdp.table
        rows = np.arange(2 * size * size)
        self.following = table.successor[table.indptr[rows]].reshape(-1, 2)
        self.reward = table.expected[rows].reshape(-1, 2)

    def step(self, s, a):
        """Return the reward, and the next state."""
        return self.reward[s, a], self.following[s, a]


class PlainEnsemble:
    """EnsembleRLSVI with a table in NumPy: all transitions are kept, and the regression of a member is redone."""

    def __init__(self, sea, members, room, seed=0):
        self.sea, self.rng, self.members, N = sea, np.random.default_rng(seed), members, sea.size
        self.start = self.rng.normal(size=(members, N, N * N * 2)) / np.sqrt(LAM)  # theta0
        self.cells, self.following = np.zeros((2, room, N), np.int64)  # of all episodes, with room for more
        self.rewards, self.noise = np.zeros((room, N)), np.zeros((room, N, members))
        self.episodes = 0

    def play(self, episodes):
        """Learn so many more episodes."""
        for _ in range(episodes):
            self.episode()

    def plan(self, m):
        """Value iteration for one member, over all its perturbed transitions."""
        N, n, ridge = self.sea.size, self.episodes, LAM * SIGMA**2
        targets, V, Q = self.rewards[:n] + self.noise[:n, :, m], np.zeros(N * N + 1), np.zeros((N, N * N, 2))
        for h in reversed(range(N)):
            cells, b = self.cells[:n, h], targets[:, h] + V[self.following[:n, h]]
            sums = np.bincount(cells, b, N * N * 2) + ridge * self.start[m, h]
            Q[h] = (sums / (np.bincount(cells, minlength=N * N * 2) + ridge)).reshape(-1, 2)
            V[:-1] = Q[h].max(axis=1)
        return Q

    def episode(self):
        """Play an episode with a member, and draw noise for all."""
        N, i, s = self.sea.size, self.episodes, 0
        Q = self.plan(self.rng.integers(self.members)) if i else np.zeros((N, N * N, 2))
        for h in range(N):
            best = np.flatnonzero(Q[h, s] == Q[h, s].max())
            a = int(best[0]) if len(best) == 1 else int(self.rng.choice(best))
            self.cells[i, h] = 2 * s + a
            self.rewards[i, h], s = self.sea.step(s, a)
            self.following[i, h] = s
        self.noise[i] = SIGMA * self.rng.normal(size=(N, self.members))
        self.episodes += 1


class BootstrappedDQN:
    """Bootstrapped DQN with randomized priors: M networks side by side, and a step of Adam for each step."""

    def __init__(self, sea, members, seed=0):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.torch, self.sea, self.members, N = torch, sea, members, sea.size
        shapes = (members, N * N + 1, HIDDEN), (members, HIDDEN, HIDDEN), (members, HIDDEN, 2)
        scales = 1.0, HIDDEN**-0.5, HIDDEN**-0.5  # an input has a single 1
        self.prior, drawn = ([torch.randn(n) * k for n, k in zip(shapes, scales, strict=True)] for _ in range(2))
        self.weights = [part.requires_grad_() for part in drawn]
        self.target = [part.detach().clone() for part in drawn]
        self.adam = torch.optim.Adam(self.weights, 1e-3)
        self.rng, self.past = np.random.default_rng(seed), []

    def values(self, weights, states):
        """Q of every member, (M, n, 2), at states given by number."""
        found = []
        for one, two, three in (weights, self.prior):
            hidden = self.torch.relu(one[:, states])  # a row of the first layer is what a unit vector selects
            found.append(self.torch.bmm(self.torch.relu(self.torch.bmm(hidden, two)), three))
        return found[0] + PRIOR_SCALE * found[1]

    def update(self):
        """A step of Adam on a batch, in which every member has its own half of the data and noise in rewards."""
        torch = self.torch
        batch = [self.past[i] for i in self.rng.integers(len(self.past), size=BATCH)]
        s, a, r, following, masks, noise = zip(*batch, strict=True)
        with torch.no_grad():
            best = self.values(self.target, torch.tensor(following)).max(dim=2).values
            ends = torch.tensor(following) == self.sea.size**2
            b = torch.tensor(r, dtype=torch.float32) + torch.tensor(np.array(noise).T) + best * ~ends
        chosen = self.values(self.weights, torch.tensor(s))[:, torch.arange(BATCH), torch.tensor(a)]
        loss = (torch.tensor(np.array(masks).T) * (chosen - b) ** 2).mean(dim=1).sum()
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()

    def play(self, episodes):
        """Learn so many more episodes."""
        torch, rng = self.torch, self.rng
        for _ in range(episodes):
            m, s = int(rng.integers(self.members)), 0
            for _ in range(self.sea.size):
                with torch.no_grad():
                    a = int(self.values(self.weights, torch.tensor([s]))[m, 0].argmax())
                reward, following = self.sea.step(s, a)
                masks = (rng.random(self.members) < 0.5).astype(np.float32)
                noise = (SIGMA * rng.normal(size=self.members)).astype(np.float32)
                self.past.append((s, a, float(reward), int(following), masks, noise))
                s = following
                self.update()
            self.target = [part.detach().clone() for part in self.weights]
