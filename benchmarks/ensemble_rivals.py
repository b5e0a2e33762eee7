"""What EnsembleRLSVI is measured against: the same ensemble in plain NumPy, and a small bootstrapped DQN."""

import numpy as np

LAM, SIGMA = 1.0, 0.1
HIDDEN, BATCH, PRIOR_SCALE = 50, 128, 3.0


class Sea:
    """DeepSea as an environment without checks, the same for both rivals."""

    def __init__(self, mdp, size):
        self.size, table = size, mdp.table
        rows = np.arange(2 * size * size)
        self.following = table.successor[table.indptr[rows]].reshape(-1, 2).tolist()  # faster than arrays here
        self.reward = table.expected[rows].reshape(-1, 2).tolist()

    def step(self, s, a):
        """Return the reward, and the next state."""
        return self.reward[s][a], self.following[s][a]


class PlainEnsemble:
    """EnsembleRLSVI with a table in NumPy, for a sea in which nothing is random.

    It keeps the same sums: for every period h, action a and column c how often the pair was tried, the sum of its
    rewards, and ridge theta0 + the noise of every member. A pair has one successor. An episode is learned in a few
    operations on arrays, and a plan takes a few for each period. In period h only row h of the sea can be reached.
    A plan has all its columns, since a call of NumPy costs more than these elements: one that was never visited
    has the values of the member's prior draw, which are those that EnsembleRLSVI gives it.
    """

    def __init__(self, sea, members, seed=0):
        self.sea, self.rng, self.members, N = sea, np.random.default_rng(seed), members, sea.size
        self.ridge, self.periods = LAM * SIGMA**2, np.arange(N)
        self.count, self.reward = np.zeros((2, N, 2, N))  # of (h, a, c)
        self.following = np.zeros((N, 2, N), np.int64)  # the next column, N at the end
        self.noise = self.ridge / np.sqrt(LAM) * self.rng.normal(size=(N, 2, N, members))
        self.episodes = 0

    def play(self, episodes):
        """Learn so many more episodes; return their rewards."""
        return [self.episode() for _ in range(episodes)]

    def plan(self, m):
        """Return Q of a member, (h, a, c), by value iteration."""
        N, precision = self.sea.size, self.count + self.ridge
        Q, share = (self.reward + self.noise[..., m]) / precision, self.count / precision
        V = np.zeros(N + 1)
        best = V[:N]
        for now, weight, following in zip(Q[::-1], share[::-1], self.following[::-1], strict=True):
            now += weight * V.take(following)
            np.maximum(now[0], now[1], out=best)
        return Q

    def episode(self):
        """Play an episode with a member drawn uniformly, the first one at random; return its reward."""
        sea, N, s = self.sea, self.sea.size, 0
        if self.episodes:
            Q = self.plan(self.rng.integers(self.members))
            policy = (Q[:, 1] > Q[:, 0]).tolist()
        else:
            policy = self.rng.integers(2, size=(N, N)).tolist()
        columns, actions, rewards = [], [], []
        for row in policy:
            columns.append(s % N)
            actions.append(int(row[s % N]))
            reward, s = sea.step(s, actions[-1])
            rewards.append(reward)
        self.learn(columns, actions, rewards, SIGMA * self.rng.normal(size=(N, self.members)))
        return sum(rewards)

    def learn(self, columns, actions, rewards, noise):
        """Add an episode, given the noise (N, M) of its transitions for every member."""
        cells = self.periods, np.array(actions), np.array(columns)
        self.count[cells] += 1.0
        self.reward[cells] += rewards
        self.following[cells] = [*columns[1:], self.sea.size]
        self.noise[cells] += noise
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
        prior, drawn = ([torch.randn(n) * k for n, k in zip(shapes, scales, strict=True)] for _ in range(2))
        self.prior = PRIOR_SCALE * self.network(prior, torch.arange(N * N + 1))  # of all states: it never changes
        self.weights = [part.requires_grad_() for part in drawn]
        self.target = [part.detach().clone() for part in drawn]
        self.adam = torch.optim.Adam(self.weights, 1e-3, fused=True)
        self.rng, self.past = np.random.default_rng(seed), []

    def network(self, weights, states):
        """What the networks of some members say of states given by number, (members, n, 2)."""
        one, two, three = weights
        hidden = self.torch.relu(one[:, states])  # a row of the first layer is what a unit vector selects
        return self.torch.bmm(self.torch.relu(self.torch.bmm(hidden, two)), three)

    def values(self, weights, states, members=slice(None)):
        """Q of some members, by default all, (members, n, 2), at states given by number."""
        return self.network([part[members] for part in weights], states) + self.prior[members, states]

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
        """Learn so many more episodes; return their rewards."""
        torch, rng, found = self.torch, self.rng, []
        for _ in range(episodes):
            m, s, total = int(rng.integers(self.members)), 0, 0.0
            for _ in range(self.sea.size):
                with torch.no_grad():
                    a = int(self.values(self.weights, torch.tensor([s]), slice(m, m + 1)).argmax())
                reward, following = self.sea.step(s, a)
                masks = (rng.random(self.members) < 0.5).astype(np.float32)
                noise = (SIGMA * rng.normal(size=self.members)).astype(np.float32)
                self.past.append((s, a, reward, following, masks, noise))
                s, total = following, total + reward
                self.update()
            self.target = [part.detach().clone() for part in self.weights]
            found.append(total)
        return found
