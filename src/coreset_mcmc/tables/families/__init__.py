"""Families: the distribution of a response given its linear predictor, what is expected of it, and new responses."""

from coreset_mcmc.tables.families.family import Family, Parameter, Unconstrained
from coreset_mcmc.tables.families.names import FAMILIES, family_named

__all__ = ["FAMILIES", "Family", "Parameter", "Unconstrained", "family_named"]
