"""Write the files of a small shop, as the version in use writes them: `python made_by.py FOLDER`."""

import sys

from rlsvi_shop import Recommender, ShopSettings
from rlsvi_shop.follower import Follower

settings = ShopSettings(
    database=f"sqlite:///{sys.argv[1]}/shop.db",
    slots=3,
    product={"price": {"low": 0, "high": 10}},
    learning={"draws": 2, "history": 4},
)
with Recommender(settings) as shop:
    for price, product in enumerate(("tea", "coffee", "cocoa", "juice", "water"), 2):
        shop.add(product, {"price": price})
    for visit in range(12):
        for _ in range(3):
            product = shop.recommend(f"visit {visit}")
            shop.feedback(f"visit {visit}", product, float(product == "tea"))
    shop.remove("water")
    shop.recommend("open", among=["cocoa"])
with Follower(settings) as follower:
    follower.step()
    follower.save()
