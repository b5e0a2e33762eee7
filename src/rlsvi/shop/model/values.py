"""What the posterior says of every product: the value of showing it first, for the average customer.

The value of product a in the first slot, Q_0(a), is the expected sum of the rewards of a visit that begins with a.
Nothing is known of the visit yet but the customer; the average customer is the mean over all answers. Given the
targets of chain 0 the weights are normal, so the value is normal too, with mean base_0 + theta . u and variance

    sigma^2 (|v|^2 + |L_shared^-1 (z_a (x) (g - W_a' v))|^2)        v = L_a^-1 u[own],  g = u[1, c, h]

in the terms of `regression`. It does not depend on the setting `exploration`.

The standard deviation is the doubt about the first recommendation alone: the targets of chain 0 hold what the rest
of the visit is worth, and what is not known of that is left out. So it is too small as the doubt about the value
of the visit, and 1.96 of it to each side make no 95% interval.
"""

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.shop.model.products import ProductArrays
from rlsvi.shop.model.regression import crossing, lower_solved
from rlsvi.shop.model.sizes import Sizes


def average_row(products: ProductArrays, sizes: Sizes) -> Floats:
    """Return u = (1, c, 0) of the average customer, whose visit has just begun; c is 0 before the first answer."""
    u, answers = np.zeros(sizes.width), products.gram[:, 0, 0].sum()
    u[0] = 1.0
    if answers > 0:
        u[1 : 1 + sizes.customer] = products.gram[:, 0, 1 : 1 + sizes.customer].sum(axis=0) / answers
    return u


def first_values(products: ProductArrays, weight: Floats, L_shared: Floats, base: float, sizes: Sizes) -> Floats:
    """Return the mean of the value of every product, and its standard deviation divided by sigma: (2, N).

    weight : (e, N) of chain 0.
    """
    u, at = average_row(products, sizes), crossing(sizes)
    N, m, g = len(products.z), sizes.product, sizes.crossed
    variance, crossed = np.zeros(N), np.zeros((N, m, g))
    for a in range(N):
        v = lower_solved(products.L[a], u[: sizes.own, None])[:, 0]
        variance[a] = v @ v
        if m:
            crossed[a] = np.outer(products.z[a], u[at] - products.W[a].T @ v)
    if m:
        shared = lower_solved(L_shared, crossed.reshape(N, m * g).T)
        variance += (shared**2).sum(axis=0)
    return np.stack([base + u @ weight, np.sqrt(variance)])
