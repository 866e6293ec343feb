"""A model -> the joint distribution: constant, marginals, conditionals, moments, draws.

Everything here works on `ConditionalGaussian` with column positions and level codes; names, tables
and frames are the business of the rooms below.
"""

from mixedgm.joint.conditioning import KnownColumns, among
from mixedgm.joint.exact import Expectations, expectations, log_density, log_partition
from mixedgm.joint.field import integrate_out
from mixedgm.joint.marginals import (
    Columns,
    Estimate,
    Marginal,
    entropy,
    marginal,
    mutual_information,
)
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.posteriors import (
    Posterior,
    log_density_of,
    log_marginal,
    posterior,
    posterior_draw,
)
from mixedgm.joint.sampled import Draw, SamplingEffort, draw, sampled_expectations, sampled_margins
from mixedgm.joint.validity import Repair, repaired

__all__ = [
    "LIMIT",
    "Columns",
    "Draw",
    "SamplingEffort",
    "Estimate",
    "Expectations",
    "KnownColumns",
    "Marginal",
    "Posterior",
    "Repair",
    "among",
    "draw",
    "entropy",
    "expectations",
    "integrate_out",
    "log_density",
    "log_density_of",
    "log_marginal",
    "log_partition",
    "marginal",
    "mutual_information",
    "posterior",
    "posterior_draw",
    "repaired",
    "sampled_expectations",
    "sampled_margins",
]
