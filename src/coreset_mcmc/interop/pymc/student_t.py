"""Mends Student's t of PyMC, whose log-density loses all digits with many degrees of freedom.

PyMC subtracts two log-gamma functions. Beyond 10^13 degrees of freedom nothing is left of the difference, and the rows
of a t regression look a thousand nats more likely than they are. A gradient never leads there; a slice sampler, which
brackets by doubling, looks there and stays. Here the difference is a series from 10^6 degrees of freedom on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Variable = Any
LARGE = 1e6
"""Degrees of freedom from which the series is exact to rounding, and up to which the difference has nine digits."""


def steady_log_density(variable: Variable, value: Variable | None) -> Variable | None:
    """The log-density of ``value`` if we have a better one than PyMC, otherwise None."""
    from pytensor.tensor.random.basic import StudentTRV

    if value is None or variable.owner is None or not isinstance(variable.owner.op, StudentTRV):
        return None
    return _student_t(value, *variable.owner.op.dist_params(variable.owner))


def _student_t(value: Variable, freedom: Variable, location: Variable, scale: Variable) -> Variable:
    import pytensor.tensor as pt
    from pymc.distributions.dist_math import check_parameters

    small = pt.minimum(freedom, LARGE) / 2
    half = pt.maximum(freedom, LARGE) / 2
    difference = pt.switch(
        freedom < LARGE,
        pt.gammaln(small + 0.5) - pt.gammaln(small),
        0.5 * pt.log(half) - 1 / (8 * half),  # the next term is below 10^-19
    )
    residual = (value - location) / scale
    log_density = (
        difference - 0.5 * pt.log(freedom * np.pi) - pt.log(scale) - (freedom + 1) / 2 * pt.log1p(residual**2 / freedom)
    )
    return check_parameters(log_density, scale > 0, freedom > 0, msg="sigma > 0, nu > 0")
