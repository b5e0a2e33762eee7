"""The recommender of a shop, as far as the contract applies: its calls are all or nothing, its files resume."""

from rlsvi.shop import Recommender


class Shop:
    """Looks like a case of an agent to the tests of files."""

    name = agent = "Recommender"

    def make(self, **changes):
        return Recommender(4, 2, **{"seed": 7, "every": "later", "remember": 3, **changes})

    def calls(self, first=0):
        """A list of calls as (name, arguments), among them answers late and missing, and samples."""
        found = []
        for i in range(first, first + 4):
            found += [("recommend", (i, [1, 0, 0, -1] if i % 2 else None)), ("answer", (i, i % 3 == 0))]
            found += [("recommend", (i,))]
            found += [("close", (i,))] if i % 2 else []
            found += [("learn", ())] if i % 3 == 2 else []
        return [*found, ("offer", ([0, 1, 2],)), ("recommend", (first + 9,))]

    def call(self, shop, name, arguments):
        """Make one call; an answer is to the first product that was recommended and not answered."""
        if name == "answer":
            customer, liked = arguments
            shop.feedback(customer, self.shown[customer], liked)
        elif name == "recommend":
            self.shown[arguments[0]] = shop.recommend(*arguments)
        else:
            getattr(shop, name)(*arguments)

    def play(self, shop, calls):
        """Make all calls."""
        self.shown = {}
        for name, arguments in calls:
            self.call(shop, name, arguments)
        return shop

    def learned(self, amount=4):
        return self.play(self.make(), self.calls())

    def load(self, path):
        return Recommender.load(path)

    def go_on(self, shop):
        self.play(shop, self.calls(100))
