"""The steps of the proofs of section 5 and appendix G that are computed, as claims, in the order of the paper."""

from rlsvi.paper import lemma_appendix as appendix
from rlsvi.paper import lemma_proofs as proofs
from rlsvi.paper import lemma_regions as regions
from rlsvi.paper.claim import Claim, computed

FIVE, G = "section 5", "appendix G"
STEPS = [
    Claim(
        "The posterior of a table is diagonal, sigma^2 / (n + lambda sigma^2), its mean n (..) / (n + lambda "
        "sigma^2)",
        FIVE,
        "a regression agrees to 1e-12",
        computed(proofs.closed_form),
    ),
    Claim(
        "The empirical mean reward is at least the posterior mean",
        FIVE,
        "for all data of at most 30 visits",
        computed(proofs.empirical_above_posterior),
    ),
    Claim(
        "E[Q* | data] = R-bar + P-bar'V* <= n (R-hat + P-hat'V*) / (n + lambda sigma^2)",
        FIVE,
        "for random data and next values V* <= 0, as the prior has them",
        computed(proofs.inductive_step),
    ),
    Claim(
        "Delta_conc vanishes as the estimates of RLSVI concentrate",
        FIVE,
        "for data of one MDP, a hundred times as many leave at most a fifth of its mean size, twice",
        computed(proofs.vanishing),
    ),
    Claim(
        "The concentration error is the sum of b^R, b^P and w over the way, and E[V^mu | data] = R-bar + "
        "P-bar'V^mu",
        FIVE,
        "the first agrees to 1e-12 in means, the second with sampled MDPs within 4.5 standard errors",
        computed(proofs.concentration),
    ),
    Claim(
        "b^R and b^P are optimistic bias terms",
        FIVE,
        "not negative for all data of at most 30 visits and next values of either sign",
        computed(proofs.biases_are_optimistic),
    ),
    Claim(
        "Up to O~ b^R is alpha_1^R / (n + 1'alpha^P) and b^P is H 1'alpha^P / (n + 1'alpha^P)",
        FIVE,
        "the largest ratio for any n does not double from H = 5 to 20",
        computed(proofs.biases_are_small),
    ),
    Claim(
        "Up to O~ the noise w is H / sqrt(n + H^2 1'alpha^R + 1'alpha^P)",
        FIVE,
        "its standard deviation is at most sqrt(2) times that, for any n, at three sizes",
        computed(proofs.noise_is_small),
    ),
    Claim(
        "alpha'1 >= 2 can only be violated twice for each (s, a, h)",
        FIVE,
        "the posterior's sum is below 2 before at most two visits, whatever the prior's",
        computed(proofs.violated_twice),
    ),
    Claim(
        "Four conditions are equivalent to stochastic optimism, and to -Y dominating -X in the second order",
        "section 5 and appendix G",
        "they agree for all of some pairs of discrete variables",
        computed(appendix.equivalences),
    ),
    Claim(
        "For independent Gammas E[g_1 | g_1 + g_2] = k_1 / (k_1 + k_2) (g_1 + g_2)",
        G,
        "quadrature agrees to 1e-12",
        computed(appendix.gammas),
    ),
    Claim(
        "The coupling of Gammas by alpha^0 and alpha^1 gives E[y~ | y] = E[y]",
        G,
        "its line after (a) is an identity",
        computed(appendix.coupling),
    ),
    Claim(
        "For any alpha, beta > 0 the normal single crossing dominates the Beta",
        G,
        "the CDFs cross once for alpha = beta, however small",
        computed(appendix.any_weights),
    ),
    Claim(
        "For CDFs that cross at most once it is enough that the densities cross at most twice",
        G,
        "so it is for weights from .02 to 9",
        computed(appendix.two_crossings_suffice),
    ),
    Claim(
        "The cases of the proof piece together to all alpha, beta > 0 with alpha + beta >= 1",
        G,
        "every pair of a grid belongs to one",
        computed(appendix.cases_cover),
    ),
    Claim(
        "For alpha > 1, beta <= 1, g = l_N' - l_B' has no root",
        G,
        "g is below 0 on a grid of alpha, beta and x",
        computed(regions.special_case),
    ),
    Claim(
        "There g(x_K) = .. = -A^2/C - 2 A^(3/2) C^(-1/2) - 2 A - A/C <= 0",
        G,
        "the lines agree, up to a positive factor, and are not positive on a grid of A and C",
        computed(regions.special_maximum),
    ),
    Claim(
        "For (alpha - 1)(beta - 1) >= 1/9, alpha, beta > 1, h = l_N'' - l_B'' has no root",
        G,
        "h is not negative at its minimum on the border of the region, and the closed form of it right",
        computed(regions.convex_case),
    ),
    Claim(
        "In the final region B(alpha, beta) <= 1 / alpha, and l_B >= l~_B",
        G,
        "on a grid of the region",
        computed(regions.beta_function),
    ),
    Claim(
        "In the final region x_1 < x_2, and h > 0 outside of [x_1, x_2]",
        G,
        "on a grid of the region and of x",
        computed(regions.outside),
    ),
    Claim(
        "df_1/dB <= 0, by a chain of inequalities",
        G,
        "each of them holds on a grid of the final region",
        computed(regions.falls_1),
    ),
    Claim(
        "df_2/dB <= 0, as it falls in A and is not positive at A = 0",
        G,
        "its form, its fall and its bound hold on a grid of the final region",
        computed(regions.falls_2),
    ),
    Claim(
        "f_1 and f_2 are least at the largest possible B = 1 / (9 A)",
        G,
        "that is in the final region for every A of it",
        computed(regions.least_on_the_border),
    ),
    Claim(
        "For A >= 1/3, g_i >= g~_i and g~_i increases",
        G,
        "the steps, the derivatives and their signs hold on a grid",
        computed(regions.lower_bounds),
    ),
    Claim(
        "In the final region the bounds g~_i(1/3) are above .01, and the Beta's density is above the normal's "
        "where it must be",
        G,
        "f_1 and f_2 are positive on a grid of the region",
        computed(regions.final_region),
    ),
]
