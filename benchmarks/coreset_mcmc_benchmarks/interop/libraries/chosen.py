"""Which models of the catalogue are fitted: of all kinds, identified, so that means can be compared.

Left out are what is refused, what has no parameter, and mixtures or networks whose labels may be exchanged.
"""

from __future__ import annotations

from coreset_mcmc_benchmarks.interop.catalogue.command import ENTRIES, named
from coreset_mcmc_benchmarks.interop.catalogue.entry import Entry

NAMES = (
    "NumPyro gallery: logistic", "NumPyro gallery: lung", "NumPyro gallery: fishing", "NumPyro gallery: mixture",
    "NumPyro gallery: baseball", "NumPyro NegativeBinomial", "NumPyro Weibull", "NumPyro VonMises",
    "NumPyro groups, not centred", "NumPyro vectors with an LKJ prior", "NumPyro slopes with an LKJ prior",
    "NumPyro horseshoe",
    "PyMC gallery: radon", "PyMC gallery: robust", "PyMC gallery: mixture", "PyMC SkewNormal", "PyMC OrderedLogistic",
    "PyMC MvNormal", "PyMC Censored, Weibull", "PyMC Truncated, normal", "PyMC slopes with an LKJ prior",
    "Bambi gallery: election", "Bambi gallery: sleepstudy", "Bambi family gamma", "Bambi family cumulative",
    "Bambi family hurdle_lognormal", "Bambi family zero_inflated_poisson", "Bambi varying slopes",
    "Bambi crossed groups", "Bambi groups of counts", "Bambi a scale with a predictor",
)  # fmt: skip
QUICK = ("NumPyro NegativeBinomial",)
CHOSEN: dict[str, Entry] = {named(entry): entry for entry in ENTRIES if named(entry) in NAMES}
