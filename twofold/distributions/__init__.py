"""Probability distributions under the names of ``torch.distributions``.

Densities, distribution functions and entropies are composed of public operations, so they are differentiated and fused
like anything else. Samples come from the default generator; ``docs/random.md`` says how its stream counts.
"""

from twofold.distributions import constraints, kl, transforms
from twofold.distributions.bernoulli import (
    Bernoulli,
    Binomial,
    ContinuousBernoulli,
    Geometric,
    NegativeBinomial,
    Poisson,
)
from twofold.distributions.categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from twofold.distributions.combined import Independent, MixtureSameFamily, TransformedDistribution
from twofold.distributions.constraint_registry import biject_to, transform_to
from twofold.distributions.distribution import Distribution, ExponentialFamily
from twofold.distributions.divergence import kl_divergence, register_kl
from twofold.distributions.gamma import (
    Beta,
    Chi2,
    Dirichlet,
    Exponential,
    FisherSnedecor,
    Gamma,
    InverseGamma,
    StudentT,
)
from twofold.distributions.location_scale import Cauchy, Gumbel, HalfCauchy, Laplace, Uniform
from twofold.distributions.matrices import LKJCholesky, Wishart
from twofold.distributions.multivariate import LowRankMultivariateNormal, MultivariateNormal
from twofold.distributions.normal import HalfNormal, LogNormal, Normal
from twofold.distributions.powers import GeneralizedPareto, Kumaraswamy, Pareto, Weibull
from twofold.distributions.relaxed import (
    LogisticNormal,
    LogitRelaxedBernoulli,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from twofold.distributions.transforms import *  # noqa: F403
from twofold.distributions.von_mises import VonMises
from twofold.lazy import other_files as _other_files
from twofold.tracebacks import guard_namespace as _guard_namespace

__all__ = [name for name, value in globals().items() if not name.startswith("_") and name != "kl"]

_guard_namespace(globals())

_FILES = {
    "beta": "Beta",
    "binomial": "Binomial",
    "cauchy": "Cauchy",
    "chi2": "Chi2",
    "continuous_bernoulli": "ContinuousBernoulli",
    "dirichlet": "Dirichlet",
    "exp_family": "ExponentialFamily",
    "exponential": "Exponential",
    "fishersnedecor": "FisherSnedecor",
    "generalized_pareto": "GeneralizedPareto",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "inverse_gamma": "InverseGamma",
    "kumaraswamy": "Kumaraswamy",
    "laplace": "Laplace",
    "lkj_cholesky": "LKJCholesky",
    "log_normal": "LogNormal",
    "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial",
    "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "pareto": "Pareto",
    "poisson": "Poisson",
    "relaxed_bernoulli": "LogitRelaxedBernoulli RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "studentT": "StudentT",
    "transformed_distribution": "TransformedDistribution",
    "uniform": "Uniform",
    "weibull": "Weibull",
    "wishart": "Wishart",
}
_FILES["multivariate_normal"] += " " + " ".join(
    f"{name}=twofold.distributions.multivariate:{own}"
    for name, own in {
        "_batch_mahalanobis": "squared_distance",
        "_batch_mv": "apply_matrix",
        "_precision_to_scale_tril": "factor_of_inverse",
    }.items()
)
_other_files(__name__, {file: f"{names} Distribution constraints" for file, names in _FILES.items()})
