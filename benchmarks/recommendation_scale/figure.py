"""The study as a figure: its sizes, and claims of ours in the words of section 6.3."""

from benchmarks.recommendation_scale import claims
from benchmarks.recommendation_scale.drawing import draw
from benchmarks.recommendation_scale.plan import jobs
from rlsvi.paper.claim import claims_in
from rlsvi.paper.figure import Figure

FIGURE = Figure(
    name="recsys-scale",
    title="Recommendations at a shop's size",
    where="section 6.3, at a shop's size",
    caption=(
        "Above: likes to be expected of a customer in shops of hundreds of products, with γ drawn from N(0, 4) "
        "and β = 0 as in the paper; mean and standard error over instances, with the myopic policy that knows "
        "the truth and random play as references. Below: what each saving keeps of the likes gained over random"
        " play, what is left if customers overlap and answers are late or lost, and how λ was chosen (ringed), "
        "with 95% intervals."
    ),
    sizes={
        "quick": {
            "sizes": [
                [20, 5, 200, None, 1e4, 1e4, 1e4],
                [40, 8, 300, None, 1e4, 1e4, 1e4],
                [100, 10, 300, 32, 1e4, 1e5, 1e4],
            ],
            "prior": [[20, 5, 200], [40, 8, 200], [100, 10, 200]],
            "default": [[10, 5, 300, [0.2, 1e4]], [20, 5, 200, [1e4]]],
            "exact": [[16, 4, 200], [24, 5, 200]],
            "large": [100, 10, 200],
            "crowd": [20, 5, 400],
            "seeds": 5,
        },
        "paper": {
            "sizes": [
                [50, 8, 2000, None, 1e4, 1e3, 1e4],
                [200, 10, 2000, None, 1e4, 1e4, 1e4],
                [500, 20, 2000, 64, 1e4, 1e5, 1e4],
            ],
            "prior": [[50, 8, 500], [200, 10, 1000], [500, 20, 300]],
            "default": [[10, 5, 1200, [0.2, 1e1, 1e2, 1e3, 1e4]], [200, 10, 1000, [1e4]]],
            "exact": [[40, 8, 600], [80, 8, 500]],
            "large": [500, 20, 500],
            "crowd": [50, 8, 1000],
            "seeds": 8,
        },
    },
    jobs=jobs,
    claims=claims_in(claims),
    draw=draw,
)
